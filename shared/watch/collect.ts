import type { DeadLetterQueue, LockedLetter } from '../broker.ts';
import type { Source } from '../catalog.ts';
import { errorText } from '../errors.ts';
import { groupsBefore, keepOpen } from '../groups/keep.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { tellPassFailed, tellSnapshot } from '../telemetry/tell.ts';
import { recordLetters } from './record.ts';
import { survey } from './survey.ts';

/** Outcome of one collecting pass over one source. */
export interface Pass {
  readonly source: string;
  /** Letters recorded in this pass. */
  readonly collected: number;
  /** Open letters afterwards. */
  readonly open: number;
}

const BATCH = 100;
const MAX_BATCHES = 100;

/**
 * One pass over a source: new letters of a `defer` source are received, recorded and set aside; an `observe` source is
 * only looked at. Then the counts are noted. Throws `DLO_BROKER_UNAVAILABLE` or `DLO_STORE_UNAVAILABLE`, after noting
 * that too.
 */
export async function collect(office: Office, source: Source): Promise<Pass> {
  try {
    const queue = await office.broker.open(source);
    let collected: number;
    try {
      collected =
        source.mode === 'defer'
          ? await receiveAndHold(office, source, queue)
          : (await survey(office, source, queue)).recorded;
    } finally {
      await queue.close();
    }
    const open = await takeSnapshot(office, source);
    await office.store.sources.passed(source, office.clock(), '');
    return { source: source.name, collected, open };
  } catch (error) {
    await notePassFailure(office, source, error);
    throw error;
  }
}

/** Sources collected at the same time: each spends most of its pass waiting for a first letter. */
const SOURCES_AT_ONCE = 8;

/** A pass over every source. One that fails does not keep the others from their turn. */
export async function collectAll(office: Office): Promise<void> {
  const pass = async (source: Source) => {
    try {
      const { collected, open } = await collect(office, source);
      if (collected > 0) office.log(`collect ${source.name}: ${collected} new, ${open} open`);
    } catch (error) {
      office.log(`collect ${source.name}: failed, nothing lost: ${errorText(error)}`);
    }
  };
  await inParallel(office.catalog.sources, pass, SOURCES_AT_ONCE);
}

/** Batches that are recorded and held while the next one is received. */
const KEPT_AT_ONCE = 2;

async function receiveAndHold(office: Office, source: Source, queue: DeadLetterQueue): Promise<number> {
  let collected = 0;
  const keeping: Promise<number>[] = [];
  try {
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const locked = await queue.receive(BATCH, office.collectWaitMs);
      // Where this fails, what was received just now comes back when its locks end.
      if (keeping.length >= KEPT_AT_ONCE) collected += (await keeping.shift()) ?? 0;
      const kept = recordAndHold(office, source, queue, locked);
      kept.catch(() => {}); // it is looked at when it is waited for
      keeping.push(kept);
      if (locked.length < BATCH) break;
    }
  } finally {
    await Promise.allSettled(keeping);
  }
  for (const kept of keeping) collected += await kept;
  return collected;
}

async function recordAndHold(
  office: Office,
  source: Source,
  queue: DeadLetterQueue,
  locked: readonly LockedLetter[],
): Promise<number> {
  if (locked.length === 0) return 0;
  await recordLetters(office, source, locked);
  // Recorded first: a letter that is held but unknown to the store would be found only by reconcile.
  const settled = await queue.hold(locked.map(({ lock }) => lock));
  return settled.filter((one) => one === 'settled').length;
}

/** Counts a source's open letters, notes the counts, and keeps its groups in line with them. */
export async function takeSnapshot(office: Office, source: Source): Promise<number> {
  const groups = await groupsBefore(office, source);
  const tally = await office.store.letters.tally(source.key);
  const snapshot = { at: office.clock(), ...tally };
  await office.store.snapshots.add(source.key, snapshot);
  await tellSnapshot(office, source, snapshot);
  await keepOpen(office, source, groups, tally);
  return tally.open;
}

async function notePassFailure(office: Office, source: Source, error: unknown): Promise<void> {
  await tellPassFailed(office, source);
  try {
    await office.store.sources.passed(source, office.clock(), errorText(error));
  } catch (again) {
    office.log(`collect ${source.name}: the failure could not be noted: ${errorText(again)}`);
  }
}
