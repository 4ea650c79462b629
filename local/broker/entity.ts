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
import { BrokerError, lockLost } from './errors.ts';
import { Intake, type Origin } from './intake.ts';
import { Life, type Outlet } from './life.ts';
import { type AddedProperty, type Arrival, deliver, type Keys, withProperties } from './message.ts';
import { checkOnePartition } from './partitions.ts';
import { type SessionHolder, type SessionLock, type Sessions, sessionLockLost } from './sessions.ts';
import { checkChange, type EntitySettings } from './settings.ts';
import type { Entry } from './shelf.ts';
import { type Access, checkStatus, type EntityStatus } from './status.ts';

export type { Origin } from './intake.ts';
export type { Outlet } from './life.ts';
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

export class Entity {
  readonly path: string;
  /** Where dead letters go; absent in a dead-letter queue, which neither counts, expires nor dead-letters. */
  readonly deadLetterQueue: Entity | undefined;
  readonly #context: EntityContext;
  readonly #life: Life;
  readonly #intake: Intake;

  constructor(path: string, settings: EntitySettings, context: EntityContext, deadLetterQueue?: Entity) {
    this.path = path;
    this.#context = context;
    this.deadLetterQueue = deadLetterQueue;
    this.#life = new Life(settings, context.clock, deadLetterQueue ? deadLetterQueue.#life : undefined);
    this.#intake = new Intake(path, this.#life, context.clock);
  }

  get settings(): EntitySettings {
    return this.#life.settings;
  }

  /** The sessions, of an entity that requires them. */
  get sessions(): Sessions | undefined {
    return this.#life.sessions;
  }

  get status(): EntityStatus {
    return this.#life.status;
  }

  /** Whether messages go on by themselves, so that nobody can receive them here. */
  get forwards(): boolean {
    return this.#life.outlet !== undefined;
  }

  /** How many messages there are, in any state. */
  get size(): number {
    return this.#life.shelf.size;
  }

  /** Throws for a change that is not possible while the entity exists; the rest holds from now on. */
  configure(settings: EntitySettings): void {
    checkChange(this.path, this.settings, settings);
    this.#life.settings = settings;
  }

  setStatus(status: EntityStatus): void {
    this.#life.status = status;
    this.#life.passOn();
    this.#life.listeners.notify();
  }

  /** Throws com.microsoft:entity-disabled unless the status allows the access. */
  check(access: Access): void {
    checkStatus(this.path, this.status, access);
  }

  /** Lets every active message go on through `outlet`. */
  setOutlet(outlet: Outlet | undefined): void {
    this.#life.outlet = outlet;
    this.#life.passOn();
  }

  /** Empties the entity, forgets what it remembers and restarts its numbering; all locks on it are lost. */
  clear(): void {
    this.#life.clear();
    this.#intake.forget();
  }

  /** Calls `listener` whenever a message or session may have become available; returns how to stop that. */
  onAvailable(listener: () => void): () => void {
    return this.#life.listeners.add(listener);
  }

  /**
   * Takes messages in, all or none: duplicates are dropped without a word, the others stored. `envelope` is what the
   * envelope of a batch says. Answers what was stored for each, `undefined` for a duplicate.
   */
  store(arrivals: readonly Arrival[], envelope?: Keys, origin: Origin = {}): (Entry | undefined)[] {
    this.check('send');
    return this.#intake.store(arrivals, envelope, origin);
  }

  /** Stores a message that was judged elsewhere: by its topic, or before. */
  enqueue(arrival: Arrival, origin: Origin = {}): Entry {
    return this.#intake.enqueue(arrival, origin);
  }

  /** Removes scheduled messages by number: all of them, or none and an error with the condition message-not-found. */
  cancelScheduled(numbers: readonly bigint[]): void {
    this.#intake.cancelScheduled(numbers);
  }

  /**
   * Locks a session: the named one, or with `undefined` the next that has messages and is free; answers `undefined` when
   * there is none. Throws when the named one is locked, or when the entity has no sessions.
   */
  acceptSession(id: string | undefined, holder: SessionHolder): SessionLock | undefined {
    this.sweep();
    const sessions = this.sessions;
    if (!sessions) throw new BrokerError('amqp:not-allowed', `'${this.path}' has no sessions.`);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    if (id !== undefined) return sessions.lock(id, holder, until);
    for (const next of this.#life.shelf.readyLanes()) {
      if (!sessions.isLocked(next)) return sessions.lock(next, holder, until);
    }
    return undefined;
  }

  /** Gives a session back. Its locked messages are free again and not counted. */
  closeSession(lock: SessionLock): void {
    if (lock.held) this.#life.endSession(lock, false);
  }

  /** Renews a session's lock; answers until when it holds. Throws when it is lost. */
  renewSession(lock: SessionLock): number {
    this.sweep();
    if (!lock.held) throw sessionLockLost(lock.id);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    this.sessions?.extend(lock, until);
    return until;
  }

  /** Ids of sessions: those with messages, or those whose state was changed after a time, milliseconds since 1970. */
  sessionIds(changedAfter?: number): string[] {
    this.sweep();
    if (changedAfter !== undefined) return this.sessions?.changedAfter(changedAfter) ?? [];
    return [...new Set(this.#life.shelf.all().flatMap(({ sessionId }) => sessionId ?? []))];
  }

  /** Locks the active message with the lowest number, of a session where there are any; `undefined` without one. */
  lockNext(session?: SessionLock): LockedMessage | undefined {
    const entry = this.#next(session);
    return entry && this.#lock(entry, session);
  }

  /** Takes the active message with the lowest number out for good (receive-and-delete). */
  removeNext(session?: SessionLock): Entry | undefined {
    const entry = this.#next(session);
    if (entry) this.#life.shelf.remove(entry);
    return entry;
  }

  /** Locks deferred messages by number: all of them, or none and an error with the condition message-not-found. */
  lockDeferred(numbers: readonly bigint[], asking: Asking = {}): LockedMessage[] {
    return this.#findDeferred(numbers, asking).map((entry) => this.#lock(entry, asking.session));
  }

  /** Removes deferred messages by number (receive-and-delete): all of them, or none. */
  removeDeferred(numbers: readonly bigint[], asking: Asking = {}): Entry[] {
    const entries = this.#findDeferred(numbers, asking);
    for (const entry of entries) this.#life.shelf.remove(entry);
    return entries;
  }

  /** Up to `count` messages from number `from` (inclusive) on, in any state, of one partition. Changes nothing. */
  peek(from: bigint, count: number, session?: string): Entry[] {
    this.sweep();
    return this.#life.shelf.from(from, count, session);
  }

  /** All messages, in any state. */
  all(): Entry[] {
    this.sweep();
    return this.#life.shelf.all();
  }

  /** Renews all the locks, or none and an error; answers until when each holds, in milliseconds since 1970. */
  renew(tokens: readonly string[]): number[] {
    const entries = this.#locked(tokens);
    const until = this.#context.clock.now() + this.settings.lockDuration;
    return entries.map((entry) => {
      if (!entry.lock || entry.lock.session) throw lockLost();
      this.#life.shelf.lock(entry, { ...entry.lock, until });
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
      const entry = this.#life.shelf.byToken(token);
      if (entry?.lock?.session) this.#life.endSession(entry.lock.session, true);
      else if (entry) this.#life.unlock(entry, true);
    }
  }

  /** Lets a session's lock be lost before its time. */
  loseSession(id: string): void {
    const lock = this.sessions?.locks().find((held) => held.id === id);
    if (lock) this.#life.endSession(lock, true);
  }

  /** Lets all locks be lost, of messages and of sessions. */
  loseAllLocks(): void {
    for (const lock of this.sessions?.locks() ?? []) this.#life.endSession(lock, true);
    this.loseLocks(this.all().flatMap(({ lock }) => lock?.token ?? []));
  }

  /** Lets happen what has fallen due. */
  sweep(): void {
    this.#life.sweep();
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

  #next(session: SessionLock | undefined): Entry | undefined {
    this.sweep();
    if (!this.sessions) return this.#life.shelf.next('');
    if (!session?.held) throw sessionLockLost(session?.id ?? '');
    return this.#life.shelf.next(session.id);
  }

  #lock(entry: Entry, session: SessionLock | undefined): LockedMessage {
    const tag = this.#context.lockToken();
    const until = session ? Number.POSITIVE_INFINITY : this.#context.clock.now() + this.settings.lockDuration;
    const lock = { token: tag.toString('hex'), tag, until, session };
    this.#life.shelf.lock(entry, lock);
    return { token: lock.token, tag, entry };
  }

  #locked(tokens: readonly string[]): Entry[] {
    this.sweep();
    const entries = tokens.map((token) => this.#life.shelf.byToken(token));
    if (new Set(tokens).size !== tokens.length || entries.includes(undefined)) throw lockLost();
    return entries as Entry[];
  }

  #findDeferred(numbers: readonly bigint[], { session, caller }: Asking): Entry[] {
    this.sweep();
    this.check('receive');
    if (this.sessions && !session?.held) throw sessionLockLost(session?.id ?? '');
    if (this.settings.partitions) checkOnePartition(numbers);
    const entries: Entry[] = [];
    for (const number of new Set(numbers)) {
      const entry = this.#life.shelf.get(number);
      if (!entry?.deferred || entry.lock || (session && entry.sessionId !== session.id)) continue;
      if (this.#life.isExpired(entry)) this.#life.expire(entry);
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
        this.#life.shelf.remove(entry);
        return;
      case 'release':
        this.#life.unlock(entry, false);
        return;
      case 'dead-letter':
        this.#life.deadLetter(entry, settlement.properties);
        return;
      case 'defer':
        entry.deferred = true;
        entry.deferredBy = caller;
        entry.message = withProperties(entry.message, settlement.properties);
        this.#life.unlock(entry, true);
        return;
      case 'abandon':
        entry.message = withProperties(entry.message, settlement.properties);
        this.#life.unlock(entry, true);
        return;
    }
  }
}
