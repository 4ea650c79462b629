import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MovableClock, parseConfig } from '../../local/broker/index.ts';
import { Bench, manual, take } from './harness.ts';

let bench: Bench;

const Properties = { RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 'PT1M' };
beforeAll(async () => {
  const config = parseConfig({
    UserConfig: {
      Namespaces: [
        { Queues: [{ Name: 'q', Properties }], Topics: [{ Name: 't', Properties, Subscriptions: [{ Name: 's' }] }] },
      ],
    },
  });
  bench = await Bench.start({}, {}, { config, clock: new MovableClock() });
});
beforeEach(() => {
  for (const path of ['q', 't']) bench.broker.recreate(path);
});
afterAll(() => bench.close());

const send = (path: string, ...ids: string[]) =>
  bench
    .client()
    .createSender(path)
    .sendMessages(ids.map((messageId) => ({ messageId, body: 1 })));
const count = (path: string) => bench.broker.messages(path).length;

describe('a duplicate', () => {
  it('is accepted and dropped, alone or in a batch', async () => {
    await send('q', 'a');
    await send('q', 'a');
    await send('q', 'b', 'a', 'c', 'b');
    expect(count('q')).toBe(3);
  });

  it('of a dead letter is dropped as well, until the window is over', async () => {
    await send('q', 'a');
    const receiver = bench.client().createReceiver('q', manual);
    await receiver.deadLetterMessage((await take(receiver, 1))[0] as never);
    await send('q', 'a');
    expect(count('q')).toBe(0);
    bench.broker.clock.advance(60_000);
    await send('q', 'a');
    expect(count('q')).toBe(1);
  });

  it('at a topic reaches no subscription', async () => {
    await send('t', 'a');
    await send('t', 'a', 'b');
    expect(count('t/Subscriptions/s')).toBe(2);
  });

  it('of a scheduled message is answered with a number no message has', async () => {
    const sender = bench.client().createSender('q');
    const later = new Date(Date.now() + 3_600_000);
    const [first] = await sender.scheduleMessages({ messageId: 'a', body: 1 }, later);
    const [second] = await sender.scheduleMessages({ messageId: 'a', body: 1 }, later);
    expect([first?.toNumber(), second?.toNumber(), count('q')]).toEqual([1, 0, 1]);
  });
});
