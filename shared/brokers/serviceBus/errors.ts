/** Errors of the AMQP libraries, told apart by what the office does about them. */
import { isMessagingError, translate } from '@azure/core-amqp';
import { errorText, isMistake, isOfficeError, OfficeError } from '../../errors.ts';

/**
 * The broker looked at the request and said no, because of the messages in it. What it did not do, it did not do:
 * asking for fewer of them, or looking first, is safe. Names: `ConditionErrorNameMapper` of @azure/core-amqp.
 */
const REFUSALS: ReadonlySet<string> = new Set([
  'MessageNotFoundError',
  'MessageLockLostError',
  'SessionLockLostError',
  'InvalidOperationError',
  'ArgumentError',
  'ArgumentOutOfRangeError',
  'PreconditionFailedError',
]);

/** The broker's answer that there is no such message or no such lock any more. */
const GONE: ReadonlySet<string> = new Set(['MessageNotFoundError', 'MessageLockLostError', 'SessionLockLostError']);

/** The name that @azure/core-amqp gives to the broker's error condition, if `error` comes from the broker. */
export function codeOf(error: unknown): string | undefined {
  return isMessagingError(error as Error) ? (error as { code?: string }).code : undefined;
}

/** Whether the broker refused a request because of messages in it. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(codeOf(error) ?? '');
}

/** Whether the broker knows no such message or lock. */
export function isGone(error: unknown): boolean {
  return GONE.has(codeOf(error) ?? '');
}

/**
 * `error` as `DLO_BROKER_UNAVAILABLE`, with the broker's code in `data.code`. An error of the office stays what it is, and so does
 * a mistake of the program: no broker will ever make it go away.
 */
export function unavailable(doing: string, error: unknown): Error {
  if (isOfficeError(error) || isMistake(error)) return error;
  const cause = translate(error as Error);
  const code = codeOf(cause);
  return new OfficeError('DLO_BROKER_UNAVAILABLE', `Service Bus did not ${doing}: ${errorText(cause)}`, {
    cause,
    data: code === undefined ? {} : { code },
  });
}

/**
 * What the broker said when it refused a link or a claim, or `undefined` when the trouble is with reaching it or
 * with its load.
 */
export function refusalOf(error: unknown): { code: string; description: string } | undefined {
  const onLink = conditionOf(error);
  if (onLink !== undefined) {
    return PASSING.has(onLink.condition) ? undefined : { code: onLink.condition, description: onLink.description };
  }
  const code = codeOf(error);
  const isFinal = code !== undefined && (error as { retryable?: boolean }).retryable === false;
  return isFinal || code === 'UnauthorizedError' ? { code: code ?? '', description: errorText(error) } : undefined;
}

/**
 * Throws what the broker said when it closed a link that it had only just opened. It refuses a link by opening and closing it in
 * one go, and both can have come before anybody listened.
 */
export function assertStillOpen(link: { isOpen(): boolean; readonly error?: unknown }): void {
  if (!link.isOpen()) throw link.error ?? new Error('the link was closed as soon as it was open');
}

/** Conditions under which a link is refused for now, not for good. */
const PASSING: ReadonlySet<string> = new Set([
  'amqp:connection:forced',
  'amqp:internal-error',
  'amqp:link:detach-forced',
  'com.microsoft:operation-cancelled',
  'com.microsoft:server-busy',
  'com.microsoft:timeout',
]);

/** Condition and text of an error that the broker put on a link, a session or a delivery. */
export function conditionOf(error: unknown): { condition: string; description: string } | undefined {
  if (typeof error !== 'object' || error === null || !('condition' in error)) return undefined;
  const { condition, description } = error as { condition?: unknown; description?: unknown };
  return { condition: String(condition), description: typeof description === 'string' ? description : '' };
}
