/** Problem details (RFC 9457): the one form in which the office says no. */
import { z } from 'zod';
import { ERRORS, type ErrorCode, OfficeError } from '../errors.ts';
import { tellable } from './unhealthy.ts';

/** A field of a request and what is wrong with it. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** What an HTTP function answers. */
export type Answer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
} & ({ readonly body: unknown; readonly text?: never } | { readonly text: string; readonly body?: never });

/** Shape of every error answer, for OpenAPI. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
  detail: z.string(),
  action: z.string(),
  requestId: z.string(),
  errors: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
});

/** The answer for anything thrown. What is not an {@link OfficeError} is told only to the log. */
export function problem(error: unknown, requestId: string, log: (line: string) => void): Answer {
  const known = tellable(error, requestId, log);
  const { status, title, action } = ERRORS[known.code];
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      // RFC 9110 wants to be told how.
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    },
    body: {
      ...known.data,
      type: `urn:dead-letter-office:error:${known.code}`,
      title,
      status,
      code: known.code,
      detail: known.message,
      action,
      requestId,
    },
  };
}

/** The error for input that does not fit its schema, naming each field. */
export function badRequest(where: 'path' | 'query' | 'body', error: z.ZodError): OfficeError {
  const errors = error.issues.slice(0, 20).map((issue): FieldError => {
    const field = [where, ...issue.path.map(String)].join('.').slice(0, 200);
    return { field, message: issue.message.slice(0, 300) };
  });
  const detail = errors.map(({ field, message }) => `${field}: ${message}`).join('; ');
  return new OfficeError('DLO_BAD_REQUEST', detail, { data: { errors } });
}
