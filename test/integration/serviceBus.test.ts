import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { ServiceBusClient } from '@azure/service-bus';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type DeadLetterQueue,
  type EncodedMessage,
  lockToken,
  type ResendChange,
} from '../../shared/brokers/broker.ts';
import { createServiceBus } from '../../shared/brokers/serviceBus/index.ts';
import { type PlanId, type SequenceNumber, sequenceNumber } from '../../shared/letter.ts';
import { expectExact } from '../harness/exact.ts';
import { type Bench, holdAll, START, startBench } from '../harness/serviceBus.ts';
import { BODIES, data, fullMessage, messageOf, types } from '../harness/typedMessage.ts';

const DLQ = 'orders/$DeadLetterQueue';

let bench: Bench;
let queue: DeadLetterQueue;

beforeEach(async () => {
  bench = await startBench();
  queue = await bench.office.open(bench.orders);
});
afterEach(() => bench.close());

function change(replayOf: SequenceNumber): ResendChange {
  const planId = '20261130t104512-k3f5q2xa' as PlanId;
  return { replayCount: 1, replayedAt: 1_800_000_000_000, planId, replayOf, bypass: false };
}

function small(id: string): EncodedMessage {
  return messageOf({ properties: [types.Str8(id)], body: [data(`body of ${id}`)] });
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => `id-${i}`);
const behind = (number: SequenceNumber) => sequenceNumber(BigInt(number) + 1n);

describe('a replayed message', () => {
  it.each(Object.entries(BODIES))('is the message that died, when its body is %s', async (_, body) => {
    const original = fullMessage('id-1', body);
    await bench.deadLetter([original]);
    const [number] = await holdAll(queue, 1);
    const { locked } = await queue.take(number === undefined ? [] : [number]);
    const [letter] = locked;
    if (number === undefined || letter === undefined) throw new Error('the letter could not be taken');
    expect(letter.letter).toMatchObject({ reason: 'Unprocessable', description: 'no such customer', state: 'held' });

    const target = await bench.office.openTarget(bench.orders, 'parking');
    expect(await target.send([bench.office.reset(letter.message, change(number))], 5_000)).toEqual({
      kind: 'accepted',
    });
    expect(await queue.complete([letter.lock])).toEqual(['settled']);
    expect(bench.broker.messages(DLQ)).toEqual([]);

    const arrived = bench.broker.messages('parking')[0]?.stored ?? Buffer.alloc(0);
    expectExact(original, arrived);
  });

  it('is the same in a batch, in the order given', async () => {
    await bench.deadLetter(ids(3).map(small));
    const numbers = await holdAll(queue, 3);
    const { locked } = await queue.take(numbers);
    const messages = locked.map(({ letter, message }) => bench.office.reset(message, change(letter.sequenceNumber)));
    const target = await bench.office.openTarget(bench.orders, 'parking');
    expect(await target.send(messages, 5_000)).toEqual({ kind: 'accepted' });
    expect(bench.broker.messages('parking').map(({ stored }) => stored)).toEqual(messages);
  });
});

describe('looking', () => {
  it('shows letters in order, page by page, and changes nothing', async () => {
    const numbers = await bench.deadLetter(ids(70).map(small));
    const seen: SequenceNumber[] = [];
    for (let from = START; ; ) {
      const page = await queue.peek(from, 30);
      const last = page.at(-1);
      if (last === undefined) break;
      expect(page.length).toBeLessThanOrEqual(30);
      seen.push(...page.map(({ letter }) => letter.sequenceNumber));
      from = behind(last.letter.sequenceNumber);
    }
    expect(seen).toEqual(numbers);
    expect(bench.broker.messages(DLQ).filter(({ locked, state }) => locked || state !== 'active')).toEqual([]);
  });

  it('asks for smaller pages when letters are heavy', async () => {
    const heavy = Array.from({ length: 12 }, (_, i) =>
      messageOf({ properties: [types.Str8(`${i}`)], body: [data(Buffer.alloc(200_000))] }),
    );
    await bench.deadLetter(heavy);
    await queue.peek(START, 10);
    const bytes = (await queue.peek(START, 250)).reduce((sum, { message }) => sum + message.length, 0);
    expect(bytes).toBeLessThanOrEqual(4 * 1024 * 1024);
  });

  it('finds the letter with exactly that number, held and locked ones too', async () => {
    const [first, second] = await bench.deadLetter(ids(2).map(small));
    if (first === undefined || second === undefined) throw new Error('no letters');
    const [locked] = await queue.receive(1, 5_000);
    await queue.hold(locked ? [locked.lock] : []);
    await queue.take([first]);
    expect((await queue.peekOne(first))?.letter).toMatchObject({
      sequenceNumber: first,
      messageId: 'id-0',
      state: 'held',
    });
    expect((await queue.peekOne(second))?.letter).toMatchObject({ sequenceNumber: second, state: 'active' });
    expect(await queue.peekOne(behind(second))).toBeUndefined();
  });

  it('scans numbers, states and what tells a known message, without bodies', async () => {
    const numbers = await bench.deadLetter(ids(3).map(small));
    await holdAll(queue, 2);
    const states = ['held', 'held', 'active'];
    const enqueuedAt = bench.broker.messages('orders/$DeadLetterQueue').map((held) => held.enqueuedAt);
    expect(await queue.scan(START, 10)).toEqual(
      numbers.map((sequenceNumber, i) => ({
        sequenceNumber,
        state: states[i],
        messageId: `id-${i}`,
        enqueuedAt: enqueuedAt[i],
      })),
    );
    expect(await queue.scan(behind(numbers.at(-1) ?? START), 10)).toEqual([]);
  });

  it('reads the dead-letter queue of a subscription', async () => {
    await bench.deadLetter([small('id-0')], bench.billing);
    const billing = await bench.office.open(bench.billing);
    expect((await billing.peek(START, 10)).map(({ letter }) => letter.messageId)).toEqual(['id-0']);
  });
});

describe('receiving', () => {
  it('locks up to the wanted number of active letters, with the bytes that a peek gives', async () => {
    await bench.deadLetter(ids(5).map(small));
    const locked = await queue.receive(3, 5_000);
    expect(locked.map(({ letter }) => letter.messageId)).toEqual(['id-0', 'id-1', 'id-2']);
    const stored = bench.broker.messages(DLQ);
    expect(locked.map(({ lockedUntil }) => lockedUntil)).toEqual(
      stored.slice(0, 3).map(({ lockedUntil }) => lockedUntil),
    );
    expect(stored.map(({ locked: isLocked }) => isLocked)).toEqual([true, true, true, false, false]);
    expect((await queue.receive(10, 5_000)).map(({ letter }) => letter.messageId)).toEqual(['id-3', 'id-4']);
  });

  it('gives nothing when there is nothing, and locks nothing afterwards', async () => {
    expect(await queue.receive(10, 50)).toEqual([]);
    await bench.deadLetter([small('id-0')]);
    expect(bench.broker.messages(DLQ).map(({ locked }) => locked)).toEqual([false]);
  });

  it('leaves held letters alone', async () => {
    await bench.deadLetter(ids(2).map(small));
    await holdAll(queue, 1);
    expect((await queue.receive(10, 5_000)).map(({ letter }) => letter.messageId)).toEqual(['id-1']);
  });

  it('locks a letter anew when its lock has ended', async () => {
    await bench.deadLetter([small('id-0')]);
    const [first] = await queue.receive(1, 5_000);
    bench.broker.clock.advance(61_000);
    const [second] = await queue.receive(1, 5_000);
    expect(second?.letter.sequenceNumber).toBe(first?.letter.sequenceNumber);
    expect(await queue.hold([first?.lock ?? lockToken('')])).toEqual(['lost']);
    expect(await queue.hold([second?.lock ?? lockToken('')])).toEqual(['settled']);
  });
});

describe('taking by number', () => {
  it('locks what it can and says of every other number why not', async () => {
    const numbers = await bench.deadLetter(ids(6).map(small));
    await holdAll(queue, 5);
    const [gone, busy, ...rest] = numbers as [SequenceNumber, SequenceNumber, ...SequenceNumber[]];
    const removed = await queue.take([gone]);
    await queue.complete(removed.locked.map(({ lock }) => lock));
    await queue.take([busy]);
    const never = sequenceNumber(999_999n);

    const taken = await queue.take([...numbers, never]);
    expect(taken.locked.map(({ letter }) => letter.sequenceNumber)).toEqual(rest.slice(0, 3));
    expect(taken.absent).toEqual([gone, never]);
    expect(taken.busy).toEqual([busy]);
    expect(taken.active).toEqual([numbers[5]]);
    expect(await queue.complete(taken.locked.map(({ lock }) => lock))).toEqual(['settled', 'settled', 'settled']);
  });

  it('takes more than one request holds, in the order asked for', async () => {
    await bench.deadLetter(ids(230).map(small));
    const numbers = (await holdAll(queue, 230)).toReversed();
    const { locked, ...others } = await queue.take(numbers);
    expect(locked.map(({ letter }) => letter.sequenceNumber)).toEqual(numbers);
    expect(others).toEqual({ absent: [], busy: [], active: [] });
  });

  it('asks for nothing when there is nothing to ask for', async () => {
    expect(await queue.take([])).toEqual({ locked: [], absent: [], busy: [], active: [] });
  });

  it('gives a held letter back as held', async () => {
    await bench.deadLetter([small('id-0')]);
    const numbers = await holdAll(queue, 1);
    const { locked } = await queue.take(numbers);
    expect(await queue.release(locked.map(({ lock }) => lock))).toEqual(['settled']);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
  });
});

describe('settling by lock token', () => {
  it('holds a letter that another connection locked', async () => {
    await bench.deadLetter([small('id-0')]);
    const client = new ServiceBusClient(bench.broker.connectionString);
    const receiver = client.createReceiver('orders', {
      subQueueType: 'deadLetter',
      maxAutoLockRenewalDurationInMs: 0,
    });
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5_000 });
    await client.close();
    expect(await queue.hold([lockToken(message?.lockToken ?? '')])).toEqual(['settled']);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
  });

  it('tells the locks that were lost from those that were not', async () => {
    await bench.deadLetter(ids(4).map(small));
    const locks = (await queue.receive(4, 5_000)).map(({ lock }) => lock);
    await queue.release(locks.slice(1, 2));
    expect(await queue.hold([...locks, lockToken('no lock token at all')])).toEqual([
      'settled',
      'lost',
      'settled',
      'settled',
      'lost',
    ]);
    expect(bench.broker.messages(DLQ).filter(({ state }) => state === 'deferred')).toHaveLength(3);
  });

  it('says lost when it is repeated after its answer got lost', async () => {
    const quick = createServiceBus({
      settings: bench.settings,
      clock: Date.now,
      log: () => {},
      operationTimeoutMs: 300,
    });
    const other = await quick.open(bench.orders);
    await bench.deadLetter([small('id-0')]);
    const [letter] = await other.receive(1, 5_000);
    bench.broker.faults.add({ at: 'settle', do: 'lose-answer' });
    await expect(other.complete([letter?.lock ?? lockToken('')])).rejects.toMatchObject({
      code: 'DLO_BROKER_UNAVAILABLE',
    });
    expect(await other.complete([letter?.lock ?? lockToken('')])).toEqual(['lost']);
    expect(bench.broker.messages(DLQ)).toEqual([]);
    await quick.close();
  });
});

describe('sending', () => {
  const waiting = () => bench.broker.messages('parking').length;

  it('tells how large a transfer may be and how large one would be', async () => {
    const target = await bench.office.openTarget(bench.orders, 'parking');
    expect(target.maxBytes).toBe(262_144);
    const single = messageOf({ body: [data(Buffer.alloc(262_144 - 8))] });
    expect(target.batchBytes([single])).toBe(262_144);
    expect(await target.send([single], 5_000)).toEqual({ kind: 'accepted' });
    expect(await target.send([single, small('id')], 5_000)).toMatchObject({
      kind: 'refused-message',
      code: 'amqp:link:message-size-exceeded',
    });
    expect(waiting()).toBe(1);
  });

  it.each([
    ['com.microsoft:server-busy', 'refused-busy'],
    ['com.microsoft:entity-disabled', 'refused-target'],
    ['amqp:resource-limit-exceeded', 'refused-target'],
    ['amqp:not-allowed', 'refused-message'],
    ['com.microsoft:something-new', 'refused-message'],
    ['com.microsoft:timeout', 'unknown'],
  ])('takes the refusal %s for %s', async (condition, kind) => {
    const target = await bench.office.openTarget(bench.orders, 'parking');
    bench.broker.faults.add({ at: 'send', do: 'refuse', condition, description: 'because' });
    const outcome = await target.send([small('id')], 5_000);
    expect(outcome).toMatchObject({ kind, description: expect.stringContaining('because') });
    expect(await target.send([small('id')], 5_000)).toEqual({ kind: 'accepted' });
    expect(waiting()).toBe(1);
  });

  it('does not know the outcome when the answer is lost, and does not send again by itself', async () => {
    const target = await bench.office.openTarget(bench.orders, 'parking');
    bench.broker.faults.add({ at: 'send', do: 'lose-answer' });
    expect(await target.send([small('id')], 200)).toMatchObject({ kind: 'unknown' });
    expect(waiting()).toBe(1);
    expect(await target.send([small('next')], 5_000)).toEqual({ kind: 'accepted' });
    expect(waiting()).toBe(2);
  });

  it.each(['before', 'after'] as const)(
    'does not know the outcome when the connection drops %s the broker stored it',
    async (when) => {
      const target = await bench.office.openTarget(bench.orders, 'parking');
      bench.broker.faults.add({ at: 'send', do: 'drop-connection', when });
      expect(await target.send([small('id')], 5_000)).toMatchObject({ kind: 'unknown' });
      expect(waiting()).toBe(when === 'after' ? 1 : 0);
      expect(await target.send([small('next')], 5_000)).toEqual({ kind: 'accepted' });
    },
  );

  it('opens its link again when it was lost between sends', async () => {
    const target = await bench.office.openTarget(bench.orders, 'parking');
    bench.broker.dropConnections();
    await expect.poll(() => target.send([small('id')], 5_000)).toEqual({ kind: 'accepted' });
    expect(waiting()).toBe(1);
  });

  it('is certain that nothing was sent when the broker cannot be reached', async () => {
    const target = await bench.office.openTarget(bench.orders, 'parking');
    await bench.broker.close();
    await expect.poll(() => target.send([small('id')], 5_000)).toMatchObject({ kind: 'refused-busy' });
  });

  it('says in the broker’s words why a target cannot be opened', async () => {
    const opening = bench.office.openTarget(bench.orders, 'nowhere');
    await expect(opening).rejects.toMatchObject({ code: 'DLO_TARGET_UNAVAILABLE', data: { code: 'amqp:not-found' } });
  });
});

describe('an entity that is not there', () => {
  it('is told as such by every kind of link, whether it is the first on its connection or not', async () => {
    const missing = { ...bench.orders, path: 'nowhere' };
    const code = 'MessagingEntityNotFoundError';
    for (let round = 0; round < 5; round++) {
      const office = createServiceBus({ settings: bench.settings, clock: Date.now, log: () => {} });
      const nowhere = await office.open(missing);
      const told = { code: 'DLO_BROKER_UNAVAILABLE', data: { code } };
      await expect(nowhere.peek(START, 1)).rejects.toMatchObject(told);
      await expect(nowhere.receive(1, 100)).rejects.toMatchObject({
        ...told,
        message: expect.stringContaining('nowhere'),
      });
      await expect(nowhere.take(['1' as SequenceNumber])).rejects.toMatchObject(told);
      await expect(office.openTarget(missing, 'nowhere')).rejects.toMatchObject({ code: 'DLO_TARGET_UNAVAILABLE' });
      await office.close();
    }
  });
});

describe('trouble with the connection', () => {
  it.each(['peek-message', 'receive-by-sequence-number', 'update-disposition'])(
    'during %s is told, and the next call connects again',
    async (operation) => {
      await bench.deadLetter([small('id-0')]);
      const numbers = await holdAll(queue, 1);
      const { locked } = await queue.take(numbers);
      const lock = locked.map((letter) => letter.lock);
      bench.broker.faults.add({ at: 'manage', operation, do: 'drop-connection', when: 'before' });
      const call = () =>
        operation === 'peek-message'
          ? queue.peek(START, 1)
          : operation === 'update-disposition'
            ? queue.release(lock)
            : queue.take(numbers);
      await expect(call()).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
      await call();
      expect(await queue.peek(START, 1)).toHaveLength(1);
    },
  );

  it('is told when the broker does not answer in time', async () => {
    const quick = createServiceBus({
      settings: bench.settings,
      clock: Date.now,
      log: () => {},
      operationTimeoutMs: 200,
    });
    const other = await quick.open(bench.orders);
    await other.peek(START, 1);
    bench.broker.faults.add({ at: 'manage', do: 'lose-answer' });
    await expect(other.peek(START, 1)).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
    expect(await other.peek(START, 1)).toEqual([]);
    await quick.close();
  });

  it('is told at once to everybody who waits for an answer', async () => {
    const fault = bench.broker.faults.add({ at: 'manage', operation: 'peek-message', do: 'hold', times: 5 });
    const all = Promise.allSettled(Array.from({ length: 5 }, () => queue.peek(START, 1)));
    await expect.poll(() => fault.hits).toBe(5);
    bench.broker.dropConnections();
    expect((await all).map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'rejected'));
  });

  it('is told when the key is wrong', async () => {
    const wrong = bench.broker.connectionString.replace(/SharedAccessKey=[^;]+/, 'SharedAccessKey=d3Jvbmc=');
    const other = createServiceBus({ settings: { ServiceBus: wrong }, clock: Date.now, log: () => {} });
    const closed = await other.open(bench.orders);
    const peek = closed.peek(START, 1);
    await expect(peek).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE', data: { code: 'UnauthorizedError' } });
    await other.close();
  });

  it('is told when the setting names no connection', async () => {
    const other = createServiceBus({ settings: {}, clock: Date.now, log: () => {} });
    await expect(other.open(bench.orders)).rejects.toMatchObject({ code: 'DLO_SETTINGS_INVALID' });
  });

  it('ends all use of a broker that was closed', async () => {
    await queue.peek(START, 1);
    await bench.office.close();
    await expect(queue.peek(START, 1)).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
  });
});

describe('the connection', () => {
  /** Passes everything on to the broker, and counts. */
  async function counted() {
    const sockets = new Set<Socket>();
    let opened = 0;
    const proxy = createServer((inside) => {
      opened += 1;
      sockets.add(inside);
      const outside = connect(bench.broker.port, '127.0.0.1');
      inside.pipe(outside).pipe(inside);
      for (const socket of [inside, outside]) socket.on('error', () => socket.destroy());
      inside.on('close', () => sockets.delete(inside));
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    return {
      settings: { ServiceBus: bench.broker.connectionString.replace(`:${bench.broker.port}`, `:${port}`) },
      opened: () => opened,
      open: () => sockets.size,
      close: () => proxy.close(),
    };
  }

  it('is shared by all sources and targets of a namespace', async () => {
    const proxy = await counted();
    const office = createServiceBus({ settings: proxy.settings, clock: Date.now, log: () => {} });
    const queues = await Promise.all([office.open(bench.orders), office.open(bench.billing)]);
    await Promise.all([...queues, ...queues].map((open) => open.peek(START, 1)));
    await office.openTarget(bench.orders, 'parking');
    expect(proxy.opened()).toBe(1);
    await office.close();
    await expect.poll(proxy.open).toBe(0);
    proxy.close();
  });

  it('puts a new token to the broker before the old one ends', async () => {
    await bench.deadLetter(ids(2).map(small));
    const proxy = await counted();
    const office = createServiceBus({ settings: proxy.settings, clock: Date.now, log: () => {} });
    const other = await office.open(bench.orders);
    expect(await other.receive(1, 5_000)).toHaveLength(1);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * 3_600_000 });
    try {
      expect(await other.receive(1, 5_000)).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
    expect(proxy.opened()).toBe(1);
    await office.close();
    proxy.close();
  });

  it('is closed when nobody has used it for a while, and opened again for the next', async () => {
    const proxy = await counted();
    const office = createServiceBus({ settings: proxy.settings, clock: Date.now, log: () => {}, idleMs: 40 });
    const target = await office.openTarget(bench.orders, 'parking');
    const other = await office.open(bench.orders);
    await expect.poll(proxy.open).toBe(0);
    expect(await other.peek(START, 1)).toEqual([]);
    await expect.poll(proxy.open).toBe(0);
    expect(await target.send([small('id')], 5_000)).toEqual({ kind: 'accepted' });
    expect(proxy.opened()).toBe(3);
    await office.close();
    proxy.close();
  });
});
