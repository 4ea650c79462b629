/** Decides, with the letters in hand, what is sent and what is not. */
import type { EncodedMessage, LockedLetter, ReplayTarget, Taken } from '../broker.ts';
import { isOfficeError } from '../errors.ts';
import { identityDigest, type SequenceNumber } from '../letter.ts';
import { type Chunk, type ChunkLetter, type Exception, type Fate, type SkipReason, timeToLiveOf } from './plan.ts';
import { isInDuplicateWindow, refusal } from './preflight.ts';
import type { Work } from './work.ts';

/** Nothing is sent with less lock left than this, ms: the completion must still be ours to do. */
const LOCK_MARGIN = 10_000;

/** A letter that may be sent, locked, with the message to send. */
export interface Ready {
  readonly planned: ChunkLetter;
  readonly locked: LockedLetter;
  readonly message: EncodedMessage;
}

/** What is to be done with the letters of a chunk. */
export interface Sorted {
  readonly send: readonly Ready[];
  readonly release: readonly LockedLetter[];
  readonly exceptions: readonly Exception[];
}

/** Decides for every letter of a chunk that is not sent yet: send it, or why not. */
export function sort(work: Work, target: ReplayTarget | undefined, chunk: Chunk, taken: Taken): Sorted {
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
  const { id, choices, facts } = journal.head;
  const now = office.clock();
  const reason = refusal(source, choices, facts, locked.letter, now);
  if (reason !== undefined) return reason;
  // A copy in a sandbox is no replay: the letter itself has still been sent back as often as before.
  const isCopy = choices.target === 'sandbox';
  const replayCount = locked.letter.replay.count + (isCopy ? 0 : 1);
  const timeToLive = timeToLiveOf(choices);
  const renamed = choices.onDuplicate === 'new-id' && isInDuplicateWindow(facts, locked.letter, now);
  try {
    const message = office.broker.reset(locked.message, {
      replayCount,
      replayedAt: now,
      planId: id,
      replayOf: planned.number,
      bypass: choices.bypass,
      sandbox: isCopy,
      ...(choices.target === 'topic' && source.of.kind === 'subscription' && { replayFor: source.of.subscription }),
      ...(timeToLive !== 'keep' && { timeToLive }),
      // The same for every attempt of this plan: where the target detects duplicates, sending again is harmless.
      ...(renamed && { newMessageId: `${id}:${planned.number}` }),
    });
    return target.batchBytes([message]) > target.maxBytes ? 'too-large' : { planned, locked, message };
  } catch (error) {
    if (isOfficeError(error, 'DLO_NOT_RESENDABLE')) return 'not-resendable';
    throw error;
  }
}

/** Whether the locks last long enough to send and complete. */
export function hasLockLeft(send: readonly Ready[], takenAt: number, now: number): boolean {
  const until = Math.min(...send.map(({ locked }) => locked.lockedUntil));
  // Where locks are so short that the margin would never fit, half of the lock must still be there.
  return until - now >= Math.min(LOCK_MARGIN, (until - takenAt) / 2);
}
