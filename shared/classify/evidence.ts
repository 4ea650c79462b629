import type { Letter } from '../letter.ts';

/** What kind of death it was. */
export const CATEGORIES = [
  'transient',
  'poison',
  'consumer-fault',
  'expired',
  'topology',
  'oversized',
  'unknown',
] as const;
export type Category = (typeof CATEGORIES)[number];

/** What to do with it: send it back, fix something first, or have a look. */
export const ADVICES = ['replay', 'fix-first', 'investigate'] as const;
export type Advice = (typeof ADVICES)[number];

/**
 * What a letter tells about its own death. Every field is the sender's word and may be missing or wrong. Times are ms since
 * 1970.
 */
export interface Evidence {
  readonly reason?: string;
  readonly description?: string;
  /** The exception as the framework names it; often a wrapper. */
  readonly exceptionType?: string;
  readonly exceptionMessage?: string;
  /** The innermost exception, where a wrapper hides it. */
  readonly causeType?: string;
  readonly causeMessage?: string;
  /** The first stack frame that is the application's own. */
  readonly frame?: string;
  readonly failedAt?: number;
  readonly attempts?: number;
  /** Who failed: a consumer, handler, endpoint or queue. */
  readonly consumer?: string;
  readonly messageType?: string;
  readonly correlationId?: string;
  readonly traceId?: string;
}

/**
 * One header format. `read` returns what it finds in the letter, or `undefined` when the letter is not of its kind.
 * It may throw: the office then records the letter as `unknown` together with the error.
 */
export interface Dialect {
  readonly name: string;
  read(letter: Letter): Evidence | undefined;
}

/** The office's judgement of one letter, and which rule spoke. */
export interface Verdict {
  readonly category: Category;
  readonly advice: Advice;
  readonly rule: string;
}

/** Everything classification found out about a letter. */
export interface Classification extends Verdict {
  readonly evidence: Evidence;
  /** Names of the dialects that recognised the letter, in the order they were asked. */
  readonly dialects: readonly string[];
  /** Set when a dialect threw; the letter is recorded all the same. */
  readonly error?: string;
}
