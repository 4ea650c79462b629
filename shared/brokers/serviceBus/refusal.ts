/** What the broker's explicit refusal of a send means for sending on. */
import type { SendOutcome } from '../broker.ts';

/** Every message would be refused: the target is missing, closed, full, or not ours to send to. */
const TARGET: ReadonlySet<string> = new Set([
  'amqp:not-found',
  'amqp:resource-deleted',
  'amqp:resource-limit-exceeded',
  'amqp:unauthorized-access',
  'com.microsoft:auth-failed',
  'com.microsoft:entity-disabled',
  'com.microsoft:publisher-revoked',
]);

/** Nothing is wrong with message or target: later it may work. */
const BUSY: ReadonlySet<string> = new Set(['com.microsoft:server-busy', 'amqp:resource-locked']);

/**
 * The broker gave up on its own work, and does not say how far it had come. Microsoft on timeouts: the operation may
 * have been completed.
 */
const UNCERTAIN: ReadonlySet<string> = new Set(['com.microsoft:timeout', 'com.microsoft:operation-cancelled']);

/**
 * The broker failed on it. "The service was unable to process the request; please retry" is said of a fault that passes and, for
 * ever, of a message with a property that is too long. It is a rejection, which by AMQP means not taken.
 */
const UNEXPLAINED: ReadonlySet<string> = new Set(['amqp:internal-error']);

/** Sorts a rejection by its AMQP condition. A condition nobody knows counts against the message. */
export function classifyRefusal(condition: string, description: string): SendOutcome {
  const code = condition;
  if (UNCERTAIN.has(code)) return { kind: 'unknown', description: `${code}: ${description}` };
  if (UNEXPLAINED.has(code)) return { kind: 'refused-unexplained', code, description };
  if (BUSY.has(code)) return { kind: 'refused-busy', code, description };
  if (TARGET.has(code)) return { kind: 'refused-target', code, description };
  return { kind: 'refused-message', code, description };
}
