import type { ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { expect, it } from 'vitest';
import { randomFrom } from '../../local/broker/chaos.ts';
import { MovableClock } from '../../local/broker/index.ts';
import { Bench, byToken, manual } from './harness.ts';
import { Model, type ModelMessage } from './model.ts';

const OPERATIONS = 400;
const LOCK = 30_000;
const START = 1_700_000_000_000;
type Place = 'main' | 'dead';

interface Held {
  readonly place: Place;
  readonly token: string;
  /** Settles as the client that received it does: over its link, or by token. */
  settle(kind: 'complete' | 'abandon' | 'defer' | 'dead-letter'): Promise<void>;
}

/** Three unmodified clients and the model, one operation after the other, with faults in between. */
class WireDrive {
  readonly bench: Bench;
  readonly model: Model;
  readonly #random: () => number;
  readonly #clients: ServiceBusClient[];
  readonly #receivers: Record<Place, ServiceBusReceiver>[];
  readonly #held: Held[] = [];
  #sent = 0;

  constructor(bench: Bench, seed: number) {
    this.bench = bench;
    this.#random = randomFrom(seed);
    this.#clients = [bench.client(2000), bench.client(2000), bench.client(2000)];
    this.#receivers = this.#clients.map((client) => ({
      main: client.createReceiver('q', manual),
      dead: client.createReceiver('q', { ...manual, subQueueType: 'deadLetter' }),
    }));
    this.model = new Model(
      {
        sessions: false,
        partitioned: false,
        duplicateWindow: 0,
        lockDuration: LOCK,
        maxDeliveryCount: 3,
        deadLettersExpired: true,
        forwardsDeadLetters: false,
      },
      START,
    );
  }

  async step(): Promise<void> {
    const choice = this.#below(20);
    if (choice < 4) await this.#send();
    else if (choice < 10) await this.#receive();
    else if (choice < 15) await this.#settle();
    else if (choice < 17) await this.#receiveDeferred();
    else if (choice < 18) this.#advance();
    else if (choice < 19) this.#loseLocks();
    else await this.#peek();
  }

  compare(): void {
    for (const [place, path] of [
      ['main', 'q'],
      ['dead', 'q/$DeadLetterQueue'],
    ] as const) {
      const real = this.bench.broker.messages(path).map((m) => [m.sequenceNumber, m.state, m.deliveryCount, m.locked]);
      const expected = this.model.in(place).map((m) => [m.number, m.state, m.count, m.lock !== undefined]);
      expect(real).toEqual(expected);
    }
  }

  async #send(): Promise<void> {
    const id = `m${this.#sent++}`;
    await (this.#pick(this.#clients) as ServiceBusClient).createSender('q').sendMessages({ messageId: id, body: id });
    const number = this.bench.broker.messages('q').at(-1)?.sequenceNumber ?? 0n;
    const none = { session: undefined, key: undefined, scheduledFor: undefined, ttl: undefined };
    expect(this.model.store({ id, ...none }, number)).toBe(true);
  }

  async #receive(): Promise<void> {
    const place = this.#place();
    const receiver = (this.#pick(this.#receivers) as Record<Place, ServiceBusReceiver>)[place];
    const expected = this.model.next(place);
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: expected ? 3000 : 20 });
    expect(message?.messageId).toBe(expected?.id);
    if (message && expected) this.#take(message, expected, place, receiver, this.#below(3) === 0);
  }

  async #settle(): Promise<void> {
    const at = this.#below(this.#held.length);
    const held = this.#held[at];
    if (!held) return;
    const kind = this.#pick(['complete', 'abandon', 'defer', 'dead-letter'] as const) ?? 'complete';
    const message = this.model.holder(held.token);
    const refused = this.#below(8) === 0;
    if (refused) this.bench.broker.faults.add({ at: 'settle', do: 'server-busy' });
    const code = await held.settle(kind).then(
      () => 'done',
      (error: { code?: string }) => error.code,
    );
    this.bench.broker.faults.clear();
    this.#held.splice(at, 1);
    // The client takes a delivery as settled, whatever the answer: the message stays locked until the lock ends.
    if (refused) expect(code).toBe('ServiceBusy');
    else if (!message) expect(code).toBe('MessageLockLost');
    else if (kind === 'dead-letter' && held.place === 'dead') expect(code).toBe('GeneralError');
    else {
      expect(code).toBe('done');
      if (kind === 'complete') this.model.remove(message);
      else if (kind === 'dead-letter') this.model.die(message);
      else {
        if (kind === 'defer') message.state = 'deferred';
        this.model.unlock(message, true);
      }
    }
  }

  async #receiveDeferred(): Promise<void> {
    const place = this.#place();
    const message = this.#pick(this.model.in(place));
    if (!message) return;
    const receiver = (this.#pick(this.#receivers) as Record<Place, ServiceBusReceiver>)[place];
    const receiving = receiver.receiveDeferredMessages(Long.fromString(String(message.number)));
    if (message.state !== 'deferred' || message.lock) {
      await expect(receiving).rejects.toMatchObject({ code: 'MessageNotFound' });
      return;
    }
    const [received] = await receiving;
    expect(received?.messageId).toBe(message.id);
    if (received) this.#take(received, message, place, receiver, true);
  }

  #take(
    message: ServiceBusReceivedMessage,
    expected: ModelMessage,
    place: Place,
    from: ServiceBusReceiver,
    byLock: boolean,
  ) {
    const token = message.lockToken ?? '';
    this.model.lock(expected, token);
    // By its token any connection settles it.
    const receiver = byLock
      ? ((this.#pick(this.#receivers) as Record<Place, ServiceBusReceiver>)[place] ?? from)
      : from;
    const target = byLock ? byToken(token) : message;
    this.#held.push({
      place,
      token,
      async settle(kind) {
        if (kind === 'complete') await receiver.completeMessage(target);
        else if (kind === 'abandon') await receiver.abandonMessage(target);
        else if (kind === 'defer') await receiver.deferMessage(target);
        else await receiver.deadLetterMessage(target);
      },
    });
  }

  #advance(): void {
    const ms = this.#below(LOCK);
    this.bench.broker.clock.advance(ms);
    this.model.advance(ms);
  }

  #loseLocks(): void {
    const place = this.#place();
    this.bench.broker.loseLocks(place === 'main' ? 'q' : 'q/$DeadLetterQueue');
    for (const message of this.model.in(place)) if (message.lock) this.model.unlock(message, true);
  }

  async #peek(): Promise<void> {
    const place = this.#place();
    const receiver = (this.#pick(this.#receivers) as Record<Place, ServiceBusReceiver>)[place];
    const peeked = await receiver.peekMessages(250, { fromSequenceNumber: Long.ZERO });
    expect(peeked.map(({ messageId, state }) => [messageId, state])).toEqual(
      this.model.in(place).map(({ id, state }) => [id, state]),
    );
  }

  #place(): Place {
    return this.#below(3) === 0 ? 'dead' : 'main';
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#below(items.length)];
  }
}

it.each([1, 2, 3])('the wire agrees with the model over hundreds of operations, seed %i', async (seed) => {
  // A clock that stands still: on a loaded machine no lock ends but by the test's own hand.
  const clock = new MovableClock(() => START);
  const config = { MaxDeliveryCount: 3, LockDuration: 'PT30S', DefaultMessageTimeToLive: 'P10D' };
  const bench = await Bench.start({ q: config }, {}, { clock });
  try {
    const drive = new WireDrive(bench, seed);
    for (let operation = 0; operation < OPERATIONS; operation++) {
      await drive.step();
      drive.compare();
    }
  } finally {
    await bench.close();
  }
});
