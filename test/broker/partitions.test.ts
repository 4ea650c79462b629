import Long from 'long';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Bench, dataSection, manual, peekAll, take } from './harness.ts';
import { RawClient } from './raw-client.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start({ p: { EnablePartitioning: true } });
});
beforeEach(() => bench.broker.recreate('p'));
afterAll(() => bench.close());

const partition = (number: Long | undefined) => number?.shiftRightUnsigned(48).toNumber();

describe('a partitioned queue', () => {
  it('numbers beyond 2^53 and spreads single messages', async () => {
    const sender = bench.client().createSender('p');
    for (let i = 0; i < 20; i++) await sender.sendMessages({ body: i });
    const receiver = bench.client().createReceiver('p', manual);
    const messages = await take(receiver, 20);
    for (const { sequenceNumber } of messages) {
      expect(sequenceNumber?.greaterThan(Long.fromNumber(Number.MAX_SAFE_INTEGER))).toBe(true);
    }
    expect(new Set(messages.map(({ sequenceNumber }) => partition(sequenceNumber))).size).toBe(16);
    expect(messages.map(({ body }) => Number(body))).toEqual(Array.from({ length: 20 }, (_, i) => i));
    for (const message of messages) await receiver.completeMessage(message);
  });

  it('is peeked one partition at a time', async () => {
    const sender = bench.client().createSender('p');
    for (let i = 0; i < 20; i++) await sender.sendMessages({ body: i });
    const receiver = bench.client().createReceiver('p');
    expect((await peekAll(receiver)).length).toBeLessThan(3);
    let seen = 0;
    let from: Long = Long.ZERO;
    for (let more = true; more; ) {
      const page = await receiver.peekMessages(250, { fromSequenceNumber: from });
      seen += page.length;
      from = page.at(-1)?.sequenceNumber?.add(1) ?? from;
      more = page.length > 0;
    }
    expect(seen).toBe(20);
  });

  it('takes a batch of one key and refuses one of several', async () => {
    const sender = bench.client().createSender('p');
    await sender.sendMessages([1, 2, 3].map((body) => ({ body, partitionKey: 'k' })));
    await sender.sendMessages([1, 2, 3].map((body) => ({ body, sessionId: 's' })));
    await sender.sendMessages([1, 2, 3].map((body) => ({ body })));
    await expect(sender.sendMessages([1, 2].map((body) => ({ body, partitionKey: `k${body}` })))).rejects.toThrow(
      'needs one session id or partition key',
    );
    expect(bench.broker.messages('p')).toHaveLength(9);
  });

  it('refuses a batch whose envelope lacks the key of its messages', async () => {
    await bench.client().createSender('p').sendMessages({ body: 1, partitionKey: 'k' });
    const [stored] = bench.broker.messages('p');
    const raw = await RawClient.connect(bench.broker);
    const sender = await raw.sender('p');
    const batch = dataSection(stored?.stored as Buffer);
    expect(await raw.sent(sender, batch, 0x80013700)).toBe('amqp:not-allowed');
    expect(await raw.sent(sender, stored?.stored as Buffer)).toBe('accepted');
    raw.close();
  });

  it('gives deferred messages from one partition a call', async () => {
    const sender = bench.client().createSender('p');
    for (let i = 0; i < 2; i++) await sender.sendMessages({ body: i });
    const receiver = bench.client().createReceiver('p', manual);
    const messages = await take(receiver, 2);
    for (const message of messages) await receiver.deferMessage(message);
    const numbers = messages.map(({ sequenceNumber }) => sequenceNumber as Long);
    await expect(receiver.receiveDeferredMessages(numbers)).rejects.toThrow('different partitions is not supported');
    for (const number of numbers) {
      const [message] = await receiver.receiveDeferredMessages(number);
      await receiver.completeMessage(message as never);
    }
    expect(bench.broker.messages('p')).toEqual([]);
  });
});
