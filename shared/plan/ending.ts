/** Ends chunks: completes what was sent, marks letters, writes fates. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LockedLetter, Taken } from '../brokers/broker.ts';
import { countSent } from '../groups/keep.ts';
import { identityDigest, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { type Chunk, type ChunkLetter, type Exception, type PlanHead, settle } from '../records/plan.ts';
import { tellLeft } from '../telemetry/tell.ts';
import { archive, BUSY_LIMIT, type ChunkResult, flagged, NEXT, release, settleLocks, type Work } from './work.ts';

/** A chunk whose letters are in the target already: only the copies in the dead-letter queue remain to be completed. */
export async function finishSent(work: Work, chunk: Chunk, taken: Taken): Promise<ChunkResult> {
  const planned = new Map(chunk.letters.map(({ number, identity }) => [number, identity]));
  const ours = taken.locked.filter(({ letter }) => planned.get(letter.sequenceNumber) === identityDigest(letter));
  // What has the number now but is another message, held or active, belongs to a recreated entity.
  await release(
    work,
    taken.locked.filter((one) => !ours.includes(one)),
  );
  // Perhaps it was written under an earlier version or catalog, which had no archive.
  const unarchived = await archive(work, ours);
  if (unarchived !== undefined) {
    await release(work, ours);
    return { kind: 'wait', why: unarchived };
  }
  const there = await stillThere(work, chunk, [...taken.busy, ...taken.active]);
  if (there.length === 0) return complete(work, chunk, ours);
  const settled = await settleLocks(work, ours, 'complete');
  const { office, journal } = work;
  const since = chunk.waitingSince ?? office.clock();
  if (settled.includes('lost') || office.clock() - since < BUSY_LIMIT) {
    if (chunk.waitingSince === undefined) {
      await journal.commit((head) => head, { chunks: [{ ...chunk, waitingSince: since }] });
    }
    return { kind: 'wait', why: `${there.length} letters are still there and cannot be had: somebody else has them` };
  }
  const isReplay = journal.head.action === 'replay';
  const why =
    'its copy in the dead-letter queue cannot be had: it is locked by somebody else, or behind too many others';
  const stuck = there.map(
    (number): Exception => ({
      number,
      maybeDuplicate: isReplay,
      fate: { kind: 'failed', reason: isReplay ? `sent, but ${why}` : why },
    }),
  );
  const done = chunk.letters.filter(({ number }) => !there.includes(number));
  await close(work, chunk, done, stuck);
  return NEXT;
}

/** Those of `numbers` that are in the dead-letter queue as the messages that were planned. */
async function stillThere(
  { queue }: Work,
  { letters }: Chunk,
  numbers: readonly SequenceNumber[],
): Promise<SequenceNumber[]> {
  const planned = new Map(letters.map(({ number, identity }) => [number, identity]));
  const seen = await inParallel(numbers, (number) => queue.peekOne(number));
  return numbers.filter((number, i) => {
    const letter = seen[i]?.letter;
    return letter !== undefined && identityDigest(letter) === planned.get(number);
  });
}

/** Completes what was sent, marks the letters and closes the chunk. A lost lock leaves the chunk `sent`, to be taken again. */
export async function complete(work: Work, chunk: Chunk, locked: readonly LockedLetter[]): Promise<ChunkResult> {
  const unseen = await waitToBeSeen(work, chunk, locked);
  if (unseen !== undefined) {
    await release(work, locked);
    return unseen;
  }
  const settled = await settleLocks(work, locked, 'complete');
  const lost = settled.filter((one) => one === 'lost').length;
  if (lost > 0) return { kind: 'wait', why: `${lost} locks ended before their letters were completed` };
  await close(work, chunk, chunk.letters, []);
  return NEXT;
}

/** Looks for the first letter in its subscription, and the pause between two of them, ms. */
const LOOKS = 10;
const LOOK_PAUSE = 200;
/** Unseen for so long the run pauses, ms. */
const SEEN_PATIENCE = 60_000;

/**
 * A topic accepts messages that no rule of the subscription lets through: sent and completed, such a letter would be lost.
 * So the first one must be seen in the subscription (waiting there, or dead again) before its letter is completed.
 */
async function waitToBeSeen(
  work: Work,
  chunk: Chunk,
  locked: readonly LockedLetter[],
): Promise<ChunkResult | undefined> {
  const { office, source, journal } = work;
  const { id, choices, seen } = journal.head;
  if (choices.target !== 'topic' || seen) return undefined;
  const sent = locked.map(({ letter }) => letter);
  for (let look = 0; look < LOOKS; look++) {
    const isWaiting = (await office.broker.isWaiting(source, source.path, id, sent)) === 'yes';
    if (isWaiting || (await office.store.plans.countReturned(id)) > 0) {
      await journal.commit((head) => ({ ...head, seen: true }));
      return undefined;
    }
    await delay(LOOK_PAUSE);
  }
  const since = chunk.waitingSince ?? office.clock();
  if (chunk.waitingSince === undefined) {
    await journal.commit((head) => head, { chunks: [{ ...chunk, waitingSince: since }] });
  }
  const why = 'the first letter was sent to the topic and has not been seen in the subscription';
  // Whoever wants the run to end need not wait for a letter that may never be seen.
  const { request } = await journal.refresh();
  if (request === 'none' && office.clock() - since < SEEN_PATIENCE) return { kind: 'wait', why };
  return { kind: 'refused', why: `${why}: look whether its rules let it through, then resume with {"seen": true}` };
}

/**
 * Letters of a plan that ends or stops before them and that stay in the dead-letter queue although a copy may be in the target:
 * noted on the letters themselves, so that the next plan over them knows. Returns how many there are, and how many chunks could
 * not be read: of their letters nobody knows.
 */
export async function markUnclear(office: Office, head: PlanHead): Promise<{ letters: number; unreadable: number }> {
  if (head.action === 'discard' || head.choices.target === 'sandbox') return { letters: 0, unreadable: 0 };
  let marked = 0;
  let unreadable = 0;
  const onUnreadable = (key: string) => {
    unreadable++;
    office.log(`plan ${head.id}: ${key} cannot be read: nobody knows whether its letters were sent`);
  };
  for await (const chunk of office.store.plans.chunks(head.id, { unfinished: true, onUnreadable })) {
    // One that was refused after an unknown outcome is planned again, and may have been divided or moved since.
    if (chunk.state === 'planned' && !chunk.maybeDuplicate) continue;
    marked += chunk.letters.length;
    // What only an earlier plan may have sent keeps the mark of that one.
    const isOurs = chunk.state !== 'planned' || chunk.sends > 0;
    if (isOurs) await office.store.letters.markMaybeSent(head.source, chunk.letters, head.id);
  }
  return { letters: marked, unreadable };
}

/** The change of a head whose plan ends without having been carried out: what it did not get to stays where it is. */
export async function abandonment(
  office: Office,
  head: PlanHead,
  reason: string,
): Promise<(head: PlanHead) => PlanHead> {
  const { letters, unreadable } = await markUnclear(office, head);
  const unknown = unreadable === 0 ? '' : `; ${unreadable} of its chunks cannot be read: look whether they were sent`;
  return ({ counts, ...rest }) => ({
    ...rest,
    stateReason: `${reason}${unknown}`,
    counts: {
      ...counts,
      pending: 0,
      left: counts.left + counts.pending,
      maybeDuplicate: counts.maybeDuplicate + letters,
    },
  });
}

/**
 * Notes on the letters what their fates of their own in this run say of them: a copy may be in the target, or the letter is not
 * there any more, which a peek of just that number has shown.
 */
export async function noteExceptions(
  { office, source, journal }: Work,
  { letters }: Chunk,
  exceptions: readonly Exception[],
): Promise<void> {
  const isGone = ({ fate }: Exception) => fate.kind === 'skipped' && fate.reason === 'gone';
  const gone = exceptions.filter(isGone);
  await inParallel(gone, ({ number }) => office.store.letters.markGone(source.key, number, office.clock()));
  if (journal.head.choices.target === 'sandbox') return; // a copy there doubles nothing
  const numbers = new Set(exceptions.filter((one) => one.maybeDuplicate && !isGone(one)).map(({ number }) => number));
  const unclear = letters.filter(({ number }) => numbers.has(number));
  await office.store.letters.markMaybeSent(source.key, unclear, journal.head.id);
}

/** Writes the end of a chunk: `done` letters as planned, the rest by their exceptions. */
export async function close(
  work: Work,
  chunk: Chunk,
  done: readonly ChunkLetter[],
  exceptions: readonly Exception[],
): Promise<void> {
  const { office, source, journal } = work;
  const { id, action, choices } = journal.head;
  const fate = action === 'replay' ? 'replayed' : 'discarded';
  const leaves = choices.target !== 'sandbox';
  if (leaves) {
    // The letters' rows first: written twice they stay the same, and a chunk that is done is never looked at again.
    await office.store.letters.close(source.key, done, fate, office.clock(), id);
  }
  await noteExceptions(work, chunk, exceptions);
  const duplicates = (chunk.maybeDuplicate ? done.length : 0) + flagged(exceptions);
  await journal.commit((head) => ({ ...head, counts: settle(head.counts, done.length, exceptions, duplicates) }), {
    chunks: [{ ...chunk, state: 'done', letters: done }],
    exceptions,
  });
  if (leaves) tellLeft(office, source, fate, done.length);
  if (leaves && action === 'replay') {
    const numbers = done.map(({ number }) => number);
    await countSent(office, source, id, numbers);
  }
  if (chunk.audit !== '') {
    const others = exceptions.length > 0 ? `, ${exceptions.length} otherwise` : '';
    await office.store.audit.close(chunk.audit, `${done.length} done${others}`, office.clock());
  }
}
