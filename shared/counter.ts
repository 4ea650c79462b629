/**
 * The broker's own count of a dead-letter queue beside the office's. It lags, and letters move while both count: they differ only
 * where the broker's number is not between the office's of two passes, and that is worth a word only when it stays so.
 */
import type { BrokerCount } from './brokers/broker.ts';

/** What the broker counted during a pass, and what the office had on record after it. Times are ms since 1970. */
export interface Counted {
  readonly at: number;
  /** The broker's number; `undefined` where it could not be read. */
  readonly count: number | undefined;
  /** Why it could not be read, else empty. */
  readonly unread: string;
  /** Open letters on record after the pass. */
  readonly open: number;
  /** Since when the broker's number has been too high, or too low. */
  readonly differsSince: number | undefined;
}

/** Compares the numbers of a pass with those of the one `before`. The broker counted between both counts of the office. */
export function compareCounts(before: Counted | undefined, read: BrokerCount, open: number, at: number): Counted {
  if ('unread' in read) return { at, count: undefined, unread: read.unread, open, differsSince: undefined };
  const { count } = read;
  const sign = signOf(count, before?.open ?? open, open);
  const isAsBefore = before?.count !== undefined && Math.sign(before.count - before.open) === sign;
  const differsSince = sign === 0 ? undefined : ((isAsBefore ? before?.differsSince : undefined) ?? at);
  return { at, count, unread: '', open, differsSince };
}

/** 1: the count is above both of the office's; -1: below; 0: between them. */
function signOf(count: number, earlier: number, later: number): -1 | 0 | 1 {
  if (count > Math.max(earlier, later)) return 1;
  return count < Math.min(earlier, later) ? -1 : 0;
}

/** How long the numbers have differed in the same direction, ms. */
export function differsFor({ differsSince, at }: Counted): number {
  return differsSince === undefined ? 0 : at - differsSince;
}
