/** The retention cleanup: a dead-letter queue has no time to live of its own, so the office keeps the promise. */
import type { DeadLetterQueue, LockedLetter } from '../broker.ts';
import type { Source } from '../catalog.ts';
import { errorText, isOfficeError } from '../errors.ts';
import { isSameMessage, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../store/letterRow.ts';
import type { Lease } from '../store/sources.ts';
import { tellCleanupFailed, tellExpired, tellLeft } from '../telemetry/tell.ts';
import { takeSnapshot } from '../watch/collect.ts';
import { expiryCutoff } from './policy.ts';

/** Most letters that one run removes from one source; the next run goes on. */
const MAX_PER_RUN = 1000;
/** Most letters that one run tries: those that cannot be removed must not keep the others from their turn. */
const MAX_TRIED = 10_000;
const CHUNK = 100;

/** What a cleanup did to one source. */
export interface Expiry {
  readonly removed: number;
  /** Past their retention, but locked by somebody or not held yet; tried again next time. */
  readonly left: number;
}

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
 * Removes what is past its retention, at most {@link MAX_PER_RUN} letters, under the source's lease: a run and a cleanup never
 * work on one source at a time. Throws `DLO_SOURCE_BUSY` while a run has the source.
 */
export async function expireSource(office: Office, source: Source): Promise<Expiry> {
  const cutoff = expiryCutoff(source, office.clock());
  if (cutoff === undefined) return { removed: 0, left: 0 };
  const due: LetterRecord[] = [];
  for await (const record of office.store.letters.open(source.key, { seenUntil: cutoff, pageSize: CHUNK })) {
    due.push(record);
    if (due.length >= MAX_TRIED) break;
  }
  if (due.length === 0) return { removed: 0, left: 0 };
  const lease = await office.store.sources.acquire(source.key, 'expire', office.clock(), office.leaseMs);
  try {
    const queue = await office.broker.open(source);
    try {
      const result = await remove({ office, source, queue, lease }, due);
      if (result.removed > 0) await takeSnapshot(office, source);
      return result;
    } finally {
      await queue.close();
    }
  } finally {
    await office.store.sources.release(lease, true);
  }
}

interface Cleanup {
  readonly office: Office;
  readonly source: Source;
  readonly queue: DeadLetterQueue;
  lease: Lease;
}

async function keepLease(cleanup: Cleanup): Promise<void> {
  const { clock, leaseMs, store } = cleanup.office;
  cleanup.lease = await store.sources.renew(cleanup.lease, clock(), leaseMs);
}

/** Held letters are taken by number; what is active is collected first (`defer`), or received (`observe`). */
async function remove(cleanup: Cleanup, due: readonly LetterRecord[]): Promise<Expiry> {
  const held = await removeHeld(cleanup, due);
  if (cleanup.source.mode === 'defer' || held.active.length === 0) {
    return { removed: held.removed, left: held.left + held.active.length };
  }
  const active = await removeActive(cleanup, held.active);
  return { removed: held.removed + active.removed, left: held.left + active.left };
}

async function removeHeld(
  cleanup: Cleanup,
  due: readonly LetterRecord[],
): Promise<Expiry & { active: readonly LetterRecord[] }> {
  const active: LetterRecord[] = [];
  let removed = 0;
  let left = 0;
  for (let i = 0; i < due.length && removed < MAX_PER_RUN; i += CHUNK) {
    const { office, source, queue } = cleanup;
    await keepLease(cleanup);
    const part = byNumber(due.slice(i, i + CHUNK));
    const taken = await queue.take([...part.keys()]);
    const { same, strangers } = check(taken.locked, part);
    await queue.release(strangers.map(({ lock }) => lock));
    const lost = await complete(cleanup, same);
    // Somebody else removed these, or a cleanup that died before it could say so.
    for (const number of taken.absent) {
      const isGone = await office.store.letters.markGone(source.key, number, office.clock());
      if (isGone) tellLeft(office, source, 'gone', 1);
    }
    active.push(...taken.active.flatMap((number) => part.get(number) ?? []));
    removed += same.length - lost;
    left += lost + taken.busy.length + strangers.length;
  }
  return { removed, left, active };
}

/**
 * Letters of an `observe` source cannot be taken by number: they are received in order, and all that are not due are given
 * back at the end, so that no letter is received twice meanwhile. A dead-letter queue does not count deliveries.
 */
async function removeActive(cleanup: Cleanup, due: readonly LetterRecord[]): Promise<Expiry> {
  const { office, queue } = cleanup;
  const waiting = byNumber(due);
  const spared: LockedLetter[] = [];
  let removed = 0;
  try {
    while (waiting.size > 0 && spared.length < MAX_PER_RUN) {
      await keepLease(cleanup);
      const locked = await queue.receive(CHUNK, office.collectWaitMs);
      if (locked.length === 0) break;
      const { same, strangers } = check(locked, waiting);
      spared.push(...strangers);
      removed += same.length - (await complete(cleanup, same));
      for (const { letter } of same) waiting.delete(letter.sequenceNumber);
    }
  } finally {
    await queue.release(spared.map(({ lock }) => lock));
  }
  return { removed, left: waiting.size };
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

/** Audit, complete, mark, close the audit. Returns how many locks had ended, so that their letters are still there. */
async function complete({ office, source, queue }: Cleanup, letters: readonly LockedLetter[]): Promise<number> {
  if (letters.length === 0) return 0;
  const numbers = letters.map(({ letter }) => letter.sequenceNumber);
  const where = { key: source.key, name: source.name };
  const operator = `retention of ${office.catalog.office}`;
  const at = office.clock();
  const audit = await office.store.audit.open({ at, operator, operation: 'expire', source: where, letters: numbers });
  const settled = await queue.complete(letters.map(({ lock }) => lock));
  const gone = numbers.filter((_number, i) => settled[i] === 'settled');
  await office.store.letters.close(source.key, gone, 'expired', office.clock());
  tellLeft(office, source, 'expired', gone.length);
  const lost = numbers.length - gone.length;
  await office.store.audit.close(
    audit,
    `${gone.length} removed${lost > 0 ? `, ${lost} locks lost` : ''}`,
    office.clock(),
  );
  return lost;
}

/** Cleans up every source, then forgets old records. A source that fails or is busy does not keep the next from its turn. */
export async function expireAll(office: Office, sources: readonly Source[]): Promise<void> {
  for (const source of sources) {
    try {
      const { removed, left } = await expireSource(office, source);
      tellExpired(office, source, removed, left);
      if (removed + left > 0) office.log(`expire ${source.name}: ${removed} removed, ${left} left for the next time`);
    } catch (error) {
      const isBusy = isOfficeError(error, 'DLO_SOURCE_BUSY');
      if (!isBusy) tellCleanupFailed(office, source);
      const why = isBusy ? 'busy, tried again next time' : 'failed';
      office.log(`expire ${source.name}: ${why}: ${errorText(error)}`);
    }
  }
}
