/**
 * Moves held letters out of a dead-letter queue, without the office's store: the way out of deferral, which no
 * standard tool can go. It goes through the same adapter as the office, because the client library's message
 * objects cannot carry the AMQP types of properties. What is sent was looked at before, and is judged again in hand.
 */

import type {
  Broker,
  DeadLetterQueue,
  EncodedMessage,
  LockedLetter,
  ReplayTarget,
  SendOutcome,
} from '../shared/brokers/broker.ts';
import { errorText, isOfficeError } from '../shared/errors.ts';
import {
  type IdentifiedLetter,
  identityDigest,
  newPlanId,
  type PlanId,
  type SequenceNumber,
  sequenceNumber,
} from '../shared/letter.ts';
import { type Finding, MAX_BATCH_BYTES, needsSingles } from '../shared/records/plan.ts';
import { Judge, type WayOut, withLetter } from './wayOut.ts';

/** What a drain works with. Times are ms. */
export interface Drain {
  readonly broker: Broker;
  /** Where the letters go to, and what is known of it. */
  readonly way: WayOut;
  readonly clock: () => number;
  readonly random: (bytes: number) => Uint8Array;
  readonly wait: (ms: number) => Promise<void>;
  /** Told after every chunk. */
  readonly progress?: (moved: number, of: number) => void;
}

/** What is in the dead-letter queue, and what would be done with it. */
export interface Found {
  /** Held letters, in the order in which they are sent. */
  readonly held: readonly IdentifiedLetter[];
  readonly active: number;
  /** Of the held ones, those that would stay. */
  readonly staying: number;
  /** About the target and the letters. */
  readonly findings: readonly Finding[];
}

/** What became of the held letters. Each is in one of the lists, or was gone before its turn. */
export interface Drained {
  readonly planId: PlanId;
  /** Accepted by a target that keeps what it accepts, and then removed here. */
  readonly moved: readonly SequenceNumber[];
  /** Of those moved, how many went under a new message id. */
  readonly renamed: number;
  /** Not there any more when their turn came: somebody else took them. */
  readonly gone: readonly SequenceNumber[];
  /** Still in the dead-letter queue, by reason. */
  readonly left: ReadonlyMap<string, readonly SequenceNumber[]>;
  /** Still there, though the target may have them, or has them: sending these again may double them. */
  readonly perhapsDoubled: readonly SequenceNumber[];
}

const CHUNK = 100;
const PAGE = 250;
/** Why a letter is left whose number belongs to another message by now. */
const OTHER_LETTER = 'another letter than the one that was shown';
const MAX_TRIES = 5;
const SEND_TIMEOUT_MS = 30_000;
/** Nothing is sent with less of the lock left, or with a third of a shorter lock. */
const LOCK_MARGIN_MS = 10_000;

/** Looks what is there and judges it; changes nothing. */
export async function findHeld(
  { way, clock, random }: Pick<Drain, 'way' | 'clock' | 'random'>,
  queue: DeadLetterQueue,
): Promise<Found> {
  const judge = new Judge(way, newPlanId(clock(), random(5)));
  const held: IdentifiedLetter[] = [];
  let [active, staying] = [0, 0];
  let findings = way.findings;
  for (let from = sequenceNumber(0n); ; ) {
    const page = await queue.peek(from, PAGE);
    const last = page.at(-1)?.letter;
    if (last === undefined) return { held, active, staying, findings };
    for (const { letter } of page) {
      if (letter.state !== 'held') {
        active += 1;
        continue;
      }
      held.push({ number: letter.sequenceNumber, identity: identityDigest(letter) });
      const verdict = judge.verdict(letter, clock());
      if ('stays' in verdict) staying += 1;
      findings = withLetter(findings, way, letter, verdict);
    }
    from = sequenceNumber(BigInt(last.sequenceNumber) + 1n);
  }
}

/**
 * Sends the held `letters` on their way, in this order, and completes each after the broker accepted it.
 * Stops at the first letter whose outcome is unknown, and when the target or the broker fails. Throws only when the
 * target cannot be opened.
 */
export async function drain(
  options: Drain,
  queue: DeadLetterQueue,
  letters: readonly IdentifiedLetter[],
): Promise<Drained> {
  const target = await options.broker.openTarget(options.way.source, options.way.to);
  const run = new DrainRun(options, queue, target);
  try {
    for (let at = 0; at < letters.length; at += CHUNK) {
      await run.chunk(letters.slice(at, at + CHUNK));
      if (run.stopped !== undefined) {
        run.leave(
          `not tried: ${run.stopped}`,
          letters.slice(at + CHUNK).map(({ number }) => number),
        );
        break;
      }
      options.progress?.(run.moved.length, letters.length);
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
  readonly gone: SequenceNumber[] = [];
  renamed = 0;
  /** Why nothing more is sent. */
  stopped: string | undefined;
  readonly #options: Drain;
  readonly #queue: DeadLetterQueue;
  readonly #target: ReplayTarget;
  readonly #judge: Judge;
  /** Letters that go under a new message id. */
  readonly #renamed = new Set<SequenceNumber>();

  constructor(options: Drain, queue: DeadLetterQueue, target: ReplayTarget) {
    this.#options = options;
    this.#queue = queue;
    this.#target = target;
    this.planId = newPlanId(options.clock(), options.random(5));
    this.#judge = new Judge(options.way, this.planId);
  }

  leave(reason: string, numbers: readonly SequenceNumber[]): void {
    if (numbers.length > 0) this.left.set(reason, [...(this.left.get(reason) ?? []), ...numbers]);
  }

  async chunk(letters: readonly IdentifiedLetter[]): Promise<void> {
    const shown = new Map(letters.map(({ number, identity }) => [number, identity]));
    const numbers = [...shown.keys()];
    try {
      const taken = await this.#queue.take(numbers);
      this.gone.push(...taken.absent);
      this.leave('locked by somebody else', taken.busy);
      this.leave('active, not held', taken.active);
      const margin = Math.min(LOCK_MARGIN_MS, (this.#lockEnd(taken.locked) - this.#options.clock()) / 3);
      let parcels = this.#pack(await this.#reset(taken.locked, shown));
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
      const known = new Set([...this.moved, ...this.perhapsDoubled, ...this.gone, ...[...this.left.values()].flat()]);
      this.leave(
        this.stopped,
        numbers.filter((number) => !known.has(number)),
      );
    }
  }

  /** Makes the messages that go out; letters that must not go, or cannot, are given back at once. */
  async #reset(letters: readonly LockedLetter[], shown: ReadonlyMap<SequenceNumber, string>): Promise<Parcel[]> {
    const ready: Parcel[] = [];
    for (const letter of letters) {
      // Entities are recreated, and their numbers begin again: only what was shown goes.
      if (identityDigest(letter.letter) !== shown.get(letter.letter.sequenceNumber)) {
        await this.#giveBack(OTHER_LETTER, [letter]);
        continue;
      }
      const verdict = this.#judge.verdict(letter.letter, this.#options.clock());
      if ('stays' in verdict) {
        await this.#giveBack(verdict.stays, [letter]);
        continue;
      }
      if (verdict.change.newMessageId !== undefined) this.#renamed.add(letter.letter.sequenceNumber);
      try {
        const message = this.#options.broker.reset(letter.message, {
          replayCount: letter.letter.replay.count + 1,
          replayedAt: this.#options.clock(),
          planId: this.planId,
          replayOf: letter.letter.sequenceNumber,
          bypass: false,
          ...verdict.change,
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
    // A queue that the catalog calls partitioned or with sessions takes letters of different keys only one by one.
    if (needsSingles(this.#options.way.facts)) return [...singles];
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
    this.renamed += gone.filter(({ letter }) => this.#renamed.has(letter.sequenceNumber)).length;
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
