/**
 * What an entity with its dead-letter queue should do, told as simply as possible: one list of messages, walked from end
 * to end for every question. It shares no code with the broker, is slow, and is right only because it is short.
 */

export interface ModelSettings {
  readonly sessions: boolean;
  readonly partitioned: boolean;
  /** Milliseconds, 0 for no duplicate detection. */
  readonly duplicateWindow: number;
  readonly lockDuration: number;
  readonly maxDeliveryCount: number;
  readonly deadLettersExpired: boolean;
  /** Dead letters go on to another queue. */
  readonly forwardsDeadLetters: boolean;
}

export type Place = 'main' | 'dead' | 'forwarded' | 'gone';

export interface ModelMessage {
  readonly id: string;
  readonly session: string | undefined;
  readonly key: string | undefined;
  number: bigint;
  place: Place;
  state: 'active' | 'deferred' | 'scheduled';
  scheduledFor: number;
  expiresAt: number;
  count: number;
  lock: { token: string; until: number } | undefined;
}

export interface NewMessage {
  readonly id: string;
  readonly session: string | undefined;
  readonly key: string | undefined;
  readonly scheduledFor: number | undefined;
  readonly ttl: number | undefined;
}

const PARTITION = 48n;
const rank = (number: bigint) => number & ((1n << PARTITION) - 1n);

export class Model {
  readonly settings: ModelSettings;
  readonly messages: ModelMessage[] = [];
  /** Ids of those that were forwarded. */
  readonly forwarded: string[] = [];
  /** Until when each session is locked, by its id. */
  readonly sessions = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  readonly #last = new Map<bigint, bigint>();
  now = 0;

  constructor(settings: ModelSettings, now: number) {
    this.settings = settings;
    this.now = now;
  }

  /** Whether this message would be dropped as a duplicate; if not, it is remembered. */
  drops(message: NewMessage): boolean {
    if (this.settings.duplicateWindow === 0) return false;
    const id = this.settings.partitioned ? `${message.id}/${message.session ?? message.key ?? ''}` : message.id;
    const at = this.#seen.get(id);
    if (at !== undefined && at + this.settings.duplicateWindow > this.now) return true;
    this.#seen.set(id, this.now);
    return false;
  }

  /** Stores a message under the number it was given; answers whether that number was the next of its partition. */
  store(message: NewMessage, number: bigint): boolean {
    const expected = this.#next(number >> PARTITION);
    const scheduled = message.scheduledFor !== undefined && message.scheduledFor > this.now;
    const start = scheduled ? (message.scheduledFor as number) : this.now;
    this.messages.push({
      id: message.id,
      session: message.session,
      key: message.key,
      number,
      place: 'main',
      state: scheduled ? 'scheduled' : 'active',
      scheduledFor: start,
      expiresAt: message.ttl === undefined ? Number.POSITIVE_INFINITY : start + message.ttl,
      count: 0,
      lock: undefined,
    });
    return number === expected;
  }

  in(place: Place): ModelMessage[] {
    return this.messages.filter((message) => message.place === place).sort((a, b) => (a.number < b.number ? -1 : 1));
  }

  find(number: bigint, place: Place): ModelMessage | undefined {
    return this.messages.find((message) => message.number === number && message.place === place);
  }

  holder(token: string): ModelMessage | undefined {
    return this.messages.find((message) => message.lock?.token === token && message.place !== 'gone');
  }

  /** What a receiver should get next. */
  next(place: 'main' | 'dead', session?: string): ModelMessage | undefined {
    let best: ModelMessage | undefined;
    for (const message of this.messages) {
      if (message.place !== place || message.state !== 'active' || message.lock) continue;
      if (place === 'main' && this.settings.sessions && message.session !== session) continue;
      const [mine, other] = [rank(message.number), best && rank(best.number)];
      if (!best || other === undefined || mine < other || (mine === other && message.number < best.number)) {
        best = message;
      }
    }
    return best;
  }

  /** Sessions that could be accepted next. */
  freeSessions(): string[] {
    const ids = this.messages
      .filter((m) => m.place === 'main' && m.state === 'active' && !m.lock)
      .map((m) => m.session);
    return [...new Set(ids)].filter((id): id is string => id !== undefined && !this.sessions.has(id));
  }

  lock(message: ModelMessage, token: string): void {
    message.lock = { token, until: this.now + this.settings.lockDuration };
  }

  /** Ends a lock; `counts` when it was a delivery that failed. */
  unlock(message: ModelMessage, counts: boolean): void {
    message.lock = undefined;
    if (message.place !== 'main') return;
    if (counts) message.count++;
    if (counts && message.count >= this.settings.maxDeliveryCount) this.die(message);
    else if (message.state === 'active' && message.expiresAt <= this.now) this.expire(message);
  }

  die(message: ModelMessage): void {
    message.lock = undefined;
    message.state = 'active';
    message.place = this.settings.forwardsDeadLetters ? 'forwarded' : 'dead';
    if (message.place === 'forwarded') this.forwarded.push(message.id);
  }

  expire(message: ModelMessage): void {
    if (this.settings.deadLettersExpired) this.die(message);
    else this.remove(message);
  }

  remove(message: ModelMessage): void {
    message.lock = undefined;
    message.place = 'gone';
  }

  endSession(id: string, counts: boolean): void {
    this.sessions.delete(id);
    for (const message of this.in('main')) if (message.session === id && message.lock) this.unlock(message, counts);
  }

  /** Lets time pass. */
  advance(ms: number): void {
    this.now += ms;
    for (const [id, until] of [...this.sessions]) if (until <= this.now) this.endSession(id, true);
    for (const message of [...this.in('main'), ...this.in('dead')]) {
      const ownLock = message.lock && !(this.settings.sessions && message.place === 'main');
      if (ownLock && (message.lock?.until ?? 0) <= this.now) this.unlock(message, true);
    }
    const due = this.in('main').filter((m) => m.state === 'scheduled' && m.scheduledFor <= this.now);
    due.sort((a, b) => a.scheduledFor - b.scheduledFor || Number(rank(a.number) - rank(b.number)));
    for (const message of due) {
      message.state = 'active';
      message.number = this.#next(message.number >> PARTITION);
    }
    for (const message of this.in('main')) {
      if (message.state === 'active' && !message.lock && message.expiresAt <= this.now) this.expire(message);
    }
  }

  /** Forgets what is long over, so that the lists stay short. */
  tidy(): void {
    const kept = this.messages.filter(({ place }) => place === 'main' || place === 'dead');
    this.messages.splice(0, this.messages.length, ...kept);
  }

  #next(partition: bigint): bigint {
    const last = (this.#last.get(partition) ?? 0n) + 1n;
    this.#last.set(partition, last);
    return (partition << PARTITION) | last;
  }
}
