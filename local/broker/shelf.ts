/**
 * Where an entity keeps its messages, in the orders it needs them: by number, in sequence, ready for delivery, by lock
 * token, by the end of locks and of lives. It knows no rules. The heaps keep items that have become meaningless and are
 * cleared out when these are the greater part, so that every operation costs a logarithm at most.
 */
import { Heap } from './heap.ts';
import type { StoredMessage } from './message.ts';
import { SequenceIndex } from './sequence-index.ts';

export interface Lock {
  /** The tag in hexadecimal. */
  readonly token: string;
  /** 16 bytes, the delivery tag. */
  readonly tag: Buffer;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** A message in its place. Changed only by its entity. */
export interface Entry {
  readonly sequenceNumber: bigint;
  readonly enqueueSequenceNumber: bigint;
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number;
  /** Milliseconds since 1970, or `Infinity`. */
  readonly expiresAt: number;
  message: StoredMessage;
  deliveryCount: number;
  deferred: boolean;
  lock: Lock | undefined;
  gone: boolean;
}

const CLEAR_OUT_FROM = 1000;

export class Shelf {
  readonly #bySequence = new Map<bigint, Entry>();
  readonly #index = new SequenceIndex<Entry>();
  readonly #ready = new Heap<Entry>((a, b) => a.sequenceNumber < b.sequenceNumber);
  readonly #locked = new Map<string, Entry>();
  readonly #lockEnds = new Heap<{ entry: Entry; lock: Lock }>((a, b) => a.lock.until < b.lock.until);
  readonly #lifeEnds = new Heap<Entry>((a, b) => a.expiresAt < b.expiresAt);
  #stale = 0;

  /** Takes an entry in. `mortal`: its time to live is to be observed. */
  add(entry: Entry, mortal: boolean): void {
    this.#bySequence.set(entry.sequenceNumber, entry);
    this.#index.add(entry);
    if (mortal && entry.expiresAt !== Number.POSITIVE_INFINITY) this.#lifeEnds.push(entry);
  }

  /** Takes an entry out for good, with its lock. */
  remove(entry: Entry): void {
    this.unlock(entry);
    this.#bySequence.delete(entry.sequenceNumber);
    entry.gone = true;
    this.#index.left();
    this.#discard();
  }

  get(sequenceNumber: bigint): Entry | undefined {
    return this.#bySequence.get(sequenceNumber);
  }

  /** Up to `count` entries from number `from` (inclusive) on. */
  from(from: bigint, count: number): Entry[] {
    return this.#index.from(from, count);
  }

  /** Lines an entry up for delivery, in its place by number. */
  lineUp(entry: Entry): void {
    this.#ready.push(entry);
  }

  /** Takes the entry with the lowest number out of the line. */
  next(): Entry | undefined {
    for (;;) {
      const entry = this.#ready.pop();
      if (!entry?.gone) return entry;
    }
  }

  /** Puts a lock on an entry, in place of the one it may have. */
  lock(entry: Entry, lock: Lock): void {
    if (entry.lock) this.unlock(entry);
    entry.lock = lock;
    this.#locked.set(lock.token, entry);
    this.#lockEnds.push({ entry, lock });
  }

  unlock(entry: Entry): void {
    if (!entry.lock) return;
    this.#locked.delete(entry.lock.token);
    entry.lock = undefined;
    this.#discard();
  }

  byToken(token: string): Entry | undefined {
    return this.#locked.get(token);
  }

  /** The next entry whose lock has ended; the lock is still on it. */
  nextLockEnd(now: number): Entry | undefined {
    for (let first = this.#lockEnds.peek(); first && first.lock.until <= now; first = this.#lockEnds.peek()) {
      this.#lockEnds.pop();
      if (first.entry.lock === first.lock) return first.entry;
    }
    return undefined;
  }

  /** The next entry whose time to live is over; each is answered once. */
  nextLifeEnd(now: number): Entry | undefined {
    for (let first = this.#lifeEnds.peek(); first && first.expiresAt <= now; first = this.#lifeEnds.peek()) {
      this.#lifeEnds.pop();
      if (!first.gone) return first;
    }
    return undefined;
  }

  #discard(): void {
    if (++this.#stale <= Math.max(CLEAR_OUT_FROM, 2 * this.#bySequence.size)) return;
    this.#ready.retain((entry) => !entry.gone);
    this.#lifeEnds.retain((entry) => !entry.gone);
    this.#lockEnds.retain(({ entry, lock }) => entry.lock === lock);
    this.#stale = 0;
  }
}
