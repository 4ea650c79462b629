/**
 * How fresh an answer is. One meaning for all of them: what is told of a source is as of the end of the last pass over it that
 * completed, and of several sources as of the oldest of those.
 */
import { isOfficeError } from '../errors.ts';
import type { SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';

/** A pass over every source is due this often, ms: the schedule of `functions/collect.ts`. */
export const PASS_EVERY = 60_000;
/** Without a completed pass for longer than this, ms, what is told is old: two in a row were missed. */
export const STALE_AFTER = 3 * PASS_EVERY;

/** The broker's own count may lag; where it has differed for longer than this, ms, both are told as a problem. */
export const DIFFERS_AFTER = 2 * PASS_EVERY;

const SOURCES_AT_ONCE = 8;

/**
 * When the last completed pass over each of `sources` was, the oldest of them, ms since 1970. `undefined` where one of them has
 * had none yet, or its row cannot be read: then nobody knows. Throws `DLO_STORE_UNAVAILABLE`.
 */
export async function asOf(
  { store }: Office,
  sources: readonly { readonly key: SourceKey }[],
): Promise<number | undefined> {
  const passedAt = async ({ key }: { readonly key: SourceKey }) => {
    try {
      return (await store.sources.get(key))?.passedAt;
    } catch (error) {
      if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return undefined; // the next pass cannot mend it, an operator can
      throw error;
    }
  };
  return oldest(await inParallel(sources, passedAt, SOURCES_AT_ONCE));
}

/** The oldest of these times; `undefined` where there is none, or one of them is not known. */
export function oldest(times: readonly (number | undefined)[]): number | undefined {
  if (times.length === 0 || times.includes(undefined)) return undefined;
  return times.reduce((a, b) => Math.min(a ?? Number.POSITIVE_INFINITY, b ?? Number.POSITIVE_INFINITY));
}

/** Whether what was seen at `at` is old by now. What was never seen is. */
export function isStale(at: number | undefined, now: number): boolean {
  return at === undefined || now - at > STALE_AFTER;
}

/** `the last pass over orders completed 12 minutes ago`, whatever its age. `what` is a source, or several. */
export function passText(what: string, at: number | undefined, now: number): string {
  return at === undefined
    ? `no pass over ${what} has completed yet`
    : `the last pass over ${what} completed ${agoText(now - at)}`;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Minutes up to two hours, hours up to two days, then days; rounded down. */
function agoText(ms: number): string {
  const [unit, name] = ms < 2 * HOUR ? [MINUTE, 'minute'] : ms < 48 * HOUR ? [HOUR, 'hour'] : [24 * HOUR, 'day'];
  const count = Math.max(0, Math.floor(ms / unit));
  return `${count} ${name}${count === 1 ? '' : 's'} ago`;
}
