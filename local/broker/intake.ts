/** How messages come into an entity: what is refused, what is dropped, and under which number the rest is stored. */
import type { Clock } from './clock.ts';
import { DuplicateHistory } from './duplicates.ts';
import { BrokerError } from './errors.ts';
import { expiryOf } from './expiry.ts';
import type { Life } from './life.ts';
import { checkLimits } from './limits.ts';
import type { Arrival, Keys } from './message.ts';
import { checkBatch, keyOf, rankOf } from './partitions.ts';
import type { Entry } from './shelf.ts';

/** Where a message was before it came here. */
export interface Origin {
  /** The number it was given first. */
  readonly enqueueSequenceNumber?: bigint;
  readonly hops?: number;
  readonly deadLetterSource?: string | undefined;
}

export class Intake {
  readonly #path: string;
  readonly #life: Life;
  readonly #clock: Clock;
  readonly #duplicates: DuplicateHistory | undefined;

  constructor(path: string, life: Life, clock: Clock) {
    const { duplicateWindow } = life.settings;
    this.#path = path;
    this.#life = life;
    this.#clock = clock;
    this.#duplicates = duplicateWindow === undefined ? undefined : new DuplicateHistory(duplicateWindow);
  }

  /** See {@link Entity.store}. */
  store(arrivals: readonly Arrival[], envelope: Keys | undefined, origin: Origin): (Entry | undefined)[] {
    if (envelope && this.#life.settings.partitions) checkBatch(arrivals, envelope, this.#path, !!this.#duplicates);
    // A sender is told; what a topic or forwarding hands on without a session dies here instead (azure-service-bus#289).
    const isSent = origin.hops === undefined;
    if (this.#life.sessions && isSent && arrivals.some(({ sessionId }) => sessionId === undefined)) {
      throw new BrokerError('amqp:not-allowed', `Every message sent to '${this.#path}' needs a session id.`);
    }
    if (isSent) for (const arrival of arrivals) checkLimits(arrival);
    return arrivals.map((arrival) => (this.#isDuplicate(arrival) ? undefined : this.enqueue(arrival, origin)));
  }

  enqueue(arrival: Arrival, origin: Origin): Entry {
    const now = this.#clock.now();
    const { numbers, settings } = this.#life;
    const scheduledFor = (arrival.scheduledFor ?? 0) > now ? arrival.scheduledFor : undefined;
    const sequenceNumber = numbers.next(keyOf(arrival) ?? (this.#duplicates ? arrival.messageId : undefined));
    const entry: Entry = {
      sequenceNumber,
      rank: rankOf(sequenceNumber),
      enqueueSequenceNumber: origin.enqueueSequenceNumber ?? sequenceNumber,
      enqueuedAt: now,
      // The life of a scheduled message begins when it becomes active.
      expiresAt: expiryOf(arrival, now, settings.defaultTimeToLive) + (scheduledFor ?? now) - now,
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
    this.#life.place(entry);
    this.#life.sweep();
    return entry;
  }

  cancelScheduled(numbers: readonly bigint[]): void {
    this.#life.sweep();
    const { shelf } = this.#life;
    const entries = numbers.map((number) => shelf.get(number));
    if (new Set(numbers).size !== numbers.length || !entries.every((entry) => entry?.scheduledFor !== undefined)) {
      throw new BrokerError('com.microsoft:message-not-found', 'One or more of the scheduled messages do not exist.');
    }
    for (const entry of entries) if (entry) shelf.remove(entry);
  }

  /** Forgets all message ids. */
  forget(): void {
    this.#duplicates?.clear();
  }

  #isDuplicate(arrival: Arrival): boolean {
    if (!this.#duplicates) return false;
    // A partition remembers for itself: there the same id under another key is another message.
    const partitioned = this.#life.settings.partitions !== undefined;
    const id = partitioned ? `${arrival.messageId}\0${keyOf(arrival) ?? ''}` : arrival.messageId;
    return this.#duplicates.isRepeated(id, this.#clock.now());
  }
}
