/**
 * One message store with Service Bus semantics: a queue, a subscription, or the dead-letter queue of either. A state
 * machine over a clock, without sockets: every call first lets happen what has fallen due.
 *
 *     active ──lock──> active+locked ──complete──> gone
 *       ^                 │  │  └─defer──> deferred ──lock by number──> deferred+locked ──abandon──> deferred
 *       └──abandon, lock expiry──┘  └─dead-letter, too many deliveries, expired──> the dead-letter queue
 */
import type { Clock } from './clock.ts';
import { BrokerError, lockLost } from './errors.ts';
import { type AddedProperty, type Arrival, deliver, withProperties } from './message.ts';
import { REASON } from './reasons.ts';
import { type Entry, type Lock, Shelf } from './shelf.ts';

/** Behaviour of a queue or subscription. Durations in milliseconds. */
export interface EntitySettings {
  readonly lockDuration: number;
  readonly maxDeliveryCount: number;
  /** `Infinity` when messages without a time to live of their own never expire. */
  readonly defaultTimeToLive: number;
  readonly deadLetteringOnMessageExpiration: boolean;
}

/** What an entity needs from outside. */
export interface EntityContext {
  readonly clock: Clock;
  /** A fresh 16-byte lock token, in the byte order of delivery tags. */
  readonly lockToken: () => Buffer;
}

/** A message handed out under a lock. `token` is the tag in hexadecimal, the key for every settlement. */
export interface LockedMessage {
  readonly token: string;
  readonly tag: Buffer;
  readonly entry: Entry;
}

/** What a consumer decides about a locked message. */
export type Settlement =
  | { readonly kind: 'complete' | 'release' }
  | { readonly kind: 'abandon' | 'defer' | 'dead-letter'; readonly properties: readonly AddedProperty[] };

export class Entity {
  readonly path: string;
  readonly settings: EntitySettings;
  /** Where dead letters go; absent in a dead-letter queue, which neither counts, expires nor dead-letters. */
  readonly deadLetterQueue: Entity | undefined;
  readonly #context: EntityContext;
  readonly #listeners: (() => void)[] = [];
  #nextListener = 0;
  #lastNumber = 0n;
  #shelf = new Shelf();

  constructor(path: string, settings: EntitySettings, context: EntityContext, deadLetterQueue?: Entity) {
    this.path = path;
    this.settings = settings;
    this.#context = context;
    this.deadLetterQueue = deadLetterQueue;
  }

  /** Empties the entity and restarts its numbering; locks held on it are lost. */
  clear(): void {
    this.#lastNumber = 0n;
    this.#shelf = new Shelf();
  }

  /** Calls `listener` whenever a message may have become available; returns how to stop that. */
  onAvailable(listener: () => void): () => void {
    this.#listeners.push(listener);
    return () => {
      const at = this.#listeners.indexOf(listener);
      if (at >= 0) this.#listeners.splice(at, 1);
    };
  }

  /** Stores a message. `enqueueSequenceNumber` is the number a topic gave it, for a subscription's copy. */
  enqueue(arrival: Arrival, enqueueSequenceNumber?: bigint): Entry {
    const enqueuedAt = this.#context.clock.now();
    const sequenceNumber = ++this.#lastNumber;
    const entry: Entry = {
      sequenceNumber,
      enqueueSequenceNumber: enqueueSequenceNumber ?? sequenceNumber,
      enqueuedAt,
      expiresAt: expiryOf(arrival, enqueuedAt, this.settings.defaultTimeToLive),
      message: arrival.message,
      deliveryCount: 0,
      deferred: false,
      lock: undefined,
      gone: false,
    };
    this.#place(entry);
    this.sweep();
    return entry;
  }

  /** Locks the active message with the lowest number; `undefined` when there is none. */
  lockNext(): LockedMessage | undefined {
    this.sweep();
    const entry = this.#shelf.next();
    return entry && this.#lock(entry);
  }

  /** Takes the active message with the lowest number out for good (receive-and-delete). */
  removeNext(): Entry | undefined {
    this.sweep();
    const entry = this.#shelf.next();
    if (entry) this.#shelf.remove(entry);
    return entry;
  }

  /** Locks deferred messages by number: all of them, or none and an error with the condition message-not-found. */
  lockDeferred(numbers: readonly bigint[]): LockedMessage[] {
    return this.#findDeferred(numbers).map((entry) => this.#lock(entry));
  }

  /** Removes deferred messages by number (receive-and-delete): all of them, or none. */
  removeDeferred(numbers: readonly bigint[]): Entry[] {
    const entries = this.#findDeferred(numbers);
    for (const entry of entries) this.#shelf.remove(entry);
    return entries;
  }

  /** Up to `count` messages from number `from` (inclusive) on, in any state. Changes nothing. */
  peek(from: bigint, count: number): Entry[] {
    this.sweep();
    return this.#shelf.from(from, count);
  }

  /** Renews all the locks, or none and an error; answers until when each holds, in milliseconds since 1970. */
  renew(tokens: readonly string[]): number[] {
    const entries = this.#locked(tokens);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    return entries.map((entry) => {
      this.#shelf.lock(entry, { ...(entry.lock as Lock), until });
      return until;
    });
  }

  /** Settles all the locked messages in one way, or none and an error. */
  settle(tokens: readonly string[], settlement: Settlement): void {
    const entries = this.#locked(tokens);
    if (settlement.kind === 'dead-letter' && !this.deadLetterQueue) {
      throw new BrokerError('amqp:not-allowed', `A message cannot be dead-lettered from '${this.path}'.`);
    }
    for (const entry of entries) this.#settle(entry, settlement);
    this.sweep();
  }

  /** Lets happen what has fallen due: lock expiry first, it may end in expiry or in the dead-letter queue. */
  sweep(): void {
    const now = this.#context.clock.now();
    const shelf = this.#shelf;
    for (let entry = shelf.nextLockEnd(now); entry; entry = shelf.nextLockEnd(now)) this.#unlock(entry, true);
    for (let entry = shelf.nextLifeEnd(now); entry; entry = shelf.nextLifeEnd(now)) {
      // Locked: decided when the lock ends. Deferred: when it is asked for (Service Bus documentation, message deferral).
      if (!entry.lock && !entry.deferred) this.#expire(entry);
    }
  }

  /** The encoded message as a receiver under a lock, or a peek, gets it. */
  encoded(entry: Entry, omitBody = false, underLock = false): Buffer {
    const lockedUntil = underLock ? entry.lock?.until : undefined;
    return deliver(
      entry.message,
      {
        deliveryCount: entry.deliveryCount,
        sequenceNumber: entry.sequenceNumber,
        enqueueSequenceNumber: entry.enqueueSequenceNumber,
        enqueuedAt: entry.enqueuedAt,
        deferred: entry.deferred,
        ...(lockedUntil === undefined ? {} : { lockedUntil }),
      },
      omitBody,
    );
  }

  #place(entry: Entry): void {
    // A dead-letter queue does not observe the time to live (Service Bus documentation).
    this.#shelf.add(entry, this.deadLetterQueue !== undefined);
    this.#makeReady(entry);
  }

  #makeReady(entry: Entry): void {
    this.#shelf.lineUp(entry);
    // Each time another consumer is asked first, so that one alone does not get everything.
    const listeners = [...this.#listeners];
    this.#nextListener++;
    for (let i = 0; i < listeners.length; i++) listeners[(this.#nextListener + i) % listeners.length]?.();
  }

  #lock(entry: Entry): LockedMessage {
    const tag = this.#context.lockToken();
    const lock = { token: tag.toString('hex'), tag, until: this.#context.clock.now() + this.settings.lockDuration };
    this.#shelf.lock(entry, lock);
    return { token: lock.token, tag, entry };
  }

  #locked(tokens: readonly string[]): Entry[] {
    this.sweep();
    const entries = tokens.map((token) => this.#shelf.byToken(token));
    if (new Set(tokens).size !== tokens.length || entries.includes(undefined)) throw lockLost();
    return entries as Entry[];
  }

  #findDeferred(numbers: readonly bigint[]): Entry[] {
    this.sweep();
    const entries: Entry[] = [];
    for (const number of new Set(numbers)) {
      const entry = this.#shelf.get(number);
      if (entry?.deferred && !entry.lock) {
        if (!this.#isExpired(entry)) entries.push(entry);
        else this.#expire(entry);
      }
    }
    if (entries.length !== numbers.length) {
      throw new BrokerError(
        'com.microsoft:message-not-found',
        'Failed to lock one or more specified messages. Either the message is already locked or does not exist.',
      );
    }
    return entries;
  }

  #settle(entry: Entry, settlement: Settlement): void {
    switch (settlement.kind) {
      case 'complete':
        this.#shelf.remove(entry);
        return;
      case 'release':
        this.#unlock(entry, false);
        return;
      case 'dead-letter':
        this.#deadLetter(entry, settlement.properties);
        return;
      case 'defer':
        entry.deferred = true;
        entry.message = withProperties(entry.message, settlement.properties);
        this.#unlock(entry, true);
        return;
      case 'abandon':
        entry.message = withProperties(entry.message, settlement.properties);
        this.#unlock(entry, true);
        return;
    }
  }

  /**
   * Ends a lock without removing the message. Counting, as seen in the SDK's live tests: abandoning, lock expiry and
   * deferring each raise the count in a main queue, and nothing raises it in a dead-letter queue.
   */
  #unlock(entry: Entry, counts: boolean): void {
    this.#shelf.unlock(entry);
    if (this.deadLetterQueue) {
      if (counts) entry.deliveryCount++;
      if (counts && entry.deliveryCount >= this.settings.maxDeliveryCount) {
        this.#deadLetter(entry, REASON.maxDeliveryCount(this.settings.maxDeliveryCount));
        return;
      }
      if (!entry.deferred && this.#isExpired(entry)) {
        this.#expire(entry);
        return;
      }
    }
    if (!entry.deferred) this.#makeReady(entry);
  }

  #isExpired(entry: Entry): boolean {
    return this.deadLetterQueue !== undefined && entry.expiresAt <= this.#context.clock.now();
  }

  #expire(entry: Entry): void {
    if (this.settings.deadLetteringOnMessageExpiration) this.#deadLetter(entry, REASON.expired);
    else this.#shelf.remove(entry);
  }

  #deadLetter(entry: Entry, properties: readonly AddedProperty[]): void {
    this.#shelf.remove(entry);
    // Number, enqueued time and count go along: only a message that becomes active anew gets another number.
    const message = withProperties(entry.message, properties);
    if (this.deadLetterQueue) this.deadLetterQueue.#place({ ...entry, message, deferred: false, gone: false });
  }
}

function expiryOf(arrival: Arrival, enqueuedAt: number, defaultTimeToLive: number): number {
  // A time to live beyond 49.7 days does not fit the header: it is then saturated, and the absolute time counts.
  const saturated = arrival.ttl === 0xffff_ffff && arrival.absoluteExpiry !== undefined;
  const own = arrival.ttl === undefined || saturated ? Number.POSITIVE_INFINITY : arrival.ttl;
  return Math.min(enqueuedAt + Math.min(own, defaultTimeToLive), arrival.absoluteExpiry ?? Number.POSITIVE_INFINITY);
}
