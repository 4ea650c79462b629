import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';
import { randomFrom } from '../../local/broker/chaos.ts';
import type { Entity } from '../../local/broker/entity.ts';
import { receiveMessage } from '../../local/broker/message.ts';
import { deadLetterProperties } from '../../local/broker/reasons.ts';
import { arrival, Core, lock } from './core.ts';
import { Bench, manual, take } from './harness.ts';

// Seconds on a quiet machine; on a loaded one that is no fault of the broker.
vi.setConfig({ testTimeout: 120_000 });

const COUNT = 100_000;
const BODY = 'x'.repeat(200);

/** Memory in use after everything unused is gone, bytes. */
function memoryInUse(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function fill(entity: Entity): void {
  const { bytes } = arrival({ id: 'message-1', body: BODY }).message;
  // Each with bytes of its own, as from the wire.
  for (let i = 0; i < COUNT; i++) entity.store([receiveMessage(bytes, () => '')]);
}

function milliseconds(act: () => void): number {
  const began = performance.now();
  act();
  return performance.now() - began;
}

describe('100,000 messages', () => {
  it('take less than 1.5 KB each beside their bodies, ready, locked, deferred or dead', () => {
    const { queue, deadLetters } = new Core().open('q', { maxDeliveryCount: 2000, defaultTimeToLive: 3_600_000 });
    const before = memoryInUse();
    fill(queue);
    const each = () => (memoryInUse() - before) / COUNT - BODY.length;

    expect(each()).toBeLessThan(1_000);
    const tokens = Array.from({ length: COUNT }, () => lock(queue).token);

    expect(each()).toBeLessThan(1_500);
    queue.settle(tokens, { kind: 'defer', properties: [] });

    expect(each()).toBeLessThan(1_500);
    const takenAgain = () => queue.lockDeferred(queue.all().map(({ sequenceNumber }) => sequenceNumber));
    queue.settle(
      takenAgain().map(({ token }) => token),
      { kind: 'dead-letter', properties: deadLetterProperties('reason', 'description') },
    );
    expect(each()).toBeLessThan(1_500);
    expect(deadLetters.size).toBe(COUNT);
  });

  it('cost nothing to sweep while nothing falls due, in whatever state they are', () => {
    const core = new Core();
    const { queue } = core.open('q', { defaultTimeToLive: 3_600_000 });
    fill(queue);
    for (let i = 0; i < COUNT / 2; i++) lock(queue);
    core.advance(1);
    // A walk over all of them takes a millisecond at least; ten thousand looks at three heaps take a few together.
    const sweeps = () =>
      milliseconds(() => {
        for (let i = 0; i < 10_000; i++) queue.sweep();
      });
    expect(Math.min(sweeps(), sweeps(), sweeps())).toBeLessThan(1_000);
  });

  it.each([
    ['locks end', { lockDuration: 1_000 }, (queue: Entity) => void Array.from({ length: COUNT }, () => lock(queue))],
    ['lives end', { defaultTimeToLive: 1_000 }, () => {}],
  ] as const)('fall due in one moment without a standstill: %s', (_, settings, prepare) => {
    const core = new Core();
    const { queue, deadLetters } = core.open('q', { maxDeliveryCount: 1, ...settings });
    fill(queue);
    prepare(queue);
    expect(milliseconds(() => core.advance(1_000))).toBeLessThan(10_000);
    expect([queue.size, deadLetters.size]).toEqual([0, COUNT]);
    expect(deadLetters.peek(50_000n, 250)).toHaveLength(250);
  });

  it('may die in any order and are read in order', () => {
    const { queue, deadLetters } = new Core().open('q');
    fill(queue);
    const random = randomFrom(5);
    const tokens = Array.from({ length: COUNT }, () => lock(queue).token);
    const order = tokens.map((token) => ({ token, at: random() })).sort((a, b) => a.at - b.at);
    for (const { token } of order) queue.settle([token], { kind: 'dead-letter', properties: [] });
    const page = deadLetters.peek(99_000n, 250);
    expect(page.map(({ sequenceNumber }) => sequenceNumber)).toEqual(
      Array.from({ length: 250 }, (_, i) => 99_000n + BigInt(i)),
    );
    expect(lock(deadLetters).entry.sequenceNumber).toBe(1n);
  });

  it.each([
    ['in sessions', { requiresSession: true }, (i: number) => ({ session: `s${i % 1000}` })],
    ['in partitions', { partitions: 16 }, () => ({})],
    ['without duplicates', { duplicateWindow: 600_000 }, () => ({})],
    ['scheduled', {}, (i: number) => ({ scheduledFor: 1_700_000_000_000 + ((i * 7919) % 60_000) })],
  ] as const)('are taken in and given out %s', (_, settings, optionsOf) => {
    const core = new Core();
    const { queue } = core.open('q', settings);
    for (let i = 0; i < COUNT; i++) queue.store([arrival({ id: `m${i}`, ...optionsOf(i) })]);
    core.advance(60_000);
    let taken = 0;
    const drain = (session?: Parameters<Entity['lockNext']>[0]) => {
      while (queue.removeNext(session)) taken++;
    };
    if (queue.sessions) {
      const holder = { owner: {}, lost: () => {} };
      for (let s = queue.acceptSession(undefined, holder); s; s = queue.acceptSession(undefined, holder)) drain(s);
    } else drain();
    expect(taken).toBe(COUNT);
  });
});

describe('on the wire', () => {
  it('a link holds 2,047 unsettled messages, and goes on when they are settled', async () => {
    const bench = await Bench.start({ q: {} });
    try {
      const sender = bench.client().createSender('q');
      for (let i = 0; i < 21; i++) await sender.sendMessages(Array.from({ length: 100 }, () => ({ body: 'x' })));
      const receiver = bench.client().createReceiver('q', manual);
      const held = await take(receiver, 2047);
      expect(bench.broker.messages('q').filter(({ locked }) => locked)).toHaveLength(2047);
      await Promise.all(held.map((message) => receiver.completeMessage(message)));
      for (const message of await take(receiver, 53)) await receiver.completeMessage(message);
      expect(bench.broker.messages('q')).toEqual([]);
    } finally {
      await bench.close();
    }
  });

  it('a message of a megabyte comes in many transfers and is the same in every way out', async () => {
    const bench = await Bench.start({ q: {} }, {}, { maxMessageBytes: 2_000_000 });
    try {
      const body = randomBytes(1_000_000);
      const sender = bench.client().createSender('q');
      await sender.sendMessages({ body });
      await sender.sendMessages([{ body }]);
      const receiver = bench.client().createReceiver('q', manual);
      const [single, batched] = await take(receiver, 2);
      expect([body.equals(single?.body), body.equals(batched?.body)]).toEqual([true, true]);
      await receiver.deferMessage(single as never);
      await receiver.deadLetterMessage(batched as never);
      const [deferred] = await receiver.receiveDeferredMessages(single?.sequenceNumber as Long);
      expect(body.equals(deferred?.body)).toBe(true);
      const dead = bench.client().createReceiver('q', { ...manual, subQueueType: 'deadLetter' });
      expect(body.equals((await take(dead, 1))[0]?.body)).toBe(true);
    } finally {
      await bench.close();
    }
  });
});
