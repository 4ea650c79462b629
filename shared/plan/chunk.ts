/**
 * One chunk, once through: take → check identity → reset → journal `sending` → send → journal `sent` → complete → mark → `done`.
 * A discard: take → check identity → archive, where the source has one → journal `sent` → complete → mark → `done`.
 *
 * The order is the promise. A letter is completed only after the broker accepted the copy and that fact is in the journal;
 * whatever stops this in between leaves a chunk whose state says exactly how far it came.
 */
import type { LockedLetter, ReplayTarget, Taken } from '../brokers/broker.ts';
import { type Chunk, type Exception, type Fate, MAX_BATCH_BYTES, settle } from '../records/plan.ts';
import { tracesOf } from '../telemetry/links.ts';
import { hasLockLeft, type Sorted, sort } from './decide.ts';
import { close, complete, finishSent, noteExceptions } from './ending.ts';
import { divide, setAside, waitForBusy } from './rearrange.ts';
import type { ChunkSends } from './sends.ts';
import { archive, type ChunkResult, flagged, NEXT, release, type Work } from './work.ts';

/** Works on one unfinished chunk. Throws `DLO_BROKER_UNAVAILABLE`, `DLO_STORE_UNAVAILABLE`, or when taken over. */
export async function workOn(work: Work, chunk: Chunk): Promise<ChunkResult> {
  // Opened before anything is locked. What was sent needs no target, so that it is completed even without one.
  const sends = work.journal.head.action === 'replay' && chunk.state !== 'sent';
  const target = sends ? await work.openTarget() : undefined;
  const numbers = chunk.letters.map(({ number }) => number);
  const isHeld = work.source.mode === 'defer';
  const taken = isHeld ? await work.queue.take(numbers) : await work.queue.seize(numbers, work.office.reach);
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
  return decide(work, target, chunk, taken, takenAt, chunk.sends > 0);
}

/** Decides with the letters in hand, and sends or discards. `areLookedUp`: see {@link Sends.of}. */
async function decide(
  work: Work,
  target: ReplayTarget | undefined,
  chunk: Chunk,
  taken: Taken,
  takenAt: number,
  areLookedUp: boolean,
): Promise<ChunkResult> {
  const letters = taken.locked.map(({ letter }) => letter);
  const sends = await work.sends.of(letters, areLookedUp);
  const sorted = sort(work, target, chunk, taken, sends);
  if (sorted.send.length === 0) {
    await release(work, sorted.release);
    await close(work, chunk, [], sorted.exceptions);
    return NEXT;
  }
  if (target === undefined) return discard(work, chunk, sorted);
  const result = await replay(work, target, chunk, sorted, sends, takenAt);
  if (result !== undefined) return result;
  if (!areLookedUp) return decide(work, target, chunk, taken, takenAt, true);
  await release(work, allLocked(sorted));
  return { kind: 'again' };
}

/** Sends. `undefined`: nothing was begun, because more was known of the ids than `sends`. */
async function replay(
  work: Work,
  target: ReplayTarget,
  chunk: Chunk,
  sorted: Sorted,
  sends: ChunkSends,
  takenAt: number,
): Promise<ChunkResult | undefined> {
  const { office, journal } = work;
  const messages = sorted.send.map(({ message }) => message);
  await noteExceptions(work, chunk, sorted.exceptions);
  const limit = Math.min(target.maxBytes, MAX_BATCH_BYTES);
  if (messages.length > 1 && target.batchBytes(messages) > limit) return divide(work, chunk, sorted);
  const withdraw = await sends.claim(sorted.send.map(({ planned: { number }, messageId }) => ({ number, messageId })));
  if (withdraw === false) return undefined;
  const again = chunk.state === 'sending';
  const sending: Chunk = {
    ...chunk,
    state: 'sending',
    letters: sorted.send.map(({ planned }) => planned),
    maybeDuplicate: chunk.maybeDuplicate || again,
    sends: chunk.sends + 1,
    audit: chunk.audit || (await openAudit(work, chunk)),
  };
  /** For when it turns out that the broker has nothing of this send. */
  const unsent: Chunk = { ...sending, state: 'planned', sends: chunk.sends };
  await release(work, sorted.release);
  await journal.commit(
    (head) => ({ ...head, counts: settle(head.counts, 0, sorted.exceptions, flagged(sorted.exceptions)) }),
    { chunks: [sending], exceptions: sorted.exceptions },
  );
  if (!hasLockLeft(sorted.send, takenAt, office.clock())) {
    // Nothing was sent under this journal entry unless it was there before.
    await journal.commit((head) => head, { chunks: [again ? { ...sending, sends: chunk.sends } : unsent] });
    await withdraw();
    await release(
      work,
      sorted.send.map(({ locked }) => locked),
    );
    return { kind: 'wait', why: 'the locks would have ended before the letters could be completed' };
  }
  work.assertLeased();
  const span = {
    kind: 'producer',
    attributes: { source: work.source.name, planId: journal.head.id, letters: messages.length },
    links: () => tracesOf(sorted.send.map(({ locked }) => locked.letter)),
  } as const;
  const outcome = await office.telemetry.span('send', span, () => target.send(messages, office.sendTimeoutMs));
  switch (outcome.kind) {
    case 'accepted': {
      work.refusedAlone.clear();
      if (journal.head.choices.target === 'sandbox') return closeCopied(work, sending, sorted);
      const sent: Chunk = { ...sending, state: 'sent' };
      await journal.commit((head) => head, { chunks: [sent] });
      const locked = sorted.send.map((ready) => ready.locked);
      const finish = () => complete(work, sent, locked);
      return work.mayOverlap() ? { kind: 'sent', finish } : finish();
    }
    case 'unknown':
      // The chunk stays `sending`: it is sent again by that word of the journal, and marked.
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      return outcomeUnknown(sending, outcome.description);
    case 'refused-message': {
      await withdraw();
      if (sorted.send.length > 1) return divide(work, unsent, { ...sorted, exceptions: [], release: [] });
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      const reason = `${outcome.code}: ${outcome.description}`;
      await close(work, unsent, [], exceptionsFor(unsent, { kind: 'failed', reason }));
      return NEXT;
    }
    case 'refused-unexplained': {
      await withdraw();
      if (sorted.send.length > 1) return divide(work, unsent, { ...sorted, exceptions: [], release: [] });
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      const reason = `${outcome.code}: ${outcome.description}`;
      if (chunk.sends === 0) return setAside(work, { ...unsent, sends: sending.sends }, reason);
      await close(work, unsent, [], exceptionsFor(unsent, { kind: 'failed', reason }));
      return NEXT;
    }
    case 'refused-target':
    case 'refused-busy': {
      await release(
        work,
        sorted.send.map(({ locked }) => locked),
      );
      await journal.commit((head) => head, { chunks: [unsent] });
      await withdraw();
      const why = `the target refuses: ${outcome.code}: ${outcome.description}`;
      return outcome.kind === 'refused-busy' ? { kind: 'wait', why } : { kind: 'refused', why };
    }
  }
}

/** All that is locked of a chunk. */
function allLocked({ send, release: back }: Sorted): LockedLetter[] {
  return [...send.map(({ locked }) => locked), ...back];
}

/** Sends of one chunk, after which an unknown outcome is no accident any more. */
const MAX_SENDS = 3;

/** Every further send may be one copy more of each letter: a broker that never answers must not be sent to for ever. */
function outcomeUnknown({ sends, letters }: Chunk, description: string): ChunkResult {
  const why = `the outcome of a send is unknown: ${description}`;
  if (sends < MAX_SENDS) return { kind: 'wait', why };
  const advice = 'look at the target before resuming, which sends them once more, or cancel';
  return { kind: 'refused', why: `${why}. ${letters.length} letters were sent ${sends} times: ${advice}` };
}

/** Copies are in the sandbox: the letters stay held as they are, nothing is completed. */
async function closeCopied(work: Work, chunk: Chunk, sorted: Sorted): Promise<ChunkResult> {
  await release(
    work,
    sorted.send.map(({ locked }) => locked),
  );
  await close(work, chunk, chunk.letters, []);
  return NEXT;
}

async function discard(work: Work, chunk: Chunk, sorted: Sorted): Promise<ChunkResult> {
  const locked = sorted.send.map((ready) => ready.locked);
  const unarchived = await archive(work, locked);
  if (unarchived !== undefined) {
    await release(work, [...sorted.release, ...locked]);
    return { kind: 'wait', why: unarchived };
  }
  const decided: Chunk = {
    ...chunk,
    state: 'sent',
    letters: sorted.send.map(({ planned }) => planned),
    audit: chunk.audit || (await openAudit(work, chunk)),
  };
  await release(work, sorted.release);
  await noteExceptions(work, chunk, sorted.exceptions);
  await work.journal.commit((head) => ({ ...head, counts: settle(head.counts, 0, sorted.exceptions, 0) }), {
    chunks: [decided],
    exceptions: sorted.exceptions,
  });
  work.assertLeased();
  return complete(work, decided, locked);
}

function exceptionsFor(chunk: Chunk, fate: Fate): Exception[] {
  return chunk.letters.map(({ number }) => ({ number, fate, maybeDuplicate: chunk.maybeDuplicate }));
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
