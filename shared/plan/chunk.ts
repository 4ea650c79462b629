/**
 * One chunk, once through: take → check identity → reset → journal `sending` → send → journal `sent` → complete → mark → `done`.
 *
 * The order is the promise. A letter is completed only after the broker accepted the copy and that fact is in the journal;
 * whatever stops this in between leaves a chunk whose state says exactly how far it came.
 */
import type { DeadLetterQueue, EncodedMessage, LockedLetter, ReplayTarget, Settled, Taken } from '../broker.ts';
import type { Source } from '../catalog.ts';
import { errorText, isOfficeError } from '../errors.ts';
import type { SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { Journal } from './journal.ts';
import {
  type Chunk,
  type ChunkLetter,
  type Exception,
  type Fate,
  type PlanHead,
  type SkipReason,
  settle,
} from './plan.ts';
import { isInDuplicateWindow, refusal } from './preflight.ts';
import { identityDigest } from './prepare.ts';

/** Nothing is sent with less lock left than this, ms: the completion must still be ours to do. */
const LOCK_MARGIN = 10_000;
/** Longer than any lock can last (5 minutes, twice): whoever still holds a letter then renews its lock. */
const BUSY_LIMIT = 630_000;

/** What the engine needs to work on chunks of one run. */
export interface Work {
  readonly office: Office;
  readonly source: Source;
  readonly journal: Journal;
  readonly queue: DeadLetterQueue;
  /** Opens the target, the first time it is needed. Throws `DLO_TARGET_UNAVAILABLE`. */
  readonly openTarget: () => Promise<ReplayTarget>;
  /** Throws when the lease has ended. Asked right before every act that cannot be undone. */
  readonly assertLeased: () => void;
}

/** How a chunk was left. */
export type ChunkResult =
  /** Done, or divided into smaller chunks: go on with the next one. */
  | { readonly kind: 'next' }
  /** Letters that are locked by somebody else were set aside: go on with the rest of the chunk. */
  | { readonly kind: 'again' }
  /** Letters are locked by somebody else, or an answer was lost: nothing more may be sent before this chunk is clear. */
  | { readonly kind: 'wait'; readonly why: string }
  /** The target refuses everything: go on only when somebody says so. */
  | { readonly kind: 'refused'; readonly why: string };

const NEXT: ChunkResult = { kind: 'next' };

/** Works on one unfinished chunk. Throws `DLO_BROKER_UNAVAILABLE`, `DLO_STORE_UNAVAILABLE`, or when taken over. */
export async function workOn(work: Work, chunk: Chunk): Promise<ChunkResult> {
  // Opened before anything is locked. What was sent needs no target, so that it is completed even without one.
  const sends = work.journal.head.action === 'replay' && chunk.state !== 'sent';
  const target = sends ? await work.openTarget() : undefined;
  const taken = await work.queue.take(chunk.letters.map(({ number }) => number));
  const takenAt = work.office.clock();
  try {
    if (chunk.state === 'sent') return await finishSent(work, chunk, taken);
    return await workOnUnsent(work, target, chunk, taken, takenAt);
  } catch (error) {
    // Whatever was done already: the journal says so, and the next slice need not wait for these locks to end.
    await release(work, taken.locked);
    throw error;
  }
}

async function workOnUnsent(
  work: Work,
  target: ReplayTarget | undefined,
  chunk: Chunk,
  taken: Taken,
  takenAt: number,
): Promise<ChunkResult> {
  if (taken.busy.length > 0) {
    const waited = await waitForBusy(work, chunk, taken);
    if (waited !== undefined) return waited;
  }
  const sorted = sort(work, target, chunk, taken);
  if (sorted.send.length === 0) {
    await release(work, sorted.release);
    await close(work, chunk, [], sorted.exceptions);
    return NEXT;
  }
  return target === undefined ? discard(work, chunk, sorted) : replay(work, target, chunk, sorted, takenAt);
}

interface Ready {
  readonly planned: ChunkLetter;
  readonly locked: LockedLetter;
  readonly message: EncodedMessage;
}

interface Sorted {
  readonly send: readonly Ready[];
  readonly release: readonly LockedLetter[];
  readonly exceptions: readonly Exception[];
}

/** Decides for every letter of a chunk that is not sent yet: send it, or why not. */
function sort(work: Work, target: ReplayTarget | undefined, chunk: Chunk, taken: Taken): Sorted {
  // Its first sending may have reached the target, so whatever becomes of the letter now, a copy may be there.
  const maybeDuplicate = chunk.maybeDuplicate || chunk.state === 'sending';
  const exceptions: Exception[] = [];
  const except = (number: SequenceNumber, fate: Fate) => exceptions.push({ number, fate, maybeDuplicate });
  for (const number of taken.absent) except(number, { kind: 'skipped', reason: 'gone' });
  for (const number of taken.active) except(number, { kind: 'left', reason: 'not-held' });
  for (const number of taken.busy) except(number, { kind: 'left', reason: 'locked' });
  const planned = new Map(chunk.letters.map((letter) => [letter.number, letter]));
  const send: Ready[] = [];
  const back: LockedLetter[] = [];
  for (const locked of taken.locked) {
    const number = locked.letter.sequenceNumber;
    const letter = planned.get(number) as ChunkLetter;
    const prepared = prepare(work, target, letter, locked);
    if (typeof prepared !== 'string') send.push(prepared);
    else {
      except(number, { kind: 'skipped', reason: prepared });
      back.push(locked);
    }
  }
  // As planned: oldest first.
  send.sort((a, b) => (BigInt(a.planned.number) < BigInt(b.planned.number) ? -1 : 1));
  return { send, release: back, exceptions };
}

function prepare(
  work: Work,
  target: ReplayTarget | undefined,
  planned: ChunkLetter,
  locked: LockedLetter,
): Ready | SkipReason {
  if (identityDigest(locked.letter) !== planned.identity) return 'not-same-message';
  if (target === undefined) return { planned, locked, message: locked.message };
  const { office, source, journal } = work;
  const { id, choices } = journal.head;
  const now = office.clock();
  const reason = refusal(source, choices, locked.letter, now);
  if (reason !== undefined) return reason;
  const replayCount = locked.letter.replay.count + 1;
  const renamed = choices.onDuplicate === 'new-id' && isInDuplicateWindow(source, locked.letter, now);
  try {
    const message = office.broker.reset(locked.message, {
      replayCount,
      replayedAt: now,
      planId: id,
      replayOf: planned.number,
      bypass: choices.bypass,
      // The same for every attempt of this plan: where the target detects duplicates, sending again is harmless.
      ...(renamed && { newMessageId: `${id}:${planned.number}` }),
    });
    return target.batchBytes([message]) > target.maxBytes ? 'too-large' : { planned, locked, message };
  } catch (error) {
    if (isOfficeError(error, 'DLO_NOT_RESENDABLE')) return 'not-resendable';
    throw error;
  }
}

async function replay(
  work: Work,
  target: ReplayTarget,
  chunk: Chunk,
  sorted: Sorted,
  takenAt: number,
): Promise<ChunkResult> {
  const { office, journal } = work;
  const messages = sorted.send.map(({ message }) => message);
  if (messages.length > 1 && target.batchBytes(messages) > target.maxBytes) return divide(work, chunk, sorted);
  const again = chunk.state === 'sending';
  const sending: Chunk = {
    ...chunk,
    state: 'sending',
    letters: sorted.send.map(({ planned }) => planned),
    maybeDuplicate: chunk.maybeDuplicate || again,
    audit: chunk.audit || (await openAudit(work, chunk)),
  };
  await release(work, sorted.release);
  await markUnclearExceptions(work, sorted.exceptions);
  await journal.commit(
    (head) => ({ ...head, counts: settle(head.counts, 0, sorted.exceptions, flagged(sorted.exceptions)) }),
    { chunks: [sending], exceptions: sorted.exceptions },
  );
  if (!hasLockLeft(sorted.send, takenAt, office.clock())) {
    // Nothing was sent under this journal entry unless it was there before.
    if (!again) await journal.commit((head) => head, { chunks: [{ ...sending, state: 'planned' }] });
    await release(
      work,
      sorted.send.map(({ locked }) => locked),
    );
    return { kind: 'wait', why: 'the locks would have ended before the letters could be completed' };
  }
  work.assertLeased();
  const outcome = await target.send(messages, office.sendTimeoutMs);
  switch (outcome.kind) {
    case 'accepted': {
      const sent: Chunk = { ...sending, state: 'sent' };
      await journal.commit((head) => head, { chunks: [sent] });
      return complete(
        work,
        sent,
        sorted.send.map(({ locked }) => locked),
      );
    }
    case 'unknown':
      // The chunk stays `sending`: it is sent again by that word of the journal, and marked.
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      return { kind: 'wait', why: `the outcome of a send is unknown: ${outcome.description}` };
    case 'refused-message': {
      const back: Chunk = { ...sending, state: 'planned' };
      if (sorted.send.length > 1) return divide(work, back, { ...sorted, exceptions: [], release: [] });
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      const reason = `${outcome.code}: ${outcome.description}`;
      await close(work, back, [], exceptionsFor(back, { kind: 'failed', reason }));
      return NEXT;
    }
    case 'refused-target':
    case 'refused-busy': {
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      await journal.commit((head) => head, { chunks: [{ ...sending, state: 'planned' }] });
      const why = `the target refuses: ${outcome.code}: ${outcome.description}`;
      return outcome.kind === 'refused-busy' ? { kind: 'wait', why } : { kind: 'refused', why };
    }
  }
}

async function discard(work: Work, chunk: Chunk, sorted: Sorted): Promise<ChunkResult> {
  const decided: Chunk = {
    ...chunk,
    state: 'sent',
    letters: sorted.send.map(({ planned }) => planned),
    audit: chunk.audit || (await openAudit(work, chunk)),
  };
  await release(work, sorted.release);
  await work.journal.commit((head) => ({ ...head, counts: settle(head.counts, 0, sorted.exceptions, 0) }), {
    chunks: [decided],
    exceptions: sorted.exceptions,
  });
  work.assertLeased();
  return complete(
    work,
    decided,
    sorted.send.map(({ locked }) => locked),
  );
}

/** A chunk whose letters are in the target already: only the copies in the dead-letter queue remain to be completed. */
async function finishSent(work: Work, chunk: Chunk, taken: Taken): Promise<ChunkResult> {
  const planned = new Map(chunk.letters.map(({ number, identity }) => [number, identity]));
  const ours = taken.locked.filter(({ letter }) => planned.get(letter.sequenceNumber) === identityDigest(letter));
  // What has the number now but is another message, held or active, belongs to a recreated entity.
  await release(
    work,
    taken.locked.filter((one) => !ours.includes(one)),
  );
  if (taken.busy.length === 0) return complete(work, chunk, ours);
  await settleLocks(work, ours, 'complete');
  const { office, journal } = work;
  const since = chunk.waitingSince ?? office.clock();
  if (office.clock() - since < BUSY_LIMIT) {
    if (chunk.waitingSince === undefined) {
      await journal.commit((head) => head, { chunks: [{ ...chunk, waitingSince: since }] });
    }
    return { kind: 'wait', why: `${taken.busy.length} letters that were sent are locked by somebody else` };
  }
  const reason = 'sent, but its copy in the dead-letter queue stays locked by somebody else';
  const stuck = taken.busy.map(
    (number): Exception => ({ number, maybeDuplicate: true, fate: { kind: 'failed', reason } }),
  );
  const done = chunk.letters.filter(({ number }) => !taken.busy.includes(number));
  await close(work, { ...chunk, letters: done }, done, stuck);
  return NEXT;
}

/** Completes what was sent, marks the letters and closes the chunk. A lost lock leaves the chunk `sent`, to be taken again. */
async function complete(work: Work, chunk: Chunk, locked: readonly LockedLetter[]): Promise<ChunkResult> {
  const settled = await settleLocks(work, locked, 'complete');
  const lost = settled.filter((one) => one === 'lost').length;
  if (lost > 0) return { kind: 'wait', why: `${lost} locks ended before their letters were completed` };
  await close(work, chunk, chunk.letters, []);
  return NEXT;
}

/**
 * Letters that stay in the dead-letter queue although a copy may be in the target: noted on the letters themselves, so that
 * the next plan over them knows. Returns how many there are. For a chunk whose outcome is unknown when a plan is cancelled.
 */
export async function markUnclear(office: Office, head: PlanHead, chunk: Chunk | undefined): Promise<number> {
  if (chunk?.state !== 'sending') return 0;
  const numbers = chunk.letters.map(({ number }) => number);
  await office.store.letters.markMaybeSent(head.source, numbers, head.id);
  return numbers.length;
}

/** The same for letters with a fate of their own. */
async function markUnclearExceptions(
  { office, source, journal }: Work,
  exceptions: readonly Exception[],
): Promise<void> {
  const unclear = exceptions.filter(
    ({ fate, maybeDuplicate }) => maybeDuplicate && !(fate.kind === 'skipped' && fate.reason === 'gone'),
  );
  const numbers = unclear.map(({ number }) => number);
  await office.store.letters.markMaybeSent(source.key, numbers, journal.head.id);
}

/** Writes the end of a chunk: `done` letters as planned, the rest by their exceptions. */
async function close(
  work: Work,
  chunk: Chunk,
  done: readonly ChunkLetter[],
  exceptions: readonly Exception[],
): Promise<void> {
  const { office, source, journal } = work;
  const { id, action } = journal.head;
  const numbers = done.map(({ number }) => number);
  // The letters' rows first: written twice they stay the same, and a chunk that is done is never looked at again.
  await office.store.letters.close(
    source.key,
    numbers,
    action === 'replay' ? 'replayed' : 'discarded',
    office.clock(),
    id,
  );
  await markUnclearExceptions(work, exceptions);
  const duplicates = (chunk.maybeDuplicate ? numbers.length : 0) + flagged(exceptions);
  await journal.commit((head) => ({ ...head, counts: settle(head.counts, numbers.length, exceptions, duplicates) }), {
    chunks: [{ ...chunk, state: 'done', letters: done }],
    exceptions,
  });
  if (chunk.audit !== '') {
    const others = exceptions.length > 0 ? `, ${exceptions.length} otherwise` : '';
    await office.store.audit.close(chunk.audit, `${numbers.length} done${others}`, office.clock());
  }
}

/**
 * Letters of a chunk that somebody else has locked. Before anything of the chunk was sent, they move to a chunk of their
 * own at the end; a chunk that may have been sent waits as a whole.
 */
async function waitForBusy(work: Work, chunk: Chunk, taken: Taken): Promise<ChunkResult | undefined> {
  const { office, journal } = work;
  const since = chunk.waitingSince ?? office.clock();
  if (office.clock() - since >= BUSY_LIMIT) return undefined; // given up: they are left where they are
  const why = `${taken.busy.length} letters are locked by somebody else`;
  await release(work, taken.locked);
  const isLast = chunk.key.startsWith(LATER) && taken.busy.length === chunk.letters.length;
  if (chunk.state === 'planned' && !isLast) {
    const busy = chunk.letters.filter(({ number }) => taken.busy.includes(number));
    const free = chunk.letters.filter(({ number }) => !taken.busy.includes(number));
    const later = { ...chunk, key: `${LATER}${chunk.key.slice('chunk:'.length)}`, letters: busy, waitingSince: since };
    await journal.commit((head) => head, {
      chunks: free.length > 0 ? [{ ...chunk, letters: free }, later] : [later],
      removeChunks: free.length > 0 ? [] : [chunk.key],
    });
    return { kind: 'again' };
  }
  if (chunk.waitingSince === undefined) {
    await journal.commit((head) => head, { chunks: [{ ...chunk, waitingSince: since }] });
  }
  return { kind: 'wait', why };
}

/** Keys of chunks that wait for locks: after all others (`~` sorts behind digits). */
const LATER = 'chunk:~';

/** Halves a chunk, in its place and order: too many bytes for one transfer, or one message of it is refused. */
async function divide(work: Work, chunk: Chunk, sorted: Sorted): Promise<ChunkResult> {
  await release(work, [...sorted.release, ...sorted.send.map(({ locked }) => locked)]);
  const letters = sorted.send.map(({ planned }) => planned);
  const middle = Math.ceil(letters.length / 2);
  const half = (suffix: string, part: ChunkLetter[]): Chunk => ({
    ...chunk,
    key: `${chunk.key}.${suffix}`,
    letters: part,
  });
  await work.journal.commit(
    (head) => ({
      ...head,
      chunks: head.chunks + 1,
      counts: settle(head.counts, 0, sorted.exceptions, flagged(sorted.exceptions)),
    }),
    {
      chunks: [half('0', letters.slice(0, middle)), half('1', letters.slice(middle))],
      removeChunks: [chunk.key],
      exceptions: sorted.exceptions,
    },
  );
  return NEXT;
}

function exceptionsFor(chunk: Chunk, fate: Fate): Exception[] {
  return chunk.letters.map(({ number }) => ({ number, fate, maybeDuplicate: chunk.maybeDuplicate }));
}

function flagged(exceptions: readonly Exception[]): number {
  return exceptions.filter(({ maybeDuplicate }) => maybeDuplicate).length;
}

function hasLockLeft(send: readonly Ready[], takenAt: number, now: number): boolean {
  const until = Math.min(...send.map(({ locked }) => locked.lockedUntil));
  // Where locks are so short that the margin would never fit, half of the lock must still be there.
  return until - now >= Math.min(LOCK_MARGIN, (until - takenAt) / 2);
}

async function openAudit(work: Work, chunk: Chunk): Promise<string> {
  const { office, source, journal } = work;
  const { id, action, startedBy } = journal.head;
  return office.store.audit.open({
    at: office.clock(),
    operator: startedBy,
    operation: action === 'replay' ? 'chunk.replay' : 'chunk.discard',
    source: { key: source.key, name: source.name },
    planId: id,
    letters: chunk.letters.map(({ number }) => number),
  });
}

async function settleLocks(
  work: Work,
  locked: readonly LockedLetter[],
  how: 'complete' | 'release',
): Promise<Settled[]> {
  if (locked.length === 0) return [];
  return work.queue[how](locked.map(({ lock }) => lock));
}

/** Gives locks back so that nobody has to wait for their end. Failing is harmless: they end by themselves. */
async function release(work: Work, locked: readonly LockedLetter[]): Promise<void> {
  try {
    await settleLocks(work, locked, 'release');
  } catch (error) {
    work.office.log(`run ${work.journal.head.id}: locks not given back, they will expire: ${errorText(error)}`);
  }
}
