/**
 * Where an entity keeps its messages, in the orders it needs them: by number, in sequence, ready for delivery, by lock
 * token, by the end of locks and of lives, by the time they are scheduled for. It knows no rules. The heaps keep items
 * that have become meaningless and are cleared out when these are the greater part, so that every operation costs a
 * logarithm at most.
 */
import { Heap } from './heap.ts';
import { Lanes } from './lanes.ts';
import type { StoredMessage } from './message.ts';
import { partitionOf } from './partitions.ts';
import { SequenceIndex } from './sequence-index.ts';
import type { SessionLock } from './sessions.ts';

export interface Lock {
  /** The tag in hexadecimal. */
  readonly token: string;
  /** 16 bytes, the delivery tag. */
  readonly tag: Buffer;
  /** Milliseconds since 1970; `Infinity` under a session's lock, with which this one ends. */
  readonly until: number;
  readonly session: SessionLock | undefined;
}

/** A message in its place. Changed only by its entity. */
export interface Entry {
  readonly sequenceNumber: bigint;
  /** The number without its partition. */
  readonly rank: number;
  readonly enqueueSequenceNumber: bigint;
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number;
  /** Milliseconds since 1970, or `Infinity`. */
  readonly expiresAt: number;
  readonly sessionId: string | undefined;
  /** How often it was forwarded. */
  readonly hops: number;
  readonly deadLetterSource: string | undefined;
  /** Milliseconds since 1970, for a message that is not active before. */
  readonly scheduledFor: number | undefined;
  message: StoredMessage;
  deliveryCount: number;
  deferred: boolean;
  /** Who deferred it. */
  deferredBy: object | undefined;
  lock: Lock | undefined;
  gone: boolean;
}

const CLEAR_OUT_FROM = 1000;

export class Shelf {
  readonly #bySequence = new Map<bigint, Entry>();
  /** By partition; a single one where there are none. */
  readonly #indexes = new Map<number, SequenceIndex<Entry>>();
  readonly #ready = new Lanes<Entry>();
  readonly #locked = new Map<string, Entry>();
  readonly #lockEnds = new Heap<{ entry: Entry; lock: Lock }>((a, b) => a.lock.until < b.lock.until);
  readonly #lifeEnds = new Heap<Entry>((a, b) => a.expiresAt < b.expiresAt);
  readonly #starts = new Heap<Entry>(
    (a, b) => startOf(a) < startOf(b) || (startOf(a) === startOf(b) && a.rank < b.rank),
  );
  #stale = 0;

  /** How many messages there are, in any state. */
  get size(): number {
    return this.#bySequence.size;
  }

  /** Takes an entry in. `mortal`: its time to live is to be observed. */
  add(entry: Entry, mortal: boolean): void {
    this.#bySequence.set(entry.sequenceNumber, entry);
    this.#index(partitionOf(entry.sequenceNumber)).add(entry);
    if (entry.scheduledFor !== undefined) this.#starts.push(entry);
    else if (mortal && entry.expiresAt !== Number.POSITIVE_INFINITY) this.#lifeEnds.push(entry);
  }

  /** Takes an entry out for good, with its lock. */
  remove(entry: Entry): void {
    this.unlock(entry);
    this.#bySequence.delete(entry.sequenceNumber);
    entry.gone = true;
    this.#index(partitionOf(entry.sequenceNumber)).left();
    this.#discard();
  }

  get(sequenceNumber: bigint): Entry | undefined {
    return this.#bySequence.get(sequenceNumber);
  }

  /**
   * Up to `count` entries from number `from` (inclusive) on, of one partition only: the first that has any. Only those
   * of a session where one is named.
   */
  from(from: bigint, count: number, session?: string): Entry[] {
    const matches = session === undefined ? undefined : (entry: Entry) => entry.sessionId === session;
    for (const index of this.#inOrder(partitionOf(from))) {
      const found = index.from(from, count, matches);
      if (found.length > 0) return found;
    }
    return [];
  }

  /** Everything, in the order of numbers. */
  all(): Entry[] {
    return this.#inOrder(0).flatMap((index) => index.from(0n, Number.POSITIVE_INFINITY));
  }

  /** Lines an entry up for delivery, in its place by number. */
  lineUp(entry: Entry, lane: string): void {
    this.#ready.push(entry, lane);
  }

  /** Takes the entry with the lowest number out of a line. */
  next(lane: string): Entry | undefined {
    return this.#ready.next(lane);
  }

  /** Names of the lines that have an entry. */
  *readyLanes(): Iterable<string> {
    for (const lane of this.#ready.names()) if (this.#ready.first(lane)) yield lane;
  }

  /** Puts a lock on an entry, in place of the one it may have. */
  lock(entry: Entry, lock: Lock): void {
    if (entry.lock) this.unlock(entry);
    entry.lock = lock;
    this.#locked.set(lock.token, entry);
    if (lock.session) lock.session.entries.add(entry);
    else this.#lockEnds.push({ entry, lock });
  }

  unlock(entry: Entry): void {
    if (!entry.lock) return;
    this.#locked.delete(entry.lock.token);
    entry.lock.session?.entries.delete(entry);
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

  /** The next entry whose time has come; each is answered once. */
  nextStart(now: number): Entry | undefined {
    for (let first = this.#starts.peek(); first && startOf(first) <= now; first = this.#starts.peek()) {
      this.#starts.pop();
      if (!first.gone) return first;
    }
    return undefined;
  }

  #index(partition: number): SequenceIndex<Entry> {
    let index = this.#indexes.get(partition);
    if (!index) {
      index = new SequenceIndex<Entry>();
      this.#indexes.set(partition, index);
    }
    return index;
  }

  #inOrder(from: number): SequenceIndex<Entry>[] {
    const partitions = [...this.#indexes.keys()].filter((partition) => partition >= from).sort((a, b) => a - b);
    return partitions.map((partition) => this.#index(partition));
  }

  #discard(): void {
    if (++this.#stale <= Math.max(CLEAR_OUT_FROM, 2 * this.#bySequence.size)) return;
    this.#ready.clearOut();
    this.#lifeEnds.retain((entry) => !entry.gone);
    this.#starts.retain((entry) => !entry.gone);
    this.#lockEnds.retain(({ entry, lock }) => entry.lock === lock);
    this.#stale = 0;
  }
}

function startOf(entry: Entry): number {
  return entry.scheduledFor ?? 0;
}
