/** What anything thrown tells a caller, and the health report of an office that cannot open. Knows no schemas: it is loaded where nothing else can be. */
import { ERRORS, errorText, incompletePackage, isOfficeError, OfficeError } from '../errors.ts';
import type { Answer } from './problem.ts';

/** What a caller is told of anything thrown. What is not an {@link OfficeError} is told only to the log. */
export function tellable(error: unknown, requestId: string, log: (line: string) => void): OfficeError {
  const known = isOfficeError(error) ? error : incompletePackage(error);
  if (known !== undefined) return known;
  log(`request ${requestId}: unexpected: ${(error instanceof Error && error.stack) || errorText(error)}`);
  return new OfficeError('DLO_INTERNAL', `see the log for request ${requestId}`);
}

/** Answer of `/health` where the office cannot open, in the form of every other report: in problem details, `status` would have to be a number. */
export function unhealthy(error: unknown, requestId: string, log: (line: string) => void): Answer {
  const { code, message } = tellable(error, requestId, log);
  const { action } = ERRORS[code];
  return { status: 503, body: { status: 'Unhealthy', problems: [message], code, action, requestId } };
}
