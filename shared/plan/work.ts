/** What the parts of the engine that work on chunks share. */
import type { DeadLetterQueue, LockedLetter, ReplayTarget, Settled } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { errorText } from '../errors.ts';
import type { SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { Exception } from '../records/plan.ts';
import type { Journal } from './journal.ts';
import type { Sends } from './sends.ts';

/** What the engine needs to work on chunks of one run. */
export interface Work {
  readonly office: Office;
  readonly source: Source;
  readonly journal: Journal;
  readonly queue: DeadLetterQueue;
  readonly sends: Sends;
  /** Letters that were refused alone without a clear reason since the target last took one. */
  readonly refusedAlone: Set<SequenceNumber>;
  /** Opens the target, the first time it is needed. Throws `DLO_TARGET_UNAVAILABLE`. */
  readonly openTarget: () => Promise<ReplayTarget>;
  /** Throws when the lease has ended. Asked right before every act that cannot be undone. */
  readonly assertLeased: () => void;
  /** Whether the next chunk may be begun before this one is completed: nothing that comes of it decides about the next. */
  readonly mayOverlap: () => boolean;
}

/** How a chunk was left. */
export type ChunkResult =
  /** Done: go on with the next one. */
  | { readonly kind: 'next' }
  /** Letters that are locked by somebody else were set aside, or it was divided: go on with what is first now. */
  | { readonly kind: 'again' }
  /** In the target, and the journal says so: what remains may be done while the next chunk is begun. */
  | { readonly kind: 'sent'; readonly finish: () => Promise<ChunkResult> }
  /** Letters are locked by somebody else, or an answer was lost: nothing more may be sent before this chunk is clear. */
  | { readonly kind: 'wait'; readonly why: string }
  /** The target refuses everything: go on only when somebody says so. */
  | { readonly kind: 'refused'; readonly why: string };

export const NEXT: ChunkResult = { kind: 'next' };

/** Longer than any lock can last (5 minutes, twice): whoever still holds a letter then renews its lock. */
export const BUSY_LIMIT = 630_000;

/** Settles locks over the queue. Same order as `locked`. */
export async function settleLocks(
  work: Work,
  locked: readonly LockedLetter[],
  how: 'complete' | 'release',
): Promise<Settled[]> {
  if (locked.length === 0) return [];
  return work.queue[how](locked.map(({ lock }) => lock));
}

/** Gives locks back so that nobody has to wait for their end. Failing is harmless: they end by themselves. */
export async function release(work: Work, locked: readonly LockedLetter[]): Promise<void> {
  try {
    await settleLocks(work, locked, 'release');
  } catch (error) {
    work.office.log(`run ${work.journal.head.id}: locks not given back, they will expire: ${errorText(error)}`);
  }
}

/**
 * Before letters of a discard are removed: writes their copies, if the source has an archive. A reason means that not all are kept, so
 * that none of these letters may be removed; once a chunk is `sent` they are written again, which makes the same blobs.
 */
export async function archive(work: Work, locked: readonly LockedLetter[]): Promise<string | undefined> {
  const { office, source, journal } = work;
  if (journal.head.action !== 'discard' || !source.archive) return undefined;
  const { kept, why } = await office.store.archive.keep(source, 'discarded', locked);
  if (why === undefined) return undefined;
  return `${kept.filter((one) => !one).length} letters could not be archived, and stay: ${why}`;
}

/** How many of these letters may be in the target without anybody being sure. */
export function flagged(exceptions: readonly Exception[]): number {
  return exceptions.filter(({ maybeDuplicate }) => maybeDuplicate).length;
}
