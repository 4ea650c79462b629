/** What kinds of failure there are, and what each means for sending back. */
import type { Advice, Category } from './evidence.ts';

/** What an exception's family says. */
export interface Family {
  readonly rule: string;
  readonly category: Category;
  readonly advice: Advice;
}

function family(rule: string, category: Category, advice: Advice): Family {
  return { rule: `exception:${rule}`, category, advice };
}

export const TIMEOUT = family('timeout', 'transient', 'replay');
export const CONNECTION = family('connection', 'transient', 'replay');
export const THROTTLED = family('throttled', 'transient', 'replay');
export const SERVER = family('http-5xx', 'transient', 'replay');
export const DEADLOCK = family('deadlock', 'transient', 'replay');
export const CONCURRENCY = family('concurrency', 'transient', 'replay');
export const FORMAT = family('deserialisation', 'poison', 'fix-first');
export const VALIDATION = family('validation', 'poison', 'fix-first');
/** The data is refused by the database, or is there already. */
export const CONSTRAINT = family('constraint', 'poison', 'fix-first');
export const UNSUPPORTED = family('unsupported', 'poison', 'fix-first');
export const NOT_FOUND = family('not-found', 'poison', 'fix-first');
export const REFUSED = family('http-4xx', 'poison', 'fix-first');
export const ACCESS = family('access', 'consumer-fault', 'fix-first');
export const CODE = family('code', 'consumer-fault', 'fix-first');
/** The message's own lock, or its session's, ended before the consumer was through. */
export const LOCK_LOST = family('lock-lost', 'consumer-fault', 'fix-first');
export const NO_HANDLER = family('no-handler', 'topology', 'fix-first');
