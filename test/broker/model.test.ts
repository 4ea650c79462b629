import { describe, expect, it } from 'vitest';
import { randomFrom } from '../../local/broker/chaos.ts';
import type { Entity, Settlement } from '../../local/broker/entity.ts';
import { forwardDeadLettersTo } from '../../local/broker/forwarding.ts';
import { readAgain } from '../../local/broker/message.ts';
import type { SessionLock } from '../../local/broker/sessions.ts';
import { arrival, Core, conditionOf, START } from './core.ts';
import { Model, type ModelMessage, type ModelSettings, type NewMessage } from './model.ts';

const NOT_FOUND = 'com.microsoft:message-not-found';
const LOCK_LOST = 'com.microsoft:message-lock-lost';
const SESSION_LOST = 'com.microsoft:session-lock-lost';
const FINE = 'nothing was thrown';

interface Held {
  readonly token: string;
  readonly place: 'main' | 'dead';
  readonly session: SessionLock | undefined;
}

/** The broker's core and the model side by side, driven by several clients at random. */
class Drive {
  readonly core = new Core();
  readonly model: Model;
  readonly queue: Entity;
  readonly deadLetters: Entity;
  readonly target: Entity[];
  readonly #random: () => number;
  readonly #held: Held[] = [];
  readonly #sessions: SessionLock[] = [];
  readonly #ids: string[] = [];
  #next = 0;

  constructor(seed: number, settings: ModelSettings) {
    this.#random = randomFrom(seed);
    this.model = new Model(settings, START);
    const { queue, deadLetters } = this.core.open(
      'q',
      {
        lockDuration: settings.lockDuration,
        maxDeliveryCount: settings.maxDeliveryCount,
        deadLetteringOnMessageExpiration: settings.deadLettersExpired,
        ...(settings.sessions && { requiresSession: true }),
        ...(settings.partitioned && { partitions: 4 }),
        ...(settings.duplicateWindow > 0 && { duplicateWindow: settings.duplicateWindow }),
      },
      false,
    );
    this.queue = queue;
    this.deadLetters = deadLetters;
    const errors = this.core.open('errors');
    // What lives on there may die there of its age as well.
    this.target = [errors.queue, errors.deadLetters];
    if (settings.forwardsDeadLetters) deadLetters.setOutlet(forwardDeadLettersTo(() => errors.queue, 'q'));
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)];
  }

  step(): void {
    const choice = this.below(100);
    // What comes in and what leaves are about the same, so that the entity stays small and much happens to each message.
    if (choice < 14) this.send();
    else if (choice < 44) this.receive();
    else if (choice < 72) this.settle();
    else if (choice < 80) this.receiveDeferred();
    else if (choice < 83) this.renew();
    else if (choice < 89) this.advance();
    else if (choice < 91) this.cancel();
    else if (choice < 92) this.lose();
    else if (choice < 96) this.receiveAndDelete();
    else this.useSession();
  }

  send(): void {
    const { sessions } = this.model.settings;
    const batch = Array.from({ length: 1 + this.below(2) }, (): NewMessage => {
      const again = this.below(6) === 0 ? this.pick(this.#ids) : undefined;
      const id = again ?? `m${this.#next++}`;
      if (this.#ids.push(id) > 50) this.#ids.shift();
      return {
        id,
        session: sessions ? `s${this.below(4)}` : undefined,
        key: !sessions && this.below(2) === 0 ? `k${this.below(5)}` : undefined,
        scheduledFor: this.below(5) === 0 ? this.model.now + this.below(600) : undefined,
        ttl: this.below(4) === 0 ? 1 + this.below(2_000) : undefined,
      };
    });
    const stored = this.queue.store(
      batch.map(({ id, session, key, scheduledFor, ttl }) =>
        arrival({
          id,
          ...(session !== undefined && { session }),
          ...(key !== undefined && { partitionKey: key }),
          ...(scheduledFor !== undefined && { scheduledFor }),
          ...(ttl !== undefined && { ttl }),
        }),
      ),
    );
    for (const [i, message] of batch.entries()) {
      const number = stored[i]?.sequenceNumber;
      expect(number === undefined).toBe(this.model.drops(message));
      if (number !== undefined) expect(this.model.store(message, number)).toBe(true);
    }
  }

  receive(): void {
    const place = this.#place();
    const session = this.#sessionFor(place);
    if (place === 'main' && this.model.settings.sessions) {
      if (!session) return;
      if (!session.held) {
        expect(conditionOf(() => this.queue.lockNext(session))).toBe(SESSION_LOST);
        return;
      }
    }
    const expected = this.model.next(place, session?.id);
    const locked = this.#entity(place).lockNext(session);
    expect(locked?.entry.sequenceNumber).toBe(expected?.number);
    if (!locked || !expected) return;
    this.#same(expected, locked.entry.message);
    this.model.lock(expected, locked.token);
    this.#held.push({ token: locked.token, place, session });
  }

  settle(): void {
    const held = this.pick(this.#held);
    if (!held) return;
    // Now and then a token is kept and used again, as by a client that repeats what was not answered.
    if (this.below(10) > 0) this.#held.splice(this.#held.indexOf(held), 1);
    const kind =
      this.pick(['complete', 'complete', 'abandon', 'defer', 'dead-letter', 'release'] as const) ?? 'complete';
    const settlement: Settlement = kind === 'complete' || kind === 'release' ? { kind } : { kind, properties: [] };
    const done = conditionOf(() =>
      this.#entity(held.place).settle([held.token], settlement, { session: held.session }),
    );
    const message = this.model.holder(held.token);
    if (held.session && !held.session.held) expect(done).toBe(SESSION_LOST);
    else if (!message) expect(done).toBe(LOCK_LOST);
    else if (kind === 'dead-letter' && held.place === 'dead') expect(done).toBe('amqp:not-allowed');
    else {
      expect(done).toBe(FINE);
      if (kind === 'complete') this.model.remove(message);
      else if (kind === 'dead-letter') this.model.die(message);
      else {
        if (kind === 'defer') message.state = 'deferred';
        this.model.unlock(message, kind !== 'release');
      }
    }
  }

  receiveDeferred(): void {
    const place = this.#place();
    const session = this.#sessionFor(place);
    const message = this.pick(this.model.in(place).filter((m) => m.state === 'deferred' || this.below(5) === 0));
    if (!message) return;
    const numbers = this.below(4) === 0 ? [message.number, message.number] : [message.number];
    const take = () => this.#entity(place).lockDeferred(numbers, { session });
    const bySession = place === 'main' && this.model.settings.sessions;
    if (bySession && !session?.held) {
      expect(conditionOf(take)).toBe(SESSION_LOST);
      return;
    }
    const there = message.state === 'deferred' && !message.lock && (!bySession || message.session === session?.id);
    const expired = there && place === 'main' && message.expiresAt <= this.model.now;
    if (expired) this.model.expire(message);
    if (!there || expired || numbers.length > 1) {
      expect(conditionOf(take)).toBe(NOT_FOUND);
      return;
    }
    const [locked] = take();
    this.model.lock(message, locked?.token ?? '');
    this.#same(message, locked?.entry.message);
    this.#held.push({ token: locked?.token ?? '', place, session });
  }

  renew(): void {
    const held = this.pick(this.#held);
    if (!held) return;
    const message = this.model.holder(held.token);
    const bySession = held.place === 'main' && this.model.settings.sessions;
    const done = conditionOf(() => this.#entity(held.place).renew([held.token]));
    expect(done).toBe(message && !bySession ? FINE : LOCK_LOST);
    if (message && !bySession) this.model.lock(message, held.token);
  }

  advance(): void {
    const ms = this.below(this.below(5) === 0 ? 400 : 40);
    this.core.advance(ms);
    this.model.advance(ms);
  }

  cancel(): void {
    const message = this.pick(this.model.in('main').filter((m) => m.state === 'scheduled' || this.below(10) === 0));
    if (!message) return;
    const done = conditionOf(() => this.queue.cancelScheduled([message.number]));
    expect(done).toBe(message.state === 'scheduled' ? FINE : NOT_FOUND);
    if (message.state === 'scheduled') this.model.remove(message);
  }

  /** A fault: a lock is gone before its time. */
  lose(): void {
    const held = this.pick(this.#held);
    const message = held && this.model.holder(held.token);
    if (!held || !message) return;
    this.#entity(held.place).loseLocks([held.token]);
    if (held.session) this.model.endSession(held.session.id, true);
    else this.model.unlock(message, true);
  }

  receiveAndDelete(): void {
    const place = this.#place();
    const session = this.#sessionFor(place);
    if (place === 'main' && this.model.settings.sessions && !session?.held) return;
    const expected = this.model.next(place, session?.id);
    expect(this.#entity(place).removeNext(session)?.sequenceNumber).toBe(expected?.number);
    if (expected) this.model.remove(expected);
  }

  useSession(): void {
    if (!this.model.settings.sessions) return;
    const session = this.pick(this.#sessions);
    const choice = this.below(4);
    if (session && choice === 0) {
      if (session.held) this.model.endSession(session.id, false);
      this.queue.closeSession(session);
      this.#sessions.splice(this.#sessions.indexOf(session), 1);
    } else if (session && choice === 1) {
      const { held } = session;
      expect(conditionOf(() => this.queue.renewSession(session))).toBe(held ? FINE : SESSION_LOST);
      if (held) this.model.sessions.set(session.id, this.model.now + this.model.settings.lockDuration);
    } else this.#accept(this.below(2) === 0 ? undefined : `s${this.below(4)}`);
  }

  #accept(id: string | undefined): void {
    const holder = { owner: {}, lost: () => {} };
    const free = this.model.freeSessions();
    if (id !== undefined && this.model.sessions.has(id)) {
      const condition = conditionOf(() => this.queue.acceptSession(id, holder));
      expect(condition).toBe('com.microsoft:session-cannot-be-locked');
      return;
    }
    const session = this.queue.acceptSession(id, holder);
    if (id === undefined) expect(session ? free.includes(session.id) : free.length === 0).toBe(true);
    if (!session) return;
    this.model.sessions.set(session.id, this.model.now + this.model.settings.lockDuration);
    this.#sessions.push(session);
  }

  /** Everything there is, in both: numbers, states, counts and locks. */
  compare(): void {
    for (const place of ['main', 'dead'] as const) {
      const real = this.#entity(place)
        .all()
        .map((e) => {
          const state = e.scheduledFor !== undefined ? 'scheduled' : e.deferred ? 'deferred' : 'active';
          return `${e.sequenceNumber} ${state} ${e.deliveryCount} ${e.lock?.token ?? ''}`;
        });
      const expected = this.model.in(place).map((m) => `${m.number} ${m.state} ${m.count} ${m.lock?.token ?? ''}`);
      expect(real).toEqual(expected);
      expect(this.#entity(place).size).toBe(expected.length);
    }
    // Those that die in one moment go on in any order.
    const forwarded = this.target.flatMap((entity) => entity.all()).map(({ message }) => readAgain(message).messageId);
    expect(forwarded.sort()).toEqual(this.model.forwarded.toSorted());
    this.model.tidy();
    for (const held of [...this.#held]) {
      if (!this.model.holder(held.token) && this.below(3) === 0) this.#held.splice(this.#held.indexOf(held), 1);
    }
  }

  #entity(place: 'main' | 'dead'): Entity {
    return place === 'main' ? this.queue : this.deadLetters;
  }

  #place(): 'main' | 'dead' {
    return !this.model.settings.forwardsDeadLetters && this.below(4) === 0 ? 'dead' : 'main';
  }

  #sessionFor(place: 'main' | 'dead'): SessionLock | undefined {
    if (place === 'dead' || !this.model.settings.sessions) return undefined;
    if (this.#sessions.length === 0) this.#accept(undefined);
    return this.pick(this.#sessions);
  }

  #same(expected: ModelMessage, message: Parameters<typeof readAgain>[0] | undefined): void {
    expect(message && readAgain(message).messageId).toBe(expected.id);
  }
}

function settingsFor(seed: number): ModelSettings {
  return {
    sessions: seed % 3 === 1,
    partitioned: seed % 4 === 2,
    duplicateWindow: seed % 2 === 0 ? 500 : 0,
    lockDuration: 100 + (seed % 3) * 100,
    maxDeliveryCount: 2 + (seed % 4),
    deadLettersExpired: seed % 5 !== 0,
    forwardsDeadLetters: seed % 7 === 3,
  };
}

describe('the core agrees with a plain model', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed))('over 10,000 operations, seed %i', (seed) => {
    const drive = new Drive(seed, settingsFor(seed));
    for (let operation = 0; operation < 10_000; operation++) {
      drive.step();
      if (operation % 100 === 99) drive.compare();
    }
    // In the end all locks are over and what was scheduled is there: nothing is lost, whatever happened.
    drive.core.advance(10_000);
    drive.model.advance(10_000);
    drive.compare();
  });
});
