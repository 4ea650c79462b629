import { expect, it } from 'vitest';
import { Bench, manual, peekAll, rethrow, take } from './harness.ts';

/** `STRESS_MESSAGES=6000 STRESS_RUNS=10` for the long form. */
const total = Number(process.env.STRESS_MESSAGES ?? 1500);
const seeds = Array.from({ length: Number(process.env.STRESS_RUNS ?? 1) }, (_, run) => 99 + run);

it.each(seeds)('five consumers settling at random lose nothing and get nothing twice (seed %i)', async (firstSeed) => {
  const bench = await Bench.start({ q: { MaxDeliveryCount: 2000 } });
  try {
    const sender = bench.client().createSender('q');
    for (let i = 0; i < total; i += 100) {
      await sender.sendMessages(Array.from({ length: 100 }, (_, at) => ({ body: i + at, messageId: String(i + at) })));
    }
    const fates = new Map<string, 'completed' | 'deferred' | 'dead'>();
    const holders = new Map<string, number>();
    const completedTwice: string[] = [];
    const heldTwice: string[] = [];
    let seed = firstSeed;
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed / 2_147_483_648;
    };
    const decide = (id: string, fate: 'completed' | 'deferred' | 'dead') => {
      if (fates.has(id)) completedTwice.push(id);
      fates.set(id, fate);
    };
    const consumers = Array.from({ length: 5 }, async (_, consumer) => {
      const receiver = bench.client().createReceiver('q', manual);
      while (fates.size < total) {
        const messages = await receiver.receiveMessages(1 + Math.floor(random() * 20), { maxWaitTimeInMs: 200 });
        for (const { messageId } of messages) {
          if (holders.has(String(messageId))) heldTwice.push(String(messageId));
          holders.set(String(messageId), consumer);
        }
        for (const message of messages) {
          const id = String(message.messageId);
          const choice = random();
          holders.delete(id);
          if (choice < 0.5) {
            await receiver.completeMessage(message);
            decide(id, 'completed');
          } else if (choice < 0.7) await receiver.abandonMessage(message);
          else if (choice < 0.85) {
            await receiver.deferMessage(message);
            decide(id, 'deferred');
          } else {
            await receiver.deadLetterMessage(message, { deadLetterReason: id, deadLetterErrorDescription: 'stress' });
            decide(id, 'dead');
          }
        }
      }
    });
    await Promise.all(consumers);
    expect({ completedTwice, heldTwice }).toEqual({ completedTwice: [], heldTwice: [] });
    const count = (fate: string) => [...fates.values()].filter((each) => each === fate).length;
    const left = bench.broker.messages('q');
    expect(left.every(({ state, locked }) => state === 'deferred' && !locked)).toBe(true);
    expect(left).toHaveLength(count('deferred'));
    expect(bench.broker.messages('q/$DeadLetterQueue')).toHaveLength(count('dead'));
    const dead = await peekAll(bench.client().createReceiver('q', { subQueueType: 'deadLetter' }));
    expect(dead.every(({ messageId, deadLetterReason }) => messageId === deadLetterReason)).toBe(true);
  } finally {
    await bench.close();
  }
});

it('a streaming consumer with many calls at once completes everything once', async () => {
  const bench = await Bench.start({ q: {} });
  try {
    const total = 1000;
    const sender = bench.client().createSender('q');
    const seen = new Map<string, number>();
    const receiver = bench.client().createReceiver('q', manual);
    const done = new Promise<void>((resolve) => {
      receiver.subscribe(
        {
          processMessage: async ({ messageId }) => {
            seen.set(String(messageId), (seen.get(String(messageId)) ?? 0) + 1);
            if (seen.size === total) resolve();
          },
          processError: rethrow,
        },
        { maxConcurrentCalls: 50 },
      );
    });
    for (let i = 0; i < total; i += 100) {
      await sender.sendMessages(Array.from({ length: 100 }, (_, at) => ({ body: 'x', messageId: String(i + at) })));
    }
    await done;
    await receiver.close();
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    expect(bench.broker.messages('q').filter(({ locked }) => !locked)).toEqual([]);
  } finally {
    await bench.close();
  }
});

it('two connections share what comes in', async () => {
  const bench = await Bench.start({ q: {} });
  try {
    const receivers = [0, 1].map(() => bench.client().createReceiver('q', manual));
    const receiving = receivers.map((receiver) => take(receiver, 10));
    const sender = bench.client().createSender('q');
    for (let i = 0; i < 20; i++) await sender.sendMessages({ body: i });
    const ids = (await Promise.all(receiving)).flat().map(({ sequenceNumber }) => sequenceNumber?.toNumber());
    expect(new Set(ids).size).toBe(20);
  } finally {
    await bench.close();
  }
});
