/**
 * What happens to messages by itself, in one entity: they become active, ready for delivery, go on, expire, die, and
 * their locks end. What clients do with them is the business of {@link Entity}, which shares this state with it.
 */
import type { Clock } from './clock.ts';
import { Listeners } from './listeners.ts';
import { type AddedProperty, withProperties } from './message.ts';
import { Numbering, rankOf } from './partitions.ts';
import { REASON } from './reasons.ts';
import { type SessionLock, Sessions } from './sessions.ts';
import type { EntitySettings } from './settings.ts';
import { type Entry, Shelf } from './shelf.ts';
import { allows, type EntityStatus } from './status.ts';

/** Takes a message on; answers nothing, or why it could not, as dead-letter properties. */
export type Outlet = (entry: Entry) => readonly AddedProperty[] | undefined;

export class Life {
  readonly listeners = new Listeners();
  settings: EntitySettings;
  status: EntityStatus = 'Active';
  outlet: Outlet | undefined;
  shelf = new Shelf();
  numbers: Numbering;
  /** Of an entity that requires them. */
  sessions: Sessions | undefined;
  readonly #clock: Clock;
  /** Where dead letters go. Without it nothing here is counted, expires or dies. */
  readonly #deadLetters: Life | undefined;

  constructor(settings: EntitySettings, clock: Clock, deadLetters: Life | undefined) {
    this.settings = settings;
    this.#clock = clock;
    this.#deadLetters = deadLetters;
    this.numbers = new Numbering(settings.partitions ?? 0);
    this.sessions = settings.requiresSession ? new Sessions() : undefined;
  }

  /** Begins anew with nothing; all locks are lost. */
  clear(): void {
    for (const lock of this.sessions?.locks() ?? []) {
      this.sessions?.unlock(lock);
      lock.holder.lost();
    }
    this.numbers = new Numbering(this.settings.partitions ?? 0);
    this.shelf = new Shelf();
    this.sessions &&= new Sessions();
  }

  /** Lets happen what has fallen due: lock expiry first, it may end in expiry or in the dead-letter queue. */
  sweep(): void {
    const now = this.#clock.now();
    const { shelf, sessions } = this;
    for (let lock = sessions?.nextEnd(now); lock; lock = sessions?.nextEnd(now)) this.endSession(lock, true);
    for (let entry = shelf.nextLockEnd(now); entry; entry = shelf.nextLockEnd(now)) this.unlock(entry, true);
    for (let entry = shelf.nextStart(now); entry; entry = shelf.nextStart(now)) this.#activate(entry);
    for (let entry = shelf.nextLifeEnd(now); entry; entry = shelf.nextLifeEnd(now)) {
      // Locked: decided when the lock ends. Deferred: when it is asked for (Service Bus documentation, message deferral).
      if (!entry.lock && !entry.deferred) this.expire(entry);
    }
  }

  /** Takes a message in under the number it has. */
  place(entry: Entry): void {
    // A dead-letter queue does not observe the time to live (Service Bus documentation).
    this.shelf.add(entry, this.#deadLetters !== undefined);
    if (this.sessions && entry.sessionId === undefined) this.deadLetter(entry, REASON.sessionIsNull);
    else if (entry.scheduledFor === undefined) this.#makeReady(entry);
  }

  /** Lets what is ready go on, where there is an outlet. */
  passOn(): void {
    if (!this.outlet || !allows(this.status, 'receive')) return;
    for (let entry = this.shelf.next(''); entry; entry = this.shelf.next('')) {
      if (this.isExpired(entry)) {
        this.expire(entry);
        continue;
      }
      const refusal = this.outlet(entry);
      if (!refusal) this.shelf.remove(entry);
      // A dead letter that cannot go on stays where it is.
      else if (this.#deadLetters) this.deadLetter(entry, refusal);
    }
  }

  /**
   * Ends a lock without removing the message. Counting, as seen in the SDK's live tests: abandoning, lock expiry and
   * deferring each raise the count in a main queue, and nothing raises it in a dead-letter queue.
   */
  unlock(entry: Entry, counts: boolean): void {
    this.shelf.unlock(entry);
    if (this.#deadLetters) {
      if (counts) entry.deliveryCount++;
      if (counts && entry.deliveryCount >= this.settings.maxDeliveryCount) {
        this.deadLetter(entry, REASON.maxDeliveryCount(this.settings.maxDeliveryCount));
        return;
      }
      if (!entry.deferred && this.isExpired(entry)) {
        this.expire(entry);
        return;
      }
    }
    if (!entry.deferred) this.#makeReady(entry);
  }

  /** Ends a session's lock, and with it those of its messages. `lost`: not by its holder. */
  endSession(lock: SessionLock, lost: boolean): void {
    this.sessions?.unlock(lock);
    // The service counts a delivery when the lock expires, and not when the receiver gives it back (its documentation,
    // message sessions).
    for (const entry of [...lock.entries]) this.unlock(entry, lost);
    this.listeners.notify();
    if (lost) lock.holder.lost();
  }

  isExpired(entry: Entry): boolean {
    return this.#deadLetters !== undefined && entry.expiresAt <= this.#clock.now();
  }

  expire(entry: Entry): void {
    if (this.settings.deadLetteringOnMessageExpiration) this.deadLetter(entry, REASON.expired);
    else this.shelf.remove(entry);
  }

  deadLetter(entry: Entry, properties: readonly AddedProperty[]): void {
    this.shelf.remove(entry);
    // Number, enqueued time and count go along: only a message that becomes active anew gets another number.
    const message = withProperties(entry.message, properties);
    const letter = { ...entry, message, deferred: false, deferredBy: undefined, scheduledFor: undefined, gone: false };
    this.#deadLetters?.place(letter);
  }

  #makeReady(entry: Entry): void {
    this.shelf.lineUp(entry, this.sessions ? (entry.sessionId ?? '') : '');
    this.passOn();
    this.listeners.notify();
  }

  /** A message that becomes active anew gets a new number, in the same partition. */
  #activate(entry: Entry): void {
    const sequenceNumber = this.numbers.nextBeside(entry.sequenceNumber);
    this.shelf.remove(entry);
    this.place({
      ...entry,
      sequenceNumber,
      rank: rankOf(sequenceNumber),
      // Its own time and not the present, which a moved clock may have left far behind.
      enqueuedAt: entry.scheduledFor ?? entry.enqueuedAt,
      scheduledFor: undefined,
      gone: false,
    });
  }
}
