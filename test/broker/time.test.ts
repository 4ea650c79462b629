import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MovableClock } from '../../local/broker/index.ts';
import { Bench, manual, peekAll, take, until } from './harness.ts';

let bench: Bench;
let at = 1_700_000_000_000;

beforeAll(async () => {
  // A clock that stands still but for `advance`: nothing here depends on how fast the machine is.
  bench = await Bench.start(
    {
      q: {
        LockDuration: 'PT30S',
        MaxDeliveryCount: 2,
        DefaultMessageTimeToLive: 'PT10M',
        DeadLetteringOnMessageExpiration: true,
      },
      drop: { DefaultMessageTimeToLive: 'PT10M' },
    },
    {},
    { clock: new MovableClock(() => at) },
  );
});
beforeEach(() => {
  at += 1000;
  for (const path of ['q', 'drop']) bench.broker.recreate(path);
});
afterAll(() => bench.close());

const count = (path: string) => bench.broker.messages(path).length;
const deadLetters = async () => peekAll(bench.client().createReceiver('q', { subQueueType: 'deadLetter' }));

describe('moving the clock', () => {
  it('ends locks at once, and the message is delivered again', async () => {
    await bench.client().createSender('q').sendMessages({ body: 1 });
    const receiver = bench.client().createReceiver('q', manual);
    const [first] = await take(receiver, 1);
    expect(first?.lockedUntilUtc?.getTime()).toBe(bench.broker.clock.now() + 30_000);
    bench.broker.clock.advance(30_000);
    expect(bench.broker.messages('q')).toMatchObject([{ locked: false, deliveryCount: 1 }]);
    await expect(receiver.completeMessage(first as never)).rejects.toMatchObject({ code: 'MessageLockLost' });
    const [second] = await take(receiver, 1);
    expect(second?.deliveryCount).toBe(1);
    await receiver.completeMessage(second as never);
  });

  it('dead-letters a message whose locks expired too often', async () => {
    await bench.client().createSender('q').sendMessages({ body: 1 });
    const receiver = bench.client().createReceiver('q', manual);
    for (let i = 0; i < 2; i++) {
      await take(receiver, 1);
      bench.broker.clock.advance(30_000);
    }
    expect(await deadLetters()).toMatchObject([
      {
        deadLetterReason: 'MaxDeliveryCountExceeded',
        deadLetterErrorDescription: 'Message could not be consumed after 2 delivery attempts.',
        deliveryCount: 2,
      },
    ]);
  });

  it('hands a message whose lock ended to a consumer that is waiting for it', async () => {
    await bench.client().createSender('q').sendMessages({ body: 1 });
    await take(bench.client().createReceiver('q', manual), 1);
    const waiting = bench.client().createReceiver('q', manual);
    const received = waiting.receiveMessages(1, { maxWaitTimeInMs: 4000 });
    bench.broker.clock.advance(30_000);
    const [message] = await received;
    expect(message?.deliveryCount).toBe(1);
    await waiting.completeMessage(message as never);
  });

  it('dead-letters what expired, keeping its numbers, or drops it', async () => {
    const client = bench.client();
    for (const path of ['q', 'drop']) await client.createSender(path).sendMessages({ body: 1, messageId: 'm' });
    const { enqueuedAt } = bench.broker.messages('q')[0] ?? { enqueuedAt: 0 };
    bench.broker.clock.advance(600_000);
    expect([count('q'), count('drop'), count('drop/$DeadLetterQueue')]).toEqual([0, 0, 0]);
    const [dead] = await deadLetters();
    expect(dead).toMatchObject({
      messageId: 'm',
      deadLetterReason: 'TTLExpiredException',
      deadLetterErrorDescription: 'The message expired and was dead lettered.',
      enqueuedTimeUtc: new Date(enqueuedAt),
    });
    expect(dead?.sequenceNumber?.toNumber()).toBe(1);
  });

  it('lets nothing expire in a dead-letter queue', async () => {
    await bench.client().createSender('q').sendMessages({ body: 1 });
    bench.broker.clock.advance(600_000);
    bench.broker.clock.advance(30 * 86_400_000);
    expect(count('q/$DeadLetterQueue')).toBe(1);
  });
});

describe('a time to live the SDK states', () => {
  it("is an absolute time of the client's own clock as well, and both are honoured", async () => {
    // The broker's clock stands far behind the client's: here the duration is what ends first.
    await bench.client().createSender('q').sendMessages({ body: 1, timeToLive: 5_000 });
    bench.broker.clock.advance(4_999);
    expect(count('q')).toBe(1);
    bench.broker.clock.advance(1);
    expect([count('q'), count('q/$DeadLetterQueue')]).toEqual([0, 1]);
  });
});

describe('a running clock', () => {
  it('ends locks and lives by itself', async () => {
    const short = await Bench.start({
      q: { LockDuration: 'PT0.1S', DefaultMessageTimeToLive: 'PT0.3S', DeadLetteringOnMessageExpiration: true },
    });
    try {
      await short.client().createSender('q').sendMessages({ body: 1 });
      await take(short.client().createReceiver('q', manual), 1);
      await until(() => short.broker.messages('q')[0]?.locked !== true, 'the end of the lock');
      await until(() => short.broker.messages('q/$DeadLetterQueue').length === 1, 'the end of the message');
    } finally {
      await short.close();
    }
  });

  it('only moves forward', () => {
    expect(() => new MovableClock().advance(-1)).toThrow(RangeError);
  });
});
