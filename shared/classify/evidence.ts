import type { Sight } from './sight.ts';

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
 * How the letter got into the dead-letter queue. `dead-lettered`: the consumer, or the framework for it, put it there.
 * `skipped`: the framework found nobody to handle it.
 */
export const MECHANISMS = [
  'dead-lettered',
  'delivery-limit',
  'expired',
  'header-size',
  'session-missing',
  'hop-count',
  'filter-error',
  'skipped',
] as const;
export type Mechanism = (typeof MECHANISMS)[number];

/**
 * What the counts and the body tell where the letter's own words do not. `locks-ran-out`: the delivery limit, and no exception from a
 * framework that writes each of them. `no-exception-told`: the same without such a framework. `no-reason-told`: dead-lettered
 * by the application, since the broker gives a reason. `body-is-json`, `body-is-text`: the text says that the body cannot be read.
 */
export const SIGNS = ['locks-ran-out', 'no-exception-told', 'no-reason-told', 'body-is-json', 'body-is-text'] as const;
export type Sign = (typeof SIGNS)[number];

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
  /** The entity it died in before, when the broker forwarded it out of that one's dead-letter queue. */
  readonly deadLetterSource?: string;
  /** Absent where nothing on the letter says it. */
  readonly mechanism?: Mechanism;
}

/**
 * Where a dialect stands between the broker and the code that failed. `framework` is nearest to the code and knows the cause;
 * `broker` knows how the letter got into the dead-letter queue; a `platform` (a host, a sidecar) is in between.
 */
export const LAYER_KINDS = ['framework', 'platform', 'broker'] as const;
export type LayerKind = (typeof LAYER_KINDS)[number];

/**
 * One header format. `read` returns what it finds in the letter, or `undefined` when the letter is not of its kind. It reads what
 * is there and guesses nothing: a field that the letter does not state stays away.
 * It may throw: the office then records the letter as `unknown` together with the error.
 */
export interface Dialect {
  readonly name: string;
  readonly layer: LayerKind;
  read(sight: Sight): Evidence | undefined;
  /** The application's own message in a body of this dialect, where an envelope is around it. */
  payload?(body: unknown): unknown;
}

/** What one dialect found. */
export interface Layer {
  readonly dialect: string;
  readonly layer: LayerKind;
  readonly evidence: Evidence;
}

/** The office's judgement of one letter, and which rule spoke. */
export interface Verdict {
  readonly category: Category;
  readonly advice: Advice;
  readonly rule: string;
  /** What the catalog's rule calls this cause. */
  readonly label?: string;
  /** Where the catalog's rule says what to do. */
  readonly runbook?: string;
}

/** Where a body does not fit its schema. Never with a value: bodies hold personal data. */
export interface Violation {
  /** Such as `lines[2].sku`; `$` is the whole body. A part that may be data itself is shown as `*`. */
  readonly path: string;
  /** The JSON Schema keyword that does not hold, or `json` for a body that is not JSON. */
  readonly problem: string;
}

/** Everything classification found out about a letter. */
export interface Classification extends Verdict {
  /** Merged from all layers: the innermost to know a field decides it, but the broker's reason and mechanism come first. */
  readonly evidence: Evidence;
  /** Names of the dialects that recognised the letter, the innermost first. */
  readonly dialects: readonly string[];
  /** What each of them found, in the same order. */
  readonly layers: readonly Layer[];
  /** First places where the body does not fit the catalog's schema for its message type. */
  readonly violations?: readonly Violation[];
  /** What the counts and the body tell; absent where they tell nothing. */
  readonly signs?: readonly Sign[];
  /** What was wanted but not, or not wholly, read because it is too large or in no readable form: `body`, or names of properties. */
  readonly unread?: readonly string[];
  /** Set when a dialect threw; the letter is recorded all the same. */
  readonly error?: string;
}
