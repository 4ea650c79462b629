/** The retention cleanup: a dead-letter queue has no time to live of its own, so the office keeps the promise. */
import type { DeadLetterQueue, LockedLetter } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { errorText, isOfficeError } from '../errors.ts';
import { identityDigest, isSameMessage, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import type { Lease } from '../store/sources.ts';
import { tellCleanupFailed, tellExpired, tellLeft } from '../telemetry/tell.ts';
import { takeSnapshot } from '../watch/collect.ts';
import { expiryCutoff } from './policy.ts';

/** Most letters that one run removes from one source; the next run goes on. */
const MAX_PER_RUN = 10_000;
/** Most letters that one run tries: those that cannot be removed must not keep the others from their turn. */
const MAX_TRIED = 20_000;
/** Most records kept in memory of letters that are not held, to know them by when they are received. */
const MAX_ACTIVE = 10_000;
/** Most letters of others that are locked at the same time while those that are due are received. */
const MAX_SPARED = 1000;
const CHUNK = 100;
/** So many chunks in a row of which nothing could be archived, and the run ends: the archive is out. */
const MAX_UNARCHIVED = 3;
/** After this long a source has a smaller share, so that more of them have their turn, ms. */
const LATE_AFTER = 240_000;
const MAX_WHEN_LATE = 1000;
/** After this long the sources that are left have their turn next time, ms: the host ends a function after ten minutes. */
const OVER_AFTER = 420_000;

/** What a cleanup did to one source. */
export interface Expiry {
  readonly removed: number;
  /** Past their retention, but locked by somebody, not held yet, or not archived; tried again next time. */
  readonly left: number;
  /** How many of those are left because the archive did not take them. */
  readonly unarchived: number;
}

const NOTHING: Expiry = { removed: 0, left: 0, unarchived: 0 };

/** What the next cleanup would remove. Changes nothing. */
export interface ExpiryPreview {
  /** ms since 1970; `undefined` when the source has no `retainFor`. */
  readonly cutoff: number | undefined;
  readonly count: number;
  /** True when there are more than were counted. */
  readonly more: boolean;
  readonly letters: readonly LetterRecord[];
}

/** The dry run: letters past their retention, the first `show` of them told one by one. Throws `DLO_STORE_UNAVAILABLE`. */
export async function previewExpiry(office: Office, source: Source, show: number): Promise<ExpiryPreview> {
  const cutoff = expiryCutoff(source, office.clock());
  const letters: LetterRecord[] = [];
  let count = 0;
  if (cutoff !== undefined) {
    for await (const record of office.store.letters.open(source.key, { seenUntil: cutoff })) {
      if (count >= 10_000) return { cutoff, count, more: true, letters };
      count++;
      if (letters.length < show) letters.push(record);
    }
  }
  return { cutoff, count, more: false, letters };
}

/**
 * Removes what is past its retention, at most `max` letters, under the source's lease: a run and a cleanup never work on one
 * source at a time. Throws `DLO_SOURCE_BUSY` while a run has the source.
 */
export async function expireSource(office: Office, source: Source, max: number = MAX_PER_RUN): Promise<Expiry> {
  const cutoff = expiryCutoff(source, office.clock());
  if (cutoff === undefined) return NOTHING;
  const due = inChunks(office.store.letters.open(source.key, { seenUntil: cutoff, pageSize: CHUNK }));
  const first = await due.next();
  if (first.done) return NOTHING;
  const lease = await office.store.sources.acquire(source.key, 'expire', office.clock(), office.leaseMs);
  try {
    const queue = await office.broker.open(source);
    try {
      const result = await remove({ office, source, queue, lease, max }, first.value, due);
      if (result.removed > 0) await takeSnapshot(office, source);
      return result;
    } finally {
      await queue.close();
    }
  } finally {
    await office.store.sources.release(lease, true);
  }
}

/** The records, some at a time: a source may have more than fit into memory. */
async function* inChunks(records: AsyncIterable<LetterRecord>): AsyncGenerator<LetterRecord[], undefined> {
  let chunk: LetterRecord[] = [];
  for await (const record of records) {
    chunk.push(record);
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

interface Cleanup {
  readonly office: Office;
  readonly source: Source;
  readonly queue: DeadLetterQueue;
  /** Most letters to remove. */
  readonly max: number;
  lease: Lease;
}

async function keepLease(cleanup: Cleanup): Promise<void> {
  const { clock, leaseMs, store } = cleanup.office;
  cleanup.lease = await store.sources.renew(cleanup.lease, clock(), leaseMs);
}

/** Held letters are taken by number; what is active is collected first (`defer`), or received (`observe`). */
async function remove(
  cleanup: Cleanup,
  first: readonly LetterRecord[],
  others: AsyncIterable<readonly LetterRecord[]>,
): Promise<Expiry> {
  const total = new Total();
  const active: LetterRecord[] = [];
  let tried = 0;
  const isEnough = async (chunk: readonly LetterRecord[]) => {
    total.add(await removeHeld(cleanup, chunk, active));
    tried += chunk.length;
    return total.removed >= cleanup.max || tried >= MAX_TRIED || active.length >= MAX_ACTIVE || total.isArchiveOut;
  };
  if (!(await isEnough(first))) for await (const chunk of others) if (await isEnough(chunk)) break;
  if (cleanup.source.mode === 'observe' && active.length > 0 && !total.isArchiveOut) {
    total.add(await removeActive(cleanup, active));
  }
  return total;
}

/** What was done to the letters of a source so far. */
class Total implements Expiry {
  removed = 0;
  left = 0;
  unarchived = 0;
  #unarchivedChunks = 0;

  add({ removed, left, unarchived }: Expiry): void {
    this.removed += removed;
    this.left += left;
    this.unarchived += unarchived;
    if (removed > 0) this.#unarchivedChunks = 0;
    else if (unarchived > 0) this.#unarchivedChunks++;
  }

  get isArchiveOut(): boolean {
    return this.#unarchivedChunks >= MAX_UNARCHIVED;
  }
}

/** Removes those of a chunk that are held. Of an `observe` source those that are not are put to `active`. */
async function removeHeld(cleanup: Cleanup, chunk: readonly LetterRecord[], active: LetterRecord[]): Promise<Expiry> {
  const { office, source, queue } = cleanup;
  await keepLease(cleanup);
  const part = byNumber(chunk);
  const taken = await queue.take([...part.keys()]);
  const { same, strangers } = check(taken.locked, part);
  await queue.release(strangers.map(({ lock }) => lock));
  const { removed, left, unarchived } = await complete(cleanup, same);
  // Somebody else removed these, or a cleanup that died before it could say so.
  for (const number of taken.absent) {
    const isGone = await office.store.letters.markGone(source.key, number, office.clock());
    if (isGone) tellLeft(office, source, 'gone', 1);
  }
  const others = left + taken.busy.length + strangers.length;
  if (source.mode === 'defer') return { removed, left: others + taken.active.length, unarchived };
  active.push(...taken.active.flatMap((number) => part.get(number) ?? []));
  return { removed, left: others, unarchived };
}

/**
 * Letters of an `observe` source cannot be taken by number: they are received in order, and all that are not due are given
 * back at the end, so that no letter is received twice meanwhile. A dead-letter queue does not count deliveries.
 */
async function removeActive(cleanup: Cleanup, due: readonly LetterRecord[]): Promise<Expiry> {
  const { office, queue } = cleanup;
  const waiting = byNumber(due);
  const spared: LockedLetter[] = [];
  const total = new Total();
  try {
    while (waiting.size > 0 && spared.length < MAX_SPARED && total.removed < cleanup.max && !total.isArchiveOut) {
      await keepLease(cleanup);
      const locked = await queue.receive(CHUNK, office.collectWaitMs);
      if (locked.length === 0) break;
      const { same, strangers } = check(locked, waiting);
      spared.push(...strangers);
      total.add(await complete(cleanup, same));
      for (const { letter } of same) waiting.delete(letter.sequenceNumber);
    }
  } finally {
    await queue.release(spared.map(({ lock }) => lock));
  }
  return { removed: total.removed, left: total.left + waiting.size, unarchived: total.unarchived };
}

function byNumber(records: readonly LetterRecord[]): Map<SequenceNumber, LetterRecord> {
  return new Map(records.map((record) => [record.letter.sequenceNumber, record]));
}

/** Entities are recreated and numbers used again: only what is still the recorded message may be removed. */
function check(
  locked: readonly LockedLetter[],
  records: ReadonlyMap<SequenceNumber, LetterRecord>,
): { same: LockedLetter[]; strangers: LockedLetter[] } {
  const same = locked.filter(({ letter }) => {
    const record = records.get(letter.sequenceNumber);
    return record !== undefined && isSameMessage(record.letter, letter);
  });
  return { same, strangers: locked.filter((one) => !same.includes(one)) };
}

/** Archives where the source wants it; then audit, complete, mark, close the audit. Those whose locks had ended are still there. */
async function complete(cleanup: Cleanup, locked: readonly LockedLetter[]): Promise<Expiry> {
  if (locked.length === 0) return NOTHING;
  const { office, source, queue } = cleanup;
  const letters = await archived(cleanup, locked);
  const unarchived = locked.length - letters.length;
  if (letters.length === 0) return { removed: 0, left: unarchived, unarchived };
  const numbers = letters.map(({ letter }) => letter.sequenceNumber);
  const where = { key: source.key, name: source.name };
  const operator = `retention of ${office.catalog.office}`;
  const at = office.clock();
  const audit = await office.store.audit.open({ at, operator, operation: 'expire', source: where, letters: numbers });
  const settled = await queue.complete(letters.map(({ lock }) => lock));
  const gone = letters.flatMap(({ letter }, i) =>
    settled[i] === 'settled' ? [{ number: letter.sequenceNumber, identity: identityDigest(letter) }] : [],
  );
  await office.store.letters.close(source.key, gone, 'expired', office.clock());
  tellLeft(office, source, 'expired', gone.length);
  const lost = numbers.length - gone.length;
  const outcome = `${gone.length} removed${lost > 0 ? `, ${lost} locks lost` : ''}`;
  await office.store.audit.close(audit, outcome, office.clock());
  return { removed: gone.length, left: lost + unarchived, unarchived };
}

/** Those whose copies are in the archive, if there have to be any. The others are given back: nothing goes that was not archived. */
async function archived(cleanup: Cleanup, locked: readonly LockedLetter[]): Promise<readonly LockedLetter[]> {
  const { office, source, queue } = cleanup;
  if (!source.archive) return locked;
  const { kept, why } = await office.store.archive.keep(source, 'expired', locked);
  if (why !== undefined) {
    const others = locked.filter((_one, i) => !kept[i]);
    office.log(`expire ${source.name}: ${others.length} letters could not be archived and stay: ${why}`);
    await queue.release(others.map(({ lock }) => lock));
  }
  await keepLease(cleanup); // it may have taken long, and what comes now cannot be undone
  return locked.filter((_one, i) => kept[i]);
}

/**
 * Cleans up every source for which there is time. A source that fails or is busy does not keep the next from its turn, nor does
 * its place in the catalog: where a cleanup begins is chance.
 */
export async function expireAll(office: Office, sources: readonly Source[]): Promise<void> {
  const begun = office.clock();
  const start = sources.length === 0 ? 0 : Buffer.from(office.random(4)).readUInt32BE() % sources.length;
  for (const [i, source] of [...sources.slice(start), ...sources.slice(0, start)].entries()) {
    const elapsed = office.clock() - begun;
    if (elapsed > OVER_AFTER) {
      office.log(`expire: ${sources.length - i} sources have their turn next time`);
      return;
    }
    await expireOne(office, source, elapsed > LATE_AFTER ? MAX_WHEN_LATE : MAX_PER_RUN);
  }
}

async function expireOne(office: Office, source: Source, max: number): Promise<void> {
  try {
    const { removed, left, unarchived } = await expireSource(office, source, max);
    if (unarchived > 0) tellCleanupFailed(office, source);
    tellExpired(office, source, removed, left);
    if (removed + left > 0) office.log(`expire ${source.name}: ${removed} removed, ${left} left for the next time`);
  } catch (error) {
    const isBusy = isOfficeError(error, 'DLO_SOURCE_BUSY');
    if (!isBusy) tellCleanupFailed(office, source);
    const why = isBusy ? 'busy, tried again next time' : 'failed';
    office.log(`expire ${source.name}: ${why}: ${errorText(error)}`);
  }
}
