/**
 * One message store with Service Bus semantics: a queue, a subscription, the dead-letter queue of either, or what a topic
 * keeps. A state machine over a clock, without sockets: every call first lets happen what has fallen due.
 *
 *     scheduled ──its time──> active ──lock──> active+locked ──complete──> gone
 *                              ^                  │  │  └─defer──> deferred ──lock by number──> deferred+locked
 *                              └──abandon, lock expiry─┘  └─dead-letter, too many deliveries, expired──> dead-letter queue
 *
 * With an outlet, an active message does not wait to be locked: it goes on by itself (to a forwarding target, or from a
 * topic to its subscriptions).
 */
import type { Clock } from './clock.ts';
import { DuplicateHistory } from './duplicates.ts';
import { BrokerError, lockLost } from './errors.ts';
import { expiryOf } from './expiry.ts';
import { Listeners } from './listeners.ts';
import { type AddedProperty, type Arrival, deliver, type Keys, withProperties } from './message.ts';
import { checkBatch, checkOnePartition, keyOf, Numbering, rankOf } from './partitions.ts';
import { REASON } from './reasons.ts';
import { type SessionHolder, type SessionLock, Sessions, sessionLockLost } from './sessions.ts';
import type { EntitySettings } from './settings.ts';
import { type Entry, Shelf } from './shelf.ts';
import { type Access, allows, checkStatus, type EntityStatus } from './status.ts';

export type { EntitySettings } from './settings.ts';

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

/** Who asks: under which session's lock, and over which connection, compared by identity only. */
export interface Asking {
  readonly session?: SessionLock | undefined;
  readonly caller?: object | undefined;
}

/** Where a message was before it came here. */
export interface Origin {
  /** The number it was given first. */
  readonly enqueueSequenceNumber?: bigint;
  readonly hops?: number;
  readonly deadLetterSource?: string | undefined;
}

/** Takes a message on; answers nothing, or why it could not, as dead-letter properties. */
export type Outlet = (entry: Entry) => readonly AddedProperty[] | undefined;

export class Entity {
  readonly path: string;
  /** Changed only by {@link configure}. */
  settings: EntitySettings;
  /** Where dead letters go; absent in a dead-letter queue, which neither counts, expires nor dead-letters. */
  readonly deadLetterQueue: Entity | undefined;
  readonly #context: EntityContext;
  readonly #listeners = new Listeners();
  readonly #duplicates: DuplicateHistory | undefined;
  #numbers: Numbering;
  #shelf = new Shelf();
  #sessions: Sessions | undefined;
  #status: EntityStatus = 'Active';
  #outlet: Outlet | undefined;

  constructor(path: string, settings: EntitySettings, context: EntityContext, deadLetterQueue?: Entity) {
    const { requiresSession = false, duplicateWindow, partitions = 0 } = settings;
    this.path = path;
    this.settings = settings;
    this.#context = context;
    this.deadLetterQueue = deadLetterQueue;
    this.#duplicates = duplicateWindow === undefined ? undefined : new DuplicateHistory(duplicateWindow);
    this.#numbers = new Numbering(partitions);
    this.#sessions = requiresSession ? new Sessions() : undefined;
  }

  /** The sessions, of an entity that requires them. */
  get sessions(): Sessions | undefined {
    return this.#sessions;
  }

  get status(): EntityStatus {
    return this.#status;
  }

  /** Whether messages go on by themselves, so that nobody can receive them here. */
  get forwards(): boolean {
    return this.#outlet !== undefined;
  }

  /** How many messages there are, in any state. */
  get size(): number {
    return this.#shelf.size;
  }

  /** Throws for a change that is not possible while the entity exists; the rest holds from now on. */
  configure(settings: EntitySettings): void {
    const { requiresSession = false, duplicateWindow, partitions } = this.settings;
    if (
      requiresSession !== (settings.requiresSession ?? false) ||
      duplicateWindow !== settings.duplicateWindow ||
      partitions !== settings.partitions
    ) {
      throw new BrokerError(
        'amqp:not-allowed',
        `Sessions, duplicate detection and partitions of '${this.path}' cannot be changed after it was created.`,
      );
    }
    this.settings = settings;
  }

  setStatus(status: EntityStatus): void {
    this.#status = status;
    this.#passOn();
    this.#listeners.notify();
  }

  /** Throws com.microsoft:entity-disabled unless the status allows the access. */
  check(access: Access): void {
    checkStatus(this.path, this.#status, access);
  }

  /** Lets every active message go on through `outlet`. */
  setOutlet(outlet: Outlet | undefined): void {
    this.#outlet = outlet;
    this.#passOn();
  }

  /** Empties the entity, forgets what it remembers and restarts its numbering; all locks on it are lost. */
  clear(): void {
    for (const lock of this.#sessions?.locks() ?? []) {
      this.#sessions?.unlock(lock);
      lock.holder.lost();
    }
    this.#numbers = new Numbering(this.settings.partitions ?? 0);
    this.#shelf = new Shelf();
    this.#sessions &&= new Sessions();
    this.#duplicates?.clear();
  }

  /** Calls `listener` whenever a message or session may have become available; returns how to stop that. */
  onAvailable(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Takes messages in, all or none: duplicates are dropped without a word, the others stored. `envelope` is what the
   * envelope of a batch says. Answers what was stored for each, `undefined` for a duplicate.
   */
  store(arrivals: readonly Arrival[], envelope?: Keys, origin: Origin = {}): (Entry | undefined)[] {
    this.check('send');
    const { partitions, duplicateWindow } = this.settings;
    if (envelope && partitions) checkBatch(arrivals, envelope, this.path, duplicateWindow !== undefined);
    // A sender is told; what a topic or forwarding hands on without a session dies here instead (azure-service-bus#289).
    if (this.#sessions && origin.hops === undefined && arrivals.some(({ sessionId }) => sessionId === undefined)) {
      throw new BrokerError('amqp:not-allowed', `Every message sent to '${this.path}' needs a session id.`);
    }
    return arrivals.map((arrival) => (this.#isDuplicate(arrival) ? undefined : this.enqueue(arrival, origin)));
  }

  /** Stores a message. */
  enqueue(arrival: Arrival, origin: Origin = {}): Entry {
    const now = this.#context.clock.now();
    const scheduledFor = (arrival.scheduledFor ?? 0) > now ? arrival.scheduledFor : undefined;
    const sequenceNumber = this.#numbers.next(this.#partitionKey(arrival));
    const entry: Entry = {
      sequenceNumber,
      rank: rankOf(sequenceNumber),
      enqueueSequenceNumber: origin.enqueueSequenceNumber ?? sequenceNumber,
      enqueuedAt: now,
      // The life of a scheduled message begins when it becomes active.
      expiresAt: expiryOf(arrival, now, this.settings.defaultTimeToLive) + (scheduledFor ?? now) - now,
      sessionId: arrival.sessionId,
      hops: origin.hops ?? 0,
      deadLetterSource: origin.deadLetterSource,
      scheduledFor,
      message: arrival.message,
      deliveryCount: 0,
      deferred: false,
      deferredBy: undefined,
      lock: undefined,
      gone: false,
    };
    this.#place(entry);
    this.sweep();
    return entry;
  }

  /** Removes scheduled messages by number: all of them, or none and an error with the condition message-not-found. */
  cancelScheduled(numbers: readonly bigint[]): void {
    this.sweep();
    const entries = numbers.map((number) => this.#shelf.get(number));
    if (new Set(numbers).size !== numbers.length || !entries.every((entry) => entry?.scheduledFor !== undefined)) {
      throw new BrokerError('com.microsoft:message-not-found', 'One or more of the scheduled messages do not exist.');
    }
    for (const entry of entries) if (entry) this.#shelf.remove(entry);
  }

  /**
   * Locks a session: the named one, or with `undefined` the next that has messages and is free; answers `undefined` when
   * there is none. Throws when the named one is locked, or when the entity has no sessions.
   */
  acceptSession(id: string | undefined, holder: SessionHolder): SessionLock | undefined {
    this.sweep();
    const sessions = this.#sessions;
    if (!sessions) throw new BrokerError('amqp:not-allowed', `'${this.path}' has no sessions.`);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    if (id !== undefined) return sessions.lock(id, holder, until);
    for (const next of this.#shelf.readyLanes()) {
      if (!sessions.isLocked(next)) return sessions.lock(next, holder, until);
    }
    return undefined;
  }

  /** Gives a session back. Its locked messages are free again and not counted. */
  closeSession(lock: SessionLock): void {
    if (lock.held) this.#endSession(lock, false);
  }

  /** Renews a session's lock; answers until when it holds. Throws when it is lost. */
  renewSession(lock: SessionLock): number {
    this.sweep();
    if (!lock.held) throw sessionLockLost(lock.id);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    this.#sessions?.extend(lock, until);
    return until;
  }

  /** Ids of sessions: those with messages, or those whose state was changed after a time, milliseconds since 1970. */
  sessionIds(changedAfter?: number): string[] {
    this.sweep();
    if (changedAfter !== undefined) return this.#sessions?.changedAfter(changedAfter) ?? [];
    return [...new Set(this.#shelf.all().flatMap(({ sessionId }) => sessionId ?? []))];
  }

  /** Locks the active message with the lowest number, of a session where there are any; `undefined` without one. */
  lockNext(session?: SessionLock): LockedMessage | undefined {
    const entry = this.#next(session);
    return entry && this.#lock(entry, session);
  }

  /** Takes the active message with the lowest number out for good (receive-and-delete). */
  removeNext(session?: SessionLock): Entry | undefined {
    const entry = this.#next(session);
    if (entry) this.#shelf.remove(entry);
    return entry;
  }

  /** Locks deferred messages by number: all of them, or none and an error with the condition message-not-found. */
  lockDeferred(numbers: readonly bigint[], asking: Asking = {}): LockedMessage[] {
    return this.#findDeferred(numbers, asking).map((entry) => this.#lock(entry, asking.session));
  }

  /** Removes deferred messages by number (receive-and-delete): all of them, or none. */
  removeDeferred(numbers: readonly bigint[], asking: Asking = {}): Entry[] {
    const entries = this.#findDeferred(numbers, asking);
    for (const entry of entries) this.#shelf.remove(entry);
    return entries;
  }

  /** Up to `count` messages from number `from` (inclusive) on, in any state, of one partition. Changes nothing. */
  peek(from: bigint, count: number, session?: string): Entry[] {
    this.sweep();
    return this.#shelf.from(from, count, session);
  }

  /** All messages, in any state. */
  all(): Entry[] {
    this.sweep();
    return this.#shelf.all();
  }

  /** Renews all the locks, or none and an error; answers until when each holds, in milliseconds since 1970. */
  renew(tokens: readonly string[]): number[] {
    const entries = this.#locked(tokens);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    return entries.map((entry) => {
      if (!entry.lock || entry.lock.session) throw lockLost();
      this.#shelf.lock(entry, { ...entry.lock, until });
      return until;
    });
  }

  /** Settles all the locked messages in one way, or none and an error. */
  settle(tokens: readonly string[], settlement: Settlement, { session, caller }: Asking = {}): void {
    this.sweep();
    if (session && !session.held) throw sessionLockLost(session.id);
    const entries = this.#locked(tokens);
    const foreign = entries.find((entry) => entry.lock?.session !== session);
    if (foreign) throw sessionLockLost(foreign.sessionId ?? '');
    if (settlement.kind === 'dead-letter' && !this.deadLetterQueue) {
      throw new BrokerError('amqp:not-allowed', `A message cannot be dead-lettered from '${this.path}'.`);
    }
    for (const entry of entries) this.#settle(entry, settlement, caller);
    this.sweep();
  }

  /** Lets locks be lost before their time, as a failover does; under a session's lock this one is lost as a whole. */
  loseLocks(tokens: readonly string[]): void {
    for (const token of tokens) {
      const entry = this.#shelf.byToken(token);
      if (entry?.lock?.session) this.#endSession(entry.lock.session, true);
      else if (entry) this.#unlock(entry, true);
    }
  }

  /** Lets happen what has fallen due: lock expiry first, it may end in expiry or in the dead-letter queue. */
  sweep(): void {
    const now = this.#context.clock.now();
    const shelf = this.#shelf;
    const sessions = this.#sessions;
    for (let lock = sessions?.nextEnd(now); lock; lock = sessions?.nextEnd(now)) this.#endSession(lock, true);
    for (let entry = shelf.nextLockEnd(now); entry; entry = shelf.nextLockEnd(now)) this.#unlock(entry, true);
    for (let entry = shelf.nextStart(now); entry; entry = shelf.nextStart(now)) this.#activate(entry);
    for (let entry = shelf.nextLifeEnd(now); entry; entry = shelf.nextLifeEnd(now)) {
      // Locked: decided when the lock ends. Deferred: when it is asked for (Service Bus documentation, message deferral).
      if (!entry.lock && !entry.deferred) this.#expire(entry);
    }
  }

  /** The encoded message as a receiver under a lock, or a peek, gets it. */
  encoded(entry: Entry, omitBody = false, underLock = false): Buffer {
    const lockedUntil = underLock ? (entry.lock?.session?.until ?? entry.lock?.until) : undefined;
    return deliver(
      entry.message,
      {
        deliveryCount: entry.deliveryCount,
        sequenceNumber: entry.sequenceNumber,
        enqueueSequenceNumber: entry.enqueueSequenceNumber,
        enqueuedAt: entry.enqueuedAt,
        deferred: entry.deferred,
        scheduled: entry.scheduledFor !== undefined,
        deadLetterSource: entry.deadLetterSource,
        ...(lockedUntil === undefined ? {} : { lockedUntil }),
      },
      omitBody,
    );
  }

  #isDuplicate(arrival: Arrival): boolean {
    if (!this.#duplicates) return false;
    // A partition remembers for itself: there the same id under another key is another message.
    const id = this.settings.partitions ? `${arrival.messageId}\0${keyOf(arrival) ?? ''}` : arrival.messageId;
    return this.#duplicates.isRepeated(id, this.#context.clock.now());
  }

  #partitionKey(arrival: Arrival): string | undefined {
    return keyOf(arrival) ?? (this.#duplicates ? arrival.messageId : undefined);
  }

  #place(entry: Entry): void {
    // A dead-letter queue does not observe the time to live (Service Bus documentation).
    this.#shelf.add(entry, this.deadLetterQueue !== undefined);
    if (this.#sessions && entry.sessionId === undefined) this.#deadLetter(entry, REASON.sessionIsNull);
    else if (entry.scheduledFor === undefined) this.#makeReady(entry);
  }

  #makeReady(entry: Entry): void {
    this.#shelf.lineUp(entry, this.#sessions ? (entry.sessionId ?? '') : '');
    this.#passOn();
    this.#listeners.notify();
  }

  /** A dead letter that cannot go on stays where it is; from elsewhere it is dead-lettered. */
  #passOn(): void {
    const outlet = this.#outlet;
    if (!outlet || !allows(this.#status, 'receive')) return;
    for (let entry = this.#shelf.next(''); entry; entry = this.#shelf.next('')) {
      if (this.#isExpired(entry)) {
        this.#expire(entry);
        continue;
      }
      const refusal = outlet(entry);
      if (!refusal) this.#shelf.remove(entry);
      else if (this.deadLetterQueue) this.#deadLetter(entry, refusal);
    }
  }

  /** A message that becomes active anew gets a new number, in the same partition. */
  #activate(entry: Entry): void {
    const sequenceNumber = this.#numbers.nextBeside(entry.sequenceNumber);
    this.#shelf.remove(entry);
    this.#place({
      ...entry,
      sequenceNumber,
      rank: rankOf(sequenceNumber),
      // Its own time and not the present, which a moved clock may have left far behind.
      enqueuedAt: entry.scheduledFor ?? entry.enqueuedAt,
      scheduledFor: undefined,
      gone: false,
    });
  }

  #next(session: SessionLock | undefined): Entry | undefined {
    this.sweep();
    if (!this.#sessions) return this.#shelf.next('');
    if (!session?.held) throw sessionLockLost(session?.id ?? '');
    return this.#shelf.next(session.id);
  }

  #lock(entry: Entry, session: SessionLock | undefined): LockedMessage {
    const tag = this.#context.lockToken();
    const until = session ? Number.POSITIVE_INFINITY : this.#context.clock.now() + this.settings.lockDuration;
    const lock = { token: tag.toString('hex'), tag, until, session };
    this.#shelf.lock(entry, lock);
    return { token: lock.token, tag, entry };
  }

  #endSession(lock: SessionLock, expired: boolean): void {
    this.#sessions?.unlock(lock);
    // The service counts a delivery when the lock expires, and not when the receiver gives it back (its documentation,
    // message sessions).
    for (const entry of [...lock.entries]) this.#unlock(entry, expired);
    this.#listeners.notify();
    if (expired) lock.holder.lost();
  }

  #locked(tokens: readonly string[]): Entry[] {
    this.sweep();
    const entries = tokens.map((token) => this.#shelf.byToken(token));
    if (new Set(tokens).size !== tokens.length || entries.includes(undefined)) throw lockLost();
    return entries as Entry[];
  }

  #findDeferred(numbers: readonly bigint[], { session, caller }: Asking): Entry[] {
    this.sweep();
    this.check('receive');
    if (this.#sessions && !session?.held) throw sessionLockLost(session?.id ?? '');
    if (this.settings.partitions) checkOnePartition(numbers);
    const entries: Entry[] = [];
    for (const number of new Set(numbers)) {
      const entry = this.#shelf.get(number);
      if (!entry?.deferred || entry.lock || (session && entry.sessionId !== session.id)) continue;
      if (this.#isExpired(entry)) this.#expire(entry);
      else entries.push(entry);
    }
    if (entries.length !== numbers.length) {
      throw new BrokerError(
        'com.microsoft:message-not-found',
        'Failed to lock one or more specified messages. Either the message is already locked or does not exist.',
      );
    }
    // Seen on Azure with the dead-letter queue of a queue with sessions (azure-sdk-for-net issue 34662).
    const foreign = this.settings.bindsDeferred && entries.find(({ deferredBy }) => deferredBy !== caller);
    if (foreign) throw sessionLockLost(foreign.sessionId ?? '');
    return entries;
  }

  #settle(entry: Entry, settlement: Settlement, caller: object | undefined): void {
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
        entry.deferredBy = caller;
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
    const letter = { ...entry, message, deferred: false, deferredBy: undefined, scheduledFor: undefined, gone: false };
    if (this.deadLetterQueue) this.deadLetterQueue.#place(letter);
  }
}
