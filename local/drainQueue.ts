/**
 * Moves held letters out of a dead-letter queue, without the office's store: the way out of deferral, which no
 * standard tool can go. It goes through the same adapter as the office, because the client library's message
 * objects cannot carry the AMQP types of properties.
 */

import type {
  Broker,
  DeadLetterQueue,
  EncodedMessage,
  LockedLetter,
  ReplayTarget,
  SendOutcome,
} from '../shared/broker.ts';
import type { Source } from '../shared/catalog.ts';
import { errorText, isOfficeError } from '../shared/errors.ts';
import { newPlanId, type PlanId, type SequenceNumber, sequenceNumber } from '../shared/letter.ts';
import { MAX_BATCH_BYTES } from '../shared/plan/plan.ts';

/** What a drain works with. Times are ms. */
export interface Drain {
  readonly broker: Broker;
  readonly source: Source;
  /** The queue that the letters go to. */
  readonly to: string;
  /** Whether several letters may share a transfer: only a plain entity takes letters of different keys together. */
  readonly inBatches: boolean;
  readonly clock: () => number;
  readonly random: (bytes: number) => Uint8Array;
  readonly wait: (ms: number) => Promise<void>;
  /** Told after every chunk. */
  readonly progress?: (moved: number, of: number) => void;
}

/** What is in the dead-letter queue. */
export interface Found {
  readonly held: readonly SequenceNumber[];
  readonly active: number;
}

/** What became of the held letters. Each is in one of the lists, or was gone before its turn. */
export interface Drained {
  readonly planId: PlanId;
  readonly moved: readonly SequenceNumber[];
  /** Of those moved, how many had been sent back as often as the catalog allows, or more. */
  readonly overLimit: number;
  /** Still in the dead-letter queue, by reason. */
  readonly left: ReadonlyMap<string, readonly SequenceNumber[]>;
  /** Still there, though the target may have them, or has them: sending these again may double them. */
  readonly perhapsDoubled: readonly SequenceNumber[];
}

const CHUNK = 100;
const PAGE = 250;
const MAX_TRIES = 5;
const SEND_TIMEOUT_MS = 30_000;
/** Nothing is sent with less of the lock left, or with a third of a shorter lock. */
const LOCK_MARGIN_MS = 10_000;

/** Looks what is there; changes nothing. */
export async function findHeld(queue: DeadLetterQueue): Promise<Found> {
  const held: SequenceNumber[] = [];
  let active = 0;
  for (let from = sequenceNumber(0n); ; ) {
    const page = await queue.scan(from, PAGE);
    const last = page.at(-1);
    if (last === undefined) return { held, active };
    for (const { sequenceNumber: number, state } of page) {
      if (state === 'held') held.push(number);
      else active += 1;
    }
    from = sequenceNumber(BigInt(last.sequenceNumber) + 1n);
  }
}

/**
 * Sends the held letters `numbers` to the queue `to`, in this order, and completes each after the broker accepted it.
 * Stops at the first letter whose outcome is unknown, and when the target or the broker fails. Throws only when the
 * target cannot be opened.
 */
export async function drain(
  options: Drain,
  queue: DeadLetterQueue,
  numbers: readonly SequenceNumber[],
): Promise<Drained> {
  const target = await options.broker.openTarget(options.source, options.to);
  const run = new DrainRun(options, queue, target);
  try {
    for (let at = 0; at < numbers.length; at += CHUNK) {
      const chunk = numbers.slice(at, at + CHUNK);
      await run.chunk(chunk);
      if (run.stopped !== undefined) {
        run.leave(`not tried: ${run.stopped}`, numbers.slice(at + CHUNK));
        break;
      }
      options.progress?.(run.moved.length, numbers.length);
    }
  } finally {
    await target.close();
  }
  return run;
}

interface Parcel {
  readonly letters: readonly LockedLetter[];
  readonly messages: readonly EncodedMessage[];
}

class DrainRun implements Drained {
  readonly planId: PlanId;
  readonly moved: SequenceNumber[] = [];
  readonly left = new Map<string, SequenceNumber[]>();
  readonly perhapsDoubled: SequenceNumber[] = [];
  overLimit = 0;
  /** Why nothing more is sent. */
  stopped: string | undefined;
  readonly #options: Drain;
  readonly #queue: DeadLetterQueue;
  readonly #target: ReplayTarget;

  constructor(options: Drain, queue: DeadLetterQueue, target: ReplayTarget) {
    this.#options = options;
    this.#queue = queue;
    this.#target = target;
    this.planId = newPlanId(options.clock(), options.random(5));
  }

  leave(reason: string, numbers: readonly SequenceNumber[]): void {
    if (numbers.length > 0) this.left.set(reason, [...(this.left.get(reason) ?? []), ...numbers]);
  }

  async chunk(numbers: readonly SequenceNumber[]): Promise<void> {
    try {
      const taken = await this.#queue.take(numbers);
      this.leave('locked by somebody else', taken.busy);
      this.leave('active, not held', taken.active);
      const margin = Math.min(LOCK_MARGIN_MS, (this.#lockEnd(taken.locked) - this.#options.clock()) / 3);
      let parcels = this.#pack(await this.#reset(taken.locked));
      while (parcels.length > 0) {
        const [parcel, ...rest] = parcels as [Parcel, ...Parcel[]];
        parcels = [...(await this.#move(parcel, margin)), ...rest];
        if (this.stopped === undefined) continue;
        await this.#giveBack(
          `not tried: ${this.stopped}`,
          parcels.flatMap(({ letters }) => letters),
        );
        return;
      }
    } catch (error) {
      if (!isOfficeError(error, 'DLO_BROKER_UNAVAILABLE')) throw error;
      this.stopped = textOf(error);
      const known = new Set([...this.moved, ...this.perhapsDoubled, ...[...this.left.values()].flat()]);
      this.leave(
        this.stopped,
        numbers.filter((number) => !known.has(number)),
      );
    }
  }

  /** Makes the messages that go out; letters for which that is not possible go back at once. */
  async #reset(letters: readonly LockedLetter[]): Promise<Parcel[]> {
    const ready: Parcel[] = [];
    for (const letter of letters) {
      try {
        const message = this.#options.broker.reset(letter.message, {
          replayCount: letter.letter.replay.count + 1,
          replayedAt: this.#options.clock(),
          planId: this.planId,
          replayOf: letter.letter.sequenceNumber,
          bypass: false,
        });
        if (this.#target.batchBytes([message]) <= this.#target.maxBytes)
          ready.push({ letters: [letter], messages: [message] });
        else await this.#giveBack('too large for the target', [letter]);
      } catch (error) {
        if (!isOfficeError(error, 'DLO_NOT_RESENDABLE')) throw error;
        await this.#giveBack(error.message, [letter]);
      }
    }
    return ready;
  }

  /** Puts neighbours together as far as one transfer goes. */
  #pack(singles: readonly Parcel[]): Parcel[] {
    if (!this.#options.inBatches) return [...singles];
    const limit = Math.min(this.#target.maxBytes, MAX_BATCH_BYTES);
    const parcels: Parcel[] = [];
    for (const single of singles) {
      const last = parcels.at(-1);
      const together = last && [...last.messages, ...single.messages];
      if (together && this.#target.batchBytes(together) <= limit) {
        parcels[parcels.length - 1] = { letters: [...(last?.letters ?? []), ...single.letters], messages: together };
      } else parcels.push(single);
    }
    return parcels;
  }

  /** Sends one parcel; gives the parcels that are to be sent in its place, if it has to be divided. */
  async #move(parcel: Parcel, margin: number): Promise<Parcel[]> {
    const outcome = await this.#send(parcel, margin);
    const numbers = parcel.letters.map(({ letter }) => letter.sequenceNumber);
    switch (outcome?.kind) {
      case 'accepted':
        await this.#complete(parcel.letters);
        return [];
      case 'refused-message':
        if (parcel.letters.length > 1) return divide(parcel);
        await this.#giveBack(`refused by the target: ${outcome.code} ${outcome.description}`.trim(), parcel.letters);
        return [];
      case 'unknown':
        this.stopped = `nobody knows whether the target has the last letters: ${outcome.description}`;
        this.perhapsDoubled.push(...numbers);
        await this.#release(parcel.letters);
        return [];
      case undefined:
        await this.#giveBack('the lock became too short, run the drain again', parcel.letters);
        return [];
      default:
        this.stopped = `the target takes nothing: ${outcome?.code} ${outcome?.description}`.trim();
        await this.#giveBack(this.stopped, parcel.letters);
        return [];
    }
  }

  /** Sends, and sends again when the broker said "not now"; `undefined` when the locks would not last. */
  async #send({ letters, messages }: Parcel, margin: number): Promise<SendOutcome | undefined> {
    for (let tries = 1; ; tries++) {
      const lock = this.#lockEnd(letters) - this.#options.clock();
      if (lock < margin) return undefined;
      const outcome = await this.#target.send(messages, Math.min(lock, SEND_TIMEOUT_MS));
      if (outcome.kind !== 'refused-busy' || tries === MAX_TRIES) return outcome;
      await this.#options.wait(500 * 2 ** tries);
    }
  }

  /** The target has the letters, so nothing may go wrong from here on without being told. */
  async #complete(letters: readonly LockedLetter[]): Promise<void> {
    const numbers = letters.map(({ letter }) => letter.sequenceNumber);
    const { maxReplays } = this.#options.source.replay;
    let open = new Set(numbers);
    try {
      const settled = await this.#queue.complete(letters.map(({ lock }) => lock)).catch(() => []);
      open = new Set(numbers.filter((_, i) => settled[i] !== 'settled'));
      if (open.size > 0) open = await this.#completeAgain([...open]);
    } catch (error) {
      this.stopped = textOf(error);
    }
    const gone = letters.filter(({ letter }) => !open.has(letter.sequenceNumber));
    this.moved.push(...gone.map(({ letter }) => letter.sequenceNumber));
    this.overLimit += gone.filter(({ letter }) => letter.replay.count >= maxReplays).length;
    this.perhapsDoubled.push(...open);
    if (open.size > 0) this.stopped ??= 'letters that were sent could not be removed';
  }

  /** No answer, or a lock that is gone: the letter may be gone too, or it can be had again. */
  async #completeAgain(numbers: readonly SequenceNumber[]): Promise<Set<SequenceNumber>> {
    const taken = await this.#queue.take(numbers);
    const settled = await this.#queue.complete(taken.locked.map(({ lock }) => lock));
    const failed = taken.locked.filter((_, i) => settled[i] !== 'settled');
    return new Set([...taken.busy, ...taken.active, ...failed.map(({ letter }) => letter.sequenceNumber)]);
  }

  async #giveBack(reason: string, letters: readonly LockedLetter[]): Promise<void> {
    this.leave(
      reason,
      letters.map(({ letter }) => letter.sequenceNumber),
    );
    await this.#release(letters);
  }

  /** Their locks end by themselves, too; giving them back only makes it sooner. */
  async #release(letters: readonly LockedLetter[]): Promise<void> {
    try {
      await this.#queue.release(letters.map(({ lock }) => lock));
    } catch (error) {
      this.stopped ??= textOf(error);
    }
  }

  #lockEnd(letters: readonly LockedLetter[]): number {
    return Math.min(...letters.map(({ lockedUntil }) => lockedUntil));
  }
}

function divide({ letters, messages }: Parcel): Parcel[] {
  return letters.map((letter, i) => ({ letters: [letter], messages: messages.slice(i, i + 1) }));
}

/** An error of the office says it all in its message; its causes would say it twice. */
export function textOf(error: unknown): string {
  return isOfficeError(error) ? error.message : errorText(error);
}
