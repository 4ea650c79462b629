/** Traps in the client libraries, held here so that an update which closes one, or opens another, is noticed. */
import type { ServiceBusReceivedMessage } from '@azure/service-bus';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Bench, byToken, manual, peekAll, take, until } from './harness.ts';

let bench: Bench;

beforeAll(async () => {
  const short = { LockDuration: 'PT2S' };
  bench = await Bench.start({ q: {}, same: short, distinct: short });
});
beforeEach(() => {
  for (const path of ['q', 'same', 'distinct']) bench.broker.recreate(path);
});
afterAll(() => bench.close());

const why = (deadLetterReason: string) => ({ deadLetterReason, deadLetterErrorDescription: 'test' });
const left = () => bench.broker.messages('q').length;

describe('the client settling neighbours in one tick', () => {
  async function received(count: number) {
    await bench
      .client()
      .createSender('q')
      .sendMessages(Array.from({ length: count }, (_, i) => ({ body: i, messageId: `m${i}` })));
    const receiver = bench.client().createReceiver('q', manual);
    return { receiver, messages: (await take(receiver, count)) as [never, never, never, never] };
  }
  const buried = async () => {
    const dead = await peekAll(bench.client().createReceiver('q', { subQueueType: 'deadLetter' }));
    return dead.map(({ messageId, deadLetterReason }) => [messageId, deadLetterReason]);
  };

  it('turns a dead-letter beside a complete into a complete: the letter is gone, and the promise is kept', async () => {
    const { receiver, messages } = await received(4);
    const [a, b, c, d] = messages;
    await Promise.all([
      receiver.completeMessage(a),
      receiver.deadLetterMessage(b, why('B')),
      receiver.deadLetterMessage(c, why('C')),
      receiver.completeMessage(d),
    ]);
    expect([left(), await buried()]).toEqual([0, [['m2', 'C']]]);
  });

  it('gives a dead letter the reason of the one before it', async () => {
    const { receiver, messages } = await received(4);
    await Promise.all(messages.map((message, i) => receiver.deadLetterMessage(message, why(`r${i}`))));
    expect(await buried()).toEqual([
      ['m0', 'r0'],
      ['m1', 'r0'],
      ['m2', 'r2'],
      ['m3', 'r3'],
    ]);
  });

  it.each([
    ['each is awaited', undefined],
    ['it goes by token over $management', byToken],
  ] as const)('does what it was told when %s', async (_, address) => {
    const { receiver, messages } = await received(4);
    const settlements = messages.map((message: ServiceBusReceivedMessage, i) => () => {
      const target = address ? address(message.lockToken) : message;
      return i % 3 === 0 ? receiver.completeMessage(target) : receiver.deadLetterMessage(target, why(`r${i}`));
    });
    if (address) await Promise.all(settlements.map((settle) => settle()));
    else for (const settle of settlements) await settle();
    expect([left(), await buried()]).toEqual([
      0,
      [
        ['m1', 'r1'],
        ['m2', 'r2'],
      ],
    ]);
  });
});

describe('the broker, whose library has the same trap,', () => {
  it('refuses the second of three sends of one tick, and only that one', async () => {
    const sender = bench.client().createSender('q');
    await sender.sendMessages({ body: 'opens the link' });
    bench.broker.faults.add({ at: 'send', skip: 1, do: 'refuse' });
    const sends = await Promise.allSettled(
      [1, 2, 3].map((body) => sender.sendMessages({ body, messageId: `${body}` })),
    );
    expect(sends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const stored = await peekAll(bench.client().createReceiver('q'));
    expect(stored.slice(1).map(({ messageId }) => messageId)).toEqual(['1', '3']);
  });

  it('answers each of several settlements of one tick by itself', async () => {
    await bench
      .client()
      .createSender('q')
      .sendMessages([1, 2, 3].map((body) => ({ body })));
    const receiver = bench.client().createReceiver('q', manual);
    const messages = await take(receiver, 3);
    bench.broker.faults.add({ at: 'settle', skip: 1, do: 'lose-lock' });
    const settled = await Promise.allSettled(messages.map((message) => receiver.completeMessage(message)));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(bench.broker.messages('q')).toMatchObject([{ sequenceNumber: 2n, locked: false }]);
  });
});

describe('peeking without a number', () => {
  it('goes on where any receiver of the same client and entity left off', async () => {
    await bench
      .client()
      .createSender('q')
      .sendMessages([1, 2].map((body) => ({ body })));
    const client = bench.client();
    expect(await client.createReceiver('q').peekMessages(10)).toHaveLength(2);
    const second = client.createReceiver('q');
    expect(await second.peekMessages(10)).toEqual([]);
    expect(await peekAll(second)).toHaveLength(2);
    expect(await bench.client().createReceiver('q').peekMessages(10)).toHaveLength(2);
  });
});

describe('the renewal of locks', () => {
  it('goes by message id: settling one of two with the same id ends it for the other', async () => {
    let firstEnd = 0;
    for (const path of ['same', 'distinct']) {
      const ids = path === 'same' ? ['id', 'id'] : ['id', 'other'];
      await bench
        .client()
        .createSender(path)
        .sendMessages(ids.map((messageId) => ({ messageId, body: 1 })));
      const receiver = bench.client().createReceiver(path, { maxAutoLockRenewalDurationInMs: 60_000 });
      const [first, second] = await take(receiver, 2);
      await receiver.completeMessage(first as never);
      // Read now: the client writes each renewal into the message.
      firstEnd = second?.lockedUntilUtc?.getTime() ?? 0;
    }
    const second = (path: string) => bench.broker.messages(path)[0];
    await until(() => second('same')?.locked === false, 'the end of the lock');
    expect(second('same')).toMatchObject({ deliveryCount: 1 });
    await until(() => bench.broker.clock.now() > firstEnd, 'the end of the lock as it was first');
    expect(second('distinct')).toMatchObject({ locked: true, deliveryCount: 0 });
  });
});
