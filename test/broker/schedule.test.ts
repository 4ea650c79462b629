import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MovableClock } from '../../local/broker/index.ts';
import { Bench, manual, peekAll, take } from './harness.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start(
    { q: {}, s: { RequiresSession: true } },
    { t: ['one', 'two'] },
    { clock: new MovableClock() },
  );
});
beforeEach(() => {
  for (const path of ['q', 's', 't']) bench.broker.recreate(path);
});
afterAll(() => bench.close());

const inAnHour = () => new Date(bench.broker.clock.now() + 3_600_000);

describe('a scheduled message', () => {
  it.each(['sent', 'scheduled'] as const)(
    'that was %s is peeked, not received, and active at its time',
    async (how) => {
      const sender = bench.client().createSender('q');
      const time = inAnHour();
      if (how === 'sent') await sender.sendMessages({ body: 'x', scheduledEnqueueTimeUtc: time });
      else expect((await sender.scheduleMessages({ body: 'x' }, time)).map(String)).toEqual(['1']);
      const receiver = bench.client().createReceiver('q', manual);
      const [peeked] = await peekAll(receiver);
      expect(peeked).toMatchObject({ state: 'scheduled', scheduledEnqueueTimeUtc: time });
      expect(await receiver.receiveMessages(1, { maxWaitTimeInMs: 50 })).toEqual([]);
      const waiting = receiver.receiveMessages(1, { maxWaitTimeInMs: 3000 });
      bench.broker.clock.advance(3_600_000);
      const [message] = await waiting;
      expect(message).toMatchObject({ state: 'active', enqueuedSequenceNumber: 1, enqueuedTimeUtc: time });
      expect(message?.sequenceNumber?.toNumber()).toBe(2);
      await receiver.completeMessage(message as never);
    },
  );

  it('can be cancelled before its time, and not after', async () => {
    const sender = bench.client().createSender('q');
    const [first, second] = await sender.scheduleMessages([{ body: 1 }, { body: 2 }], inAnHour());
    await sender.cancelScheduledMessages(first as Long);
    await expect(sender.cancelScheduledMessages(first as Long)).rejects.toMatchObject({ code: 'MessageNotFound' });
    bench.broker.clock.advance(3_600_000);
    await expect(sender.cancelScheduledMessages(second as Long)).rejects.toMatchObject({ code: 'MessageNotFound' });
    expect(bench.broker.messages('q')).toMatchObject([
      { state: 'active', sequenceNumber: 3n, enqueueSequenceNumber: 2n },
    ]);
  });

  it('at a topic reaches the subscriptions at its time', async () => {
    const sender = bench.client().createSender('t');
    const [number] = await sender.scheduleMessages({ body: 1 }, inAnHour());
    await sender.sendMessages({ body: 2, scheduledEnqueueTimeUtc: inAnHour() });
    expect(number?.toNumber()).toBe(1);
    expect(bench.broker.messages('t/Subscriptions/one')).toEqual([]);
    bench.broker.clock.advance(3_600_000);
    for (const name of ['one', 'two']) {
      const copies = bench.broker.messages(`t/Subscriptions/${name}`);
      expect(copies.map(({ enqueueSequenceNumber }) => enqueueSequenceNumber)).toEqual([1n, 2n]);
    }
    await sender.cancelScheduledMessages(await sender.scheduleMessages({ body: 3 }, inAnHour()));
    bench.broker.clock.advance(3_600_000);
    // The default time to live, an hour, is over for the first two.
    expect(bench.broker.messages('t/Subscriptions/one')).toEqual([]);
  });

  it('for a session wakes who waits for the next one', async () => {
    await bench.client().createSender('s').scheduleMessages({ body: 1, sessionId: 'a' }, inAnHour());
    const waiting = bench.client().acceptNextSession('s', { maxAutoLockRenewalDurationInMs: 0 });
    await new Promise((resolve) => setTimeout(resolve, 50));
    bench.broker.clock.advance(3_600_000);
    const receiver = await waiting;
    expect([receiver.sessionId, (await take(receiver, 1))[0]?.body]).toEqual(['a', 1]);
  });
});
