/** Decides, with the letters in hand, what is sent and what is not. */
import type { EncodedMessage, LockedLetter, ReplayTarget, Taken } from '../brokers/broker.ts';
import { isOfficeError } from '../errors.ts';
import { compareSequenceNumbers, identityDigest, type SequenceNumber } from '../letter.ts';
import {
  type Chunk,
  type ChunkLetter,
  type Exception,
  type Fate,
  newIdOf,
  type SkipReason,
  timeToLiveOf,
} from '../records/plan.ts';
import { isInDuplicateWindow } from './duplicates.ts';
import { refusal } from './preflight.ts';
import type { ChunkSends } from './sends.ts';
import type { Work } from './work.ts';

/** Nothing is sent with less lock left than this, ms: the completion must still be ours to do. */
const LOCK_MARGIN = 10_000;

/** A letter that may be sent, locked, with the message to send. */
export interface Ready {
  readonly planned: ChunkLetter;
  readonly locked: LockedLetter;
  readonly message: EncodedMessage;
  /** The id it is sent under. */
  readonly messageId: string | undefined;
}

/** What is to be done with the letters of a chunk. */
export interface Sorted {
  readonly send: readonly Ready[];
  readonly release: readonly LockedLetter[];
  readonly exceptions: readonly Exception[];
}

/** Decides for every letter of a chunk that is not sent yet: send it, or why not. `sends`: what is known of their message ids. */
export function sort(
  work: Work,
  target: ReplayTarget | undefined,
  chunk: Chunk,
  taken: Taken,
  sends: ChunkSends,
): Sorted {
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
  /** Ids that letters before it in this chunk are sent under: to the target they come at the same time. */
  const ids = new Set<string>();
  // As planned: oldest first.
  const inOrder = taken.locked.toSorted((a, b) =>
    compareSequenceNumbers(a.letter.sequenceNumber, b.letter.sequenceNumber),
  );
  for (const locked of inOrder) {
    const number = locked.letter.sequenceNumber;
    const letter = planned.get(number) as ChunkLetter;
    const prepared = prepare(work, target, letter, locked, sends, ids);
    if (typeof prepared !== 'string') {
      send.push(prepared);
      if (prepared.messageId !== undefined) ids.add(prepared.messageId);
    } else {
      except(number, { kind: 'skipped', reason: prepared });
      back.push(locked);
    }
  }
  return { send, release: back, exceptions };
}

function prepare(
  work: Work,
  target: ReplayTarget | undefined,
  planned: ChunkLetter,
  locked: LockedLetter,
  sends: ChunkSends,
  ids: ReadonlySet<string>,
): Ready | SkipReason {
  if (identityDigest(locked.letter) !== planned.identity) return 'not-same-message';
  const { letter } = locked;
  if (target === undefined) return { planned, locked, message: locked.message, messageId: letter.messageId };
  const { office, source, journal } = work;
  const { id, choices, facts } = journal.head;
  const now = office.clock();
  const otherSend = letter.messageId !== undefined && ids.has(letter.messageId) ? now : sends.otherSend(letter);
  const reason = refusal(source, choices, facts, letter, now, otherSend);
  if (reason !== undefined) return reason;
  // A copy in a sandbox is no replay: the letter itself has still been sent back as often as before.
  const isCopy = choices.target === 'sandbox';
  const replayCount = letter.replay.count + (isCopy ? 0 : 1);
  const timeToLive = timeToLiveOf(choices);
  const isRenamed =
    choices.messageId === 'new' ||
    (choices.onDuplicate === 'new-id' &&
      (sends.wasRenamed(planned.number) || isInDuplicateWindow(facts, choices, letter, now, otherSend)));
  const newMessageId = isRenamed ? newIdOf(id, planned.number) : undefined;
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
      ...(newMessageId !== undefined && { newMessageId }),
    });
    if (target.batchBytes([message]) > target.maxBytes) return 'too-large';
    return { planned, locked, message, messageId: newMessageId ?? letter.messageId };
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
