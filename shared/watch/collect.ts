import type { DeadLetterQueue, LockedLetter } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { type Counted, compareCounts } from '../counter.ts';
import { errorText, isOfficeError } from '../errors.ts';
import { groupsBefore, keepOpen } from '../groups/keep.ts';
import type { SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { tellPassed, tellPassFailed, tellSnapshot } from '../telemetry/tell.ts';
import { recordLetters } from './record.ts';
import { reopen } from './reopen.ts';
import { survey } from './survey.ts';

/** Outcome of one collecting pass over one source. */
export interface Pass {
  readonly source: string;
  /** Letters recorded in this pass. */
  readonly collected: number;
  /** Letters that were recorded as having left and are there all the same. */
  readonly reopened: number;
  /** Open letters afterwards. */
  readonly open: number;
}

type Found = Pick<Pass, 'collected' | 'reopened'>;

const BATCH = 100;
const MAX_BATCHES = 100;

/**
 * One pass over a source: new letters of a `defer` source are received, recorded and set aside; an `observe` source is
 * only looked at. Then the counts are noted. Throws `DLO_BROKER_UNAVAILABLE` or `DLO_STORE_UNAVAILABLE`, after noting
 * that too.
 */
export async function collect(office: Office, source: Source): Promise<Pass> {
  try {
    const before = await countedBefore(office, source);
    // While the pass goes on: it waits for a first letter in most cases longer than this takes.
    const counting = office.broker.count(source);
    // A pass that fails before it waits for this leaves it to nobody, and a rejection that nobody hears ends the process.
    counting.catch(() => {});
    const queue = await office.broker.open(source);
    let found: Found;
    try {
      if (source.mode === 'defer') found = await receiveAndHold(office, source, queue);
      else {
        const { recorded, reopened } = await survey(office, source, queue);
        found = { collected: recorded, reopened };
      }
    } finally {
      await queue.close();
    }
    const open = await takeSnapshot(office, source);
    const at = office.clock();
    await office.store.sources.passed(source, at, '', compareCounts(before, await counting, open, at));
    tellPassed(office, source);
    return { source: source.name, ...found, open };
  } catch (error) {
    await notePassFailure(office, source, error);
    throw error;
  }
}

/** What the last pass counted; nothing where its row cannot be read, which keeps no letter from being recorded. */
async function countedBefore(office: Office, source: Source): Promise<Counted | undefined> {
  try {
    return (await office.store.sources.get(source.key))?.counted;
  } catch (error) {
    if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return undefined;
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

/** Batches under way at the same time: receiving one takes as long as recording it. */
const BATCHES_AT_ONCE = 4;
/** Heavier batches go one by one: each is in memory with its bodies. */
const LIGHT_BATCH_BYTES = 4 * 1024 * 1024;

async function receiveAndHold(office: Office, source: Source, queue: DeadLetterQueue): Promise<Found> {
  let batches = 0;
  const receive = async () => (batches++ < MAX_BATCHES ? queue.receive(BATCH, office.collectWaitMs) : []);
  const work = async (first: readonly LockedLetter[]): Promise<Found> => {
    let found: Found = { collected: 0, reopened: 0 };
    for (let locked = first; ; locked = await receive()) {
      found = sum(found, await recordAndHold(office, source, queue, locked));
      if (locked.length < BATCH) return found;
    }
  };
  const first = await receive();
  // Most passes find little or nothing: that needs no company.
  const bytes = first.reduce((total, { letter }) => total + letter.bytes, 0);
  if (first.length < BATCH || bytes > LIGHT_BATCH_BYTES) return work(first);
  const others = Array.from({ length: BATCHES_AT_ONCE - 1 }, async () => work(await receive()));
  const ends = await Promise.allSettled([work(first), ...others]);
  return ends.reduce<Found>(
    (all, end) => {
      // What it had received comes back when its locks end; the others have gone on.
      if (end.status === 'rejected') throw end.reason;
      return sum(all, end.value);
    },
    { collected: 0, reopened: 0 },
  );
}

function sum(a: Found, b: Found): Found {
  return { collected: a.collected + b.collected, reopened: a.reopened + b.reopened };
}

async function recordAndHold(
  office: Office,
  source: Source,
  queue: DeadLetterQueue,
  locked: readonly LockedLetter[],
): Promise<Found> {
  if (locked.length === 0) return { collected: 0, reopened: 0 };
  const closed = await recordLetters(office, source, locked);
  // Recorded first: a letter that is held but unknown to the store would be found only by reconcile.
  const settled = await queue.hold(locked.map(({ lock }) => lock));
  const reopened = await reopen(office, source, queue, closed);
  return { collected: settled.filter((one) => one === 'settled').length, reopened };
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

/** Counts a source anew after letters have left it, if it is in the catalog: nobody should wait for the next pass. Throws nothing. */
export async function noteCounts(office: Office, key: SourceKey): Promise<void> {
  const source = office.catalog.sources.find((one) => one.key === key);
  if (source === undefined) return;
  try {
    await takeSnapshot(office, source);
  } catch (error) {
    office.log(`collect ${source.name}: not counted after a run, the next pass does it: ${errorText(error)}`);
  }
}

async function notePassFailure(office: Office, source: Source, error: unknown): Promise<void> {
  await tellPassFailed(office, source);
  try {
    await office.store.sources.passed(source, office.clock(), errorText(error));
  } catch (again) {
    office.log(`collect ${source.name}: the failure could not be noted: ${errorText(again)}`);
  }
}
