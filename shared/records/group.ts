/** Groups as values: what is known of the letters of one cause, and how that adds up. No input or output here. */
import type { Advice, Category } from '../classify/evidence.ts';
import type { Fingerprint } from '../classify/fingerprint.ts';
import { compareSequenceNumbers, type SequenceNumber } from '../letter.ts';
import type { Replays } from './replays.ts';

/** One recorded letter, as far as groups are concerned. */
export interface Sighting {
  readonly number: SequenceNumber;
  readonly fingerprint: Fingerprint;
  /** The cause in words. */
  readonly cause: string;
  /** Its group by the rules of an earlier version. */
  readonly formerly?: Fingerprint | undefined;
  readonly category: Category;
  readonly advice: Advice;
  readonly messageType: string | undefined;
  /** When the letter was first seen, ms since 1970. */
  readonly at: number;
  readonly open: boolean;
  /** It left by a replay. */
  readonly sent?: boolean;
  /** It was sent back and died again: when that was seen, ms since 1970. */
  readonly returnedAt?: number | undefined;
}

/** Letters by a trait, most frequent first. Pairs, since a sender may call a message type `__proto__`. */
export type Counted<Key extends string = string> = readonly (readonly [Key, number])[];

/** The letters of one cause in one source (or in several, after {@link mergeGroups}). Times are ms since 1970. */
export interface Group extends Replays {
  readonly fingerprint: Fingerprint;
  readonly cause: string;
  /** Groups that an earlier version put its letters in, ascending; at most {@link MAX_FORMER}. */
  readonly formerly: readonly Fingerprint[];
  /** Letters on record, open and closed. */
  readonly total: number;
  readonly open: number;
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** Letters first seen per 5 minutes, by the start of the interval, ascending; the last {@link TREND_SPAN} only. */
  readonly trend: readonly (readonly [number, number])[];
  readonly categories: Counted<Category>;
  readonly advices: Counted<Advice>;
  readonly messageTypes: Counted;
  readonly examples: readonly SequenceNumber[];
}

/** Interval of a trend, ms. */
export const TREND_STEP = 300_000;
/** How far back a trend goes from its newest interval, ms. */
export const TREND_SPAN = 3 * 3_600_000;
/** Most message types and examples that a group tells. */
export const MAX_TYPES = 20;
export const MAX_EXAMPLES = 5;
/** Most former groups that a group tells: where it is one that was many, each letter still knows its own. */
export const MAX_FORMER = 20;
const MAX_TYPE = 200;
/** Message types beyond the first twenty are counted as this. */
export const OTHER = '(other)';

/** Start of the interval of a trend that a moment lies in. */
export function intervalOf(at: number): number {
  return Math.floor(at / TREND_STEP) * TREND_STEP;
}

/** The group of a single letter. */
export function groupOf(sighting: Sighting): Group {
  const { number, fingerprint, cause, formerly, category, advice, messageType, at, open, sent, returnedAt } = sighting;
  return {
    fingerprint,
    cause,
    formerly: formerly === undefined ? [] : [formerly],
    total: 1,
    open: open ? 1 : 0,
    firstSeen: at,
    lastSeen: at,
    trend: [[intervalOf(at), 1]],
    categories: [[category, 1]],
    advices: [[advice, 1]],
    messageTypes: messageType === undefined ? [] : [[messageType.slice(0, MAX_TYPE), 1]],
    examples: [number],
    sent: sent ? 1 : 0,
    returned: returnedAt === undefined ? 0 : 1,
    lastReturned: returnedAt,
  };
}

/** What a letter that has been counted before adds to its group by being sent, or by coming back: nothing but that. */
export function replayOf(sighting: Sighting, what: 'sent' | 'returned'): Group {
  const nothing = { total: 0, open: 0, trend: [], categories: [], advices: [], messageTypes: [], examples: [] };
  const group = groupOf(sighting);
  const others = what === 'sent' ? { returned: 0, lastReturned: undefined } : { sent: 0 };
  return { ...group, ...nothing, ...others };
}

/** Both together, under the fingerprint and the cause of `a`. */
export function mergeGroups(a: Group, b: Group): Group {
  return {
    fingerprint: a.fingerprint,
    cause: a.cause,
    formerly: [...new Set([...a.formerly, ...b.formerly])].sort().slice(0, MAX_FORMER),
    total: a.total + b.total,
    open: a.open + b.open,
    firstSeen: Math.min(a.firstSeen, b.firstSeen),
    lastSeen: Math.max(a.lastSeen, b.lastSeen),
    trend: mergeTrends(a.trend, b.trend, (x, y) => x + y),
    categories: addUp(a.categories, b.categories),
    advices: addUp(a.advices, b.advices),
    messageTypes: bounded(addUp(a.messageTypes, b.messageTypes)),
    // The newest: what is open is among the last ones rather than the first.
    examples: [...new Set([...a.examples, ...b.examples])].sort(compareSequenceNumbers).slice(-MAX_EXAMPLES),
    sent: a.sent + b.sent,
    returned: a.returned + b.returned,
    lastReturned: latest(a.lastReturned, b.lastReturned),
  };
}

/** Adds a group to those of its kind. */
export function addTo(groups: Map<Fingerprint, Group>, group: Group): void {
  const known = groups.get(group.fingerprint);
  groups.set(group.fingerprint, known === undefined ? group : mergeGroups(known, group));
}

/**
 * A group after a recount. Every letter that was recorded a while ago has been counted; of the intervals since `settledUntil`
 * (ms since 1970) letters may have been recorded during the recount, so there the larger count is right.
 */
export function recounted(counted: Group, stored: Group, settledUntil: number): Group {
  const fresh = stored.trend.filter(([from]) => from >= intervalOf(settledUntil));
  const trend = mergeTrends(counted.trend, fresh, Math.max);
  const missed = sum(trend) - sum(counted.trend);
  if (missed <= 0) return { ...counted, trend };
  return {
    ...counted,
    trend,
    total: counted.total + missed,
    lastSeen: Math.max(counted.lastSeen, stored.lastSeen),
  };
}

function sum(pairs: readonly (readonly [unknown, number])[]): number {
  return pairs.reduce((all, [, count]) => all + count, 0);
}

function mergeTrends(a: Group['trend'], b: Group['trend'], join: (x: number, y: number) => number): Group['trend'] {
  const joined = new Map(a);
  for (const [from, count] of b) joined.set(from, join(joined.get(from) ?? 0, count));
  const newest = Math.max(...joined.keys());
  return [...joined].filter(([from]) => from > newest - TREND_SPAN).sort(([x], [y]) => x - y);
}

function addUp<Key extends string>(a: Counted<Key>, b: Counted<Key>): Counted<Key> {
  const counts = new Map<Key, number>(a);
  for (const [key, count] of b) counts.set(key, (counts.get(key) ?? 0) + count);
  return [...counts].sort(([x, n], [y, m]) => m - n || (x < y ? -1 : 1));
}

/** A sender may make up any number of message types. */
function bounded(counts: Counted): Counted {
  if (counts.length <= MAX_TYPES) return counts;
  const named = counts.filter(([key]) => key !== OTHER);
  const kept = named.slice(0, MAX_TYPES - 1);
  const others = sum(counts) - sum(kept);
  return [...kept, [OTHER, others]];
}

function latest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

/** The most frequent of a trait. */
export function mainOf<Key extends string>(counts: Counted<Key>): Key | undefined {
  return counts[0]?.[0];
}
