/** An HTTP route as a value: what it takes, which right it needs, what it does. The functions, the checks and OpenAPI share it. */
import type { HttpRequest } from '@azure/functions';
import { z } from 'zod';
import { OfficeError } from '../errors.ts';
import type { Office } from '../office.ts';
import { callerFor, PRINCIPAL_HEADER } from './caller.ts';
import { type Answer, badRequest, problem } from './problem.ts';

/** Rights, each with a key of its own: who may look may not yet read bodies, send back or remove. `probe` needs none. */
export const RIGHTS = ['probe', 'read', 'body', 'replay', 'discard'] as const;
export type Right = (typeof RIGHTS)[number];

/** Largest request body, bytes. */
const MAX_BODY = 262_144;

/** Query parameters with which the platform passes keys; they are not ours to check. */
const KEY_PARAMETERS = ['code', 'clientId'];

/** What a handler gets, checked. */
export interface Input<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** Who calls: the caller of the token, or as named by `x-operator`; empty where the route does not ask for it. */
  readonly operator: string;
  /** How long the caller is willing to wait (`Prefer: wait=`), ms; 0 when it did not say. */
  readonly waitMs: number;
}

export interface Route<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
> {
  /** Name of the function; its key is the function's key. */
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** Below the route prefix, with `{parameters}`. */
  readonly path: string;
  readonly right: Right;
  readonly summary: string;
  /** Whether the caller must name itself, for the audit. */
  readonly needsOperator: boolean;
  readonly params: Params;
  readonly query: Query;
  /** Absent: the route takes no body. */
  readonly body?: Body;
  readonly handle: (office: Office, input: Input<z.infer<Params>, z.infer<Query>, z.infer<Body>>) => Promise<Answer>;
}

/** Declares a route, checking its types together. */
export function route<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  definition: Route<Params, Query, Body>,
): Route {
  return definition as unknown as Route;
}

/** No parameters at all. */
export const none = z.strictObject({});

/** Answers a request by its route. Never throws: everything that goes wrong becomes problem details. */
export async function answer(route: Route, office: Office, request: HttpRequest, requestId: string): Promise<Answer> {
  try {
    // Before anything else: who may not call is not told what would be wrong with the call.
    const caller = callerOf(route, office, request);
    const input = {
      params: check('path', route.params, request.params),
      query: check('query', route.query, queryObject(new URL(request.url).searchParams)),
      body: route.body === undefined ? undefined : check('body', route.body, await jsonBody(request)),
      operator: route.needsOperator ? (caller ?? operatorOf(request.headers.get('x-operator'))) : '',
      waitMs: waitOf(request.headers.get('prefer')),
    };
    return await route.handle(office, input);
  } catch (error) {
    return problem(error, requestId, office.log);
  }
}

/** Name of the caller in its token; `undefined` where callers have keys only, or where nothing is asked of them. */
function callerOf({ right }: Route, { auth }: Office, request: HttpRequest): string | undefined {
  if (auth !== 'app-service' || right === 'probe') return undefined;
  return callerFor(right, request.headers.get(PRINCIPAL_HEADER)).name;
}

function check<Schema extends z.ZodType>(
  where: 'path' | 'query' | 'body',
  schema: Schema,
  value: unknown,
): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw badRequest(where, parsed.error);
  return parsed.data;
}

/**
 * A parameter that is given once is text, more than once a list. From the URL itself: the host joins the values of a repeated
 * parameter with commas in `request.query` (azure-functions-nodejs-library#168).
 */
function queryObject(query: URLSearchParams): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const name of new Set(query.keys())) {
    if (KEY_PARAMETERS.includes(name)) continue;
    const values = query.getAll(name);
    Object.defineProperty(result, name, { value: values.length === 1 ? values[0] : values, enumerable: true });
  }
  return result;
}

async function jsonBody(request: HttpRequest): Promise<unknown> {
  const bytes = Buffer.from(await request.arrayBuffer());
  if (bytes.length > MAX_BODY) throw new OfficeError('DLO_BODY_TOO_LARGE', `the body has ${bytes.length} bytes`);
  if (bytes.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch (cause) {
    throw new OfficeError('DLO_BAD_JSON', 'the body is not JSON in UTF-8', { cause });
  }
}

/** Printable, so that it cannot forge lines in a log. Fetch has already refused control characters in headers. */
function operatorOf(header: string | null): string {
  const name = header?.trim() ?? '';
  if (/^[\p{L}\p{N}\p{P}\p{S} ]{1,100}$/u.test(name)) return name;
  throw new OfficeError('DLO_OPERATOR_MISSING', 'the header `x-operator` is missing or not usable');
}

function waitOf(header: string | null): number {
  const seconds = /(?:^|[,;]\s*)wait=(\d{1,6})(?:\s*[,;]|$)/i.exec(header?.trim() ?? '')?.[1];
  return Math.min(Number(seconds ?? 0), 60) * 1000;
}
