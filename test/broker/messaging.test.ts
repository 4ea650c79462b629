import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Bench, byToken, manual, peekAll, rethrow, take, until } from './harness.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start(
    Object.fromEntries(
      [
        'send',
        'modes',
        'settle',
        'tokens',
        'deferred',
        'dead',
        'peek',
        'stream',
        'credit',
        'renew',
        'team/orders',
        'ids',
        'recreate',
        'drop',
      ].map((name) => [name, { MaxDeliveryCount: 3 }]),
    ),
    { news: ['first', 'second'] },
    { maxMessageBytes: 100_000 },
  );
});
afterAll(() => bench.close());

const numbersOf = (path: string) => bench.broker.messages(path).map(({ sequenceNumber }) => Number(sequenceNumber));
const reason = (deadLetterReason: string) => ({ deadLetterReason, deadLetterErrorDescription: 'test' });
const rejection = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: Error & { code?: string }) => ({ code: error.code, message: error.message }),
  );

describe('sending', () => {
  it('takes single messages and batches, in order', async () => {
    const sender = bench.client().createSender('send');
    await sender.sendMessages({
      body: Buffer.from('one'),
      messageId: 'first',
      applicationProperties: { kind: 'single' },
    });
    const batch = await sender.createMessageBatch();
    expect(batch.maxSizeInBytes).toBe(100_000);
    for (const body of ['two', 'three']) batch.tryAddMessage({ body: Buffer.from(body) });
    await sender.sendMessages(batch);
    const messages = await peekAll(bench.client().createReceiver('send', manual));
    expect(messages.map(({ body }) => String(body))).toEqual(['one', 'two', 'three']);
    expect(messages[0]).toMatchObject({
      messageId: 'first',
      applicationProperties: { kind: 'single' },
      deliveryCount: 0,
      state: 'active',
    });
    expect(messages[0]?.enqueuedTimeUtc?.getTime()).toBeCloseTo(Date.now(), -4);
  });

  it('gives every message an id that came without one', async () => {
    await bench
      .client()
      .createSender('ids')
      .sendMessages([{ body: 1 }, { body: 2 }]);
    const ids = (await peekAll(bench.client().createReceiver('ids', manual))).map(({ messageId }) => messageId);
    expect(ids).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(new Set(ids).size).toBe(2);
  });

  it('refuses what is too large, single or batch, and stores nothing of it', async () => {
    const before = numbersOf('send');
    const sender = bench.client().createSender('send');
    expect(await rejection(sender.sendMessages({ body: Buffer.alloc(100_000) }))).toMatchObject({
      code: 'MessageSizeExceeded',
    });
    const array = Array.from({ length: 4 }, () => ({ body: Buffer.alloc(30_000) }));
    expect(await rejection(sender.sendMessages(array))).toMatchObject({ code: 'MessageSizeExceeded' });
    expect(numbersOf('send')).toEqual(before);
    await sender.sendMessages({ body: Buffer.alloc(99_000) });
  });

  it('reaches every subscription of a topic, each with its own copy', async () => {
    await bench
      .client()
      .createSender('news')
      .sendMessages([{ body: 'a' }, { body: 'b' }]);
    const receiver = bench.client().createReceiver('news', 'first', manual);
    for (const message of await take(receiver, 2)) await receiver.completeMessage(message);
    expect(numbersOf('news/Subscriptions/first')).toEqual([]);
    expect(numbersOf('NEWS/subscriptions/SECOND')).toEqual([1, 2]);
    // A subscription numbers its copies itself; the topic's number goes along.
    bench.broker.recreate('news/Subscriptions/second');
    await bench.client().createSender('news').sendMessages({ body: 'c' });
    const [copy] = await peekAll(bench.client().createReceiver('news', 'second'));
    expect([copy?.sequenceNumber?.toNumber(), copy?.enqueuedSequenceNumber]).toEqual([1, 3]);
  });

  it.each([
    ['nowhere', 'MessagingEntityNotFound', "'nowhere'"],
    ['send/$DeadLetterQueue', 'GeneralError', 'it is a dead-letter queue'],
    ['news/Subscriptions/first', 'GeneralError', 'it is a subscription'],
    ['send/$Transfer/$DeadLetterQueue', 'GeneralError', 'not supported'],
  ])('to %s is refused with %s', async (path, code, text) => {
    const refused = await rejection(bench.client().createSender(path).sendMessages({ body: 1 }));
    expect(refused).toMatchObject({ code, message: expect.stringContaining(text) });
  });
});

describe('receiving', () => {
  it('from a topic, or from nowhere, is refused', async () => {
    const topic = await rejection(bench.client().createReceiver('news').receiveMessages(1, { maxWaitTimeInMs: 500 }));
    expect(topic?.message).toContain("'news' is a topic");
    const nowhere = await rejection(
      bench.client().createReceiver('news', 'third').receiveMessages(1, { maxWaitTimeInMs: 500 }),
    );
    expect(nowhere).toMatchObject({
      code: 'MessagingEntityNotFound',
      message: expect.stringContaining('news/Subscriptions/third'),
    });
  });

  it('works under names with slashes and in any case', async () => {
    await bench.client().createSender('TEAM/Orders').sendMessages({ body: 1 });
    const receiver = bench.client().createReceiver('Team/ORDERS', manual);
    const [message] = await take(receiver, 1);
    await receiver.deadLetterMessage(message as never, reason('test'));
    const dead = bench.client().createReceiver('team/orders', { ...manual, subQueueType: 'deadLetter' });
    expect((await take(dead, 1))[0]?.deadLetterReason).toBe('test');
  });

  it('and deleting removes at once', async () => {
    await bench
      .client()
      .createSender('modes')
      .sendMessages([{ body: 1 }, { body: 2 }]);
    const receiver = bench.client().createReceiver('modes', { receiveMode: 'receiveAndDelete' });
    expect((await take(receiver, 2)).map(({ body }) => body)).toEqual([1, 2]);
    expect(numbersOf('modes')).toEqual([]);
  });

  it('more than fits one window and one ring of deliveries works, deleting or settling', async () => {
    const sender = bench.client().createSender('credit');
    for (let i = 0; i < 6; i++) await sender.sendMessages(Array.from({ length: 500 }, () => ({ body: 'x' })));
    const deleting = bench.client().createReceiver('credit', { receiveMode: 'receiveAndDelete' });
    await take(deleting, 2500);
    for (let i = 0; i < 5; i++) await sender.sendMessages(Array.from({ length: 500 }, () => ({ body: 'x' })));
    const receiver = bench.client().createReceiver('credit', manual);
    for (let round = 0; round < 3; round++) {
      const messages = await take(receiver, 1000);
      await Promise.all(messages.map((message) => receiver.completeMessage(message)));
    }
    expect(numbersOf('credit')).toEqual([]);
  });

  it('never locks more than the client gave credit for', async () => {
    await bench
      .client()
      .createSender('credit')
      .sendMessages(Array.from({ length: 20 }, () => ({ body: 'x' })));
    const receiver = bench.client().createReceiver('credit', manual);
    const messages = await receiver.receiveMessages(7, { maxWaitTimeInMs: 2000 });
    expect(messages).toHaveLength(7);
    expect(bench.broker.messages('credit').filter(({ locked }) => locked)).toHaveLength(7);
    for (const message of messages) await receiver.completeMessage(message);
  });

  it('an empty queue ends by itself and leaves the receiver usable', async () => {
    const receiver = bench.client().createReceiver('modes', manual);
    for (let i = 0; i < 3; i++) expect(await receiver.receiveMessages(5, { maxWaitTimeInMs: 30 })).toEqual([]);
    await bench.client().createSender('modes').sendMessages({ body: 'now' });
    const [message] = await take(receiver, 1);
    await receiver.completeMessage(message as never);
  });

  it('by subscription hands on what comes later', async () => {
    const receiver = bench.client().createReceiver('stream', manual);
    const seen: string[] = [];
    const subscription = receiver.subscribe(
      { processMessage: async ({ body }) => void seen.push(String(body)), processError: rethrow },
      { maxConcurrentCalls: 3 },
    );
    const sender = bench.client().createSender('stream');
    for (let i = 0; i < 10; i++) await sender.sendMessages({ body: Buffer.from(String(i)) });
    await until(() => numbersOf('stream').length === 0 && seen.length === 10, 'all messages to be completed');
    expect(seen.toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => String(i)));
    await subscription.close();
  });
});

describe('a streaming receiver', () => {
  it('goes on by itself after its connection was dropped', async () => {
    const seen: string[] = [];
    const receiver = bench.client().createReceiver('drop', manual);
    const subscription = receiver.subscribe({
      processMessage: async ({ body }) => void seen.push(String(body)),
      processError: async () => {},
    });
    await bench
      .client()
      .createSender('drop')
      .sendMessages({ body: Buffer.from('before') });
    await until(() => seen.length === 1 && numbersOf('drop').length === 0, 'the first message');
    bench.broker.dropConnections();
    await bench
      .client()
      .createSender('drop')
      .sendMessages({ body: Buffer.from('after') });
    await until(() => seen.length === 2, 'the second message');
    await subscription.close();
  });
});

describe('settling', () => {
  async function received(count: number) {
    await bench
      .client()
      .createSender('settle')
      .sendMessages(Array.from({ length: count }, (_, i) => ({ body: i })));
    const receiver = bench.client().createReceiver('settle', manual);
    return { receiver, messages: await take(receiver, count) };
  }

  it('completes, abandons, defers and dead-letters over the link, with properties', async () => {
    const { receiver, messages } = await received(4);
    const [a, b, c, d] = messages as [never, never, never, never];
    await receiver.completeMessage(a);
    await receiver.abandonMessage(b, { note: 'again' });
    await receiver.deferMessage(c, { note: 'later' });
    await receiver.deadLetterMessage(d, {
      deadLetterReason: 'why',
      deadLetterErrorDescription: 'because',
      note: 'dead',
    });
    const left = await peekAll(receiver);
    expect(left.map((m) => [m.state, m.deliveryCount, m.applicationProperties])).toEqual([
      ['active', 1, { note: 'again' }],
      ['deferred', 1, { note: 'later' }],
    ]);
    const dead = await peekAll(bench.client().createReceiver('settle', { subQueueType: 'deadLetter' }));
    expect(dead[0]).toMatchObject({
      deadLetterReason: 'why',
      deadLetterErrorDescription: 'because',
      applicationProperties: { note: 'dead' },
      deliveryCount: 0,
    });
    bench.broker.recreate('settle');
  });

  it('leaves out a dead-letter reason that was not given', async () => {
    const { receiver, messages } = await received(1);
    await receiver.deadLetterMessage(messages[0] as never);
    const [dead] = await peekAll(bench.client().createReceiver('settle', { subQueueType: 'deadLetter' }));
    expect(dead?.applicationProperties).toBeUndefined();
    bench.broker.recreate('settle');
  });

  it('works by lock token from another connection, also after the link is closed', async () => {
    const { receiver, messages } = await received(4);
    await receiver.close();
    const other = bench.client().createReceiver('settle', manual);
    const [a, b, c, d] = messages.map(({ lockToken }) => byToken(lockToken)) as [never, never, never, never];
    await other.completeMessage(a);
    await other.abandonMessage(b, { note: 1 });
    await other.deferMessage(c);
    await other.deadLetterMessage(d, { deadLetterReason: 'why', deadLetterErrorDescription: 'because', note: 'dead' });
    expect(bench.broker.messages('settle').map(({ state, locked }) => [state, locked])).toEqual([
      ['active', false],
      ['deferred', false],
    ]);
    const [dead] = await peekAll(bench.client().createReceiver('settle', { subQueueType: 'deadLetter' }));
    expect(dead?.applicationProperties).toEqual({
      note: 'dead',
      DeadLetterReason: 'why',
      DeadLetterErrorDescription: 'because',
    });
    expect(await rejection(other.completeMessage(a))).toMatchObject({ code: 'MessageLockLost' });
    bench.broker.recreate('settle');
  });

  it('of neighbours with different outcomes, each awaited, keeps them apart', async () => {
    const { receiver, messages } = await received(6);
    for (const [i, message] of messages.entries()) {
      if (i % 2) await receiver.deadLetterMessage(message, reason(`r${i}`));
      else await receiver.completeMessage(message);
    }
    const dead = await peekAll(bench.client().createReceiver('settle', { subQueueType: 'deadLetter' }));
    expect(dead.map(({ deadLetterReason }) => deadLetterReason)).toEqual(['r1', 'r3', 'r5']);
    bench.broker.recreate('settle');
  });

  it('twice, or after recreation, is answered with a lost lock', async () => {
    const { receiver, messages } = await received(2);
    bench.broker.recreate('settle');
    expect(await rejection(receiver.completeMessage(messages[0] as never))).toMatchObject({ code: 'MessageLockLost' });
    expect(await rejection(receiver.renewMessageLock(messages[1] as never))).toMatchObject({ code: 'MessageLockLost' });
    await bench.client().createSender('settle').sendMessages({ body: 1 });
    expect(numbersOf('settle')).toEqual([1]);
    bench.broker.recreate('settle');
  });

  it('survives a dropped connection: the lock holds and the token works', async () => {
    const { messages } = await received(1);
    bench.broker.dropConnections();
    expect(bench.broker.messages('settle')).toMatchObject([{ locked: true }]);
    const other = bench.client().createReceiver('settle', manual);
    await other.completeMessage(byToken(messages[0]?.lockToken));
    expect(numbersOf('settle')).toEqual([]);
  });
});

describe('deferred messages', () => {
  it('are received by number, many at once, or not at all', async () => {
    await bench
      .client()
      .createSender('deferred')
      .sendMessages(Array.from({ length: 4 }, (_, i) => ({ body: i })));
    const receiver = bench.client().createReceiver('deferred', manual);
    const messages = await take(receiver, 4);
    const numbers = messages.map(({ sequenceNumber }) => sequenceNumber as Long);
    for (const message of messages.slice(0, 3)) await receiver.deferMessage(message);
    expect(await rejection(receiver.receiveDeferredMessages(numbers))).toMatchObject({ code: 'MessageNotFound' });
    expect(bench.broker.messages('deferred').filter(({ locked }) => locked)).toHaveLength(1);
    const taken = await receiver.receiveDeferredMessages(numbers.slice(0, 3));
    expect(taken.map(({ body, state }) => [Number(String(body)), state])).toEqual(
      [0, 1, 2].map((n) => [n, 'deferred']),
    );
    expect(await rejection(receiver.receiveDeferredMessages(numbers.slice(0, 1)))).toMatchObject({
      code: 'MessageNotFound',
    });
    await receiver.completeMessage(taken[0] as never);
    await receiver.abandonMessage(taken[1] as never);
    await receiver.deadLetterMessage(taken[2] as never, reason('d'));
    expect(bench.broker.messages('deferred').map(({ state }) => state)).toEqual(['deferred', 'active']);
  });

  it('work in a dead-letter queue, which counts nothing and takes no further dead letters', async () => {
    await bench.client().createSender('dead').sendMessages({ body: 'x' });
    const main = bench.client().createReceiver('dead', manual);
    await main.abandonMessage((await take(main, 1))[0] as never);
    await main.deadLetterMessage((await take(main, 1))[0] as never, reason('r'));
    const dead = bench.client().createReceiver('dead', { ...manual, subQueueType: 'deadLetter' });
    for (let i = 0; i < 4; i++) await dead.abandonMessage((await take(dead, 1))[0] as never);
    const [message] = await take(dead, 1);
    expect(message?.deliveryCount).toBe(1);
    await dead.deferMessage(message as never);
    const [deferred] = await dead.receiveDeferredMessages(message?.sequenceNumber as Long);
    expect(deferred).toMatchObject({ deliveryCount: 1, deadLetterReason: 'r', state: 'deferred' });
    expect((await rejection(dead.deadLetterMessage(deferred as never)))?.message).toContain('cannot be dead-lettered');
    await dead.completeMessage(deferred as never);
    expect(numbersOf('dead/$DeadLetterQueue')).toEqual([]);
  });
});

describe('peeking', () => {
  it('shows every state, changes nothing, and pages by number', async () => {
    await bench
      .client()
      .createSender('peek')
      .sendMessages(Array.from({ length: 300 }, (_, i) => ({ body: i })));
    const receiver = bench.client().createReceiver('peek', manual);
    const [first, second] = await take(receiver, 2);
    await receiver.deferMessage(first as never);
    const page = await peekAll(receiver, 1000);
    expect(page).toHaveLength(250);
    expect(page.slice(0, 3).map(({ state }) => state)).toEqual(['deferred', 'active', 'active']);
    const next = page.at(-1)?.sequenceNumber?.add(1) as Long;
    expect(await receiver.peekMessages(1000, { fromSequenceNumber: next })).toHaveLength(50);
    expect(await receiver.peekMessages(10, { fromSequenceNumber: next.add(50) })).toEqual([]);
    await receiver.completeMessage(second as never);
  });
});

describe('a lock', () => {
  it('is renewed for as long as it was', async () => {
    await bench.client().createSender('renew').sendMessages({ body: 1 });
    const receiver = bench.client().createReceiver('renew', manual);
    const [message] = await take(receiver, 1);
    bench.broker.clock.advance(50_000);
    const until = await receiver.renewMessageLock(message as never);
    expect(until.getTime()).toBeCloseTo(bench.broker.clock.now() + 60_000, -3);
    bench.broker.clock.advance(50_000);
    await receiver.completeMessage(message as never);
  });
});
