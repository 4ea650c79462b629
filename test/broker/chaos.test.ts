import { describe, expect, it } from 'vitest';
import { Chaos, randomFrom } from '../../local/broker/chaos.ts';
import type { FaultEvent } from '../../local/broker/faults.ts';
import { Bench, manual, peekAll } from './harness.ts';

const EVENTS: FaultEvent[] = [
  { at: 'send', entity: 'q' },
  { at: 'settle', entity: 'q', operation: 'complete', via: 'link' },
  { at: 'manage', entity: 'q', operation: 'com.microsoft:renew-lock' },
  { at: 'deliver', entity: 'q' },
  { at: 'frame', entity: '' },
];

function decisions(seed: number, count = 2_000) {
  const chaos = new Chaos({ seed });
  for (let i = 0; i < count; i++) chaos.decide([EVENTS[i % EVENTS.length] as FaultEvent]);
  return chaos.log;
}

describe('chaos', () => {
  it('decides the same for the same seed and events, and otherwise for another seed', () => {
    expect(decisions(7)).toEqual(decisions(7));
    expect(decisions(7)).not.toEqual(decisions(8));
  });

  it('does only what can happen to an event, at about the rate that is set', () => {
    const chaos = new Chaos({ seed: 1, rates: { loseLock: 0.5, refuse: 0, serverBusy: 0, loseAnswer: 0 } });
    for (let i = 0; i < 10_000; i++) chaos.decide([EVENTS[i % EVENTS.length] as FaultEvent]);
    const lost = chaos.log.filter(({ effect }) => effect.do === 'lose-lock');
    expect(new Set(lost.map(({ at }) => at))).toEqual(new Set(['settle', 'manage']));
    expect(Math.abs(lost.length - 2_000)).toBeLessThan(150);
    expect(chaos.log.filter(({ at }) => at === 'frame').every(({ effect }) => effect.do === 'drop-connection')).toBe(
      true,
    );
  });

  it('ends when it is stopped', () => {
    const chaos = new Chaos({ seed: 1, rates: { delay: 1 } });
    expect(chaos.decide([{ at: 'send', entity: 'q' }])?.do).toBeDefined();
    chaos.stop();
    expect(chaos.decide([{ at: 'send', entity: 'q' }])).toBeUndefined();
  });

  it('draws evenly', () => {
    const random = randomFrom(42);
    const buckets = new Array<number>(10).fill(0);
    for (let i = 0; i < 100_000; i++) {
      const at = Math.floor(random() * 10);
      buckets[at] = (buckets[at] ?? 0) + 1;
    }
    expect(Math.min(...buckets)).toBeGreaterThan(9_500);
    expect(Math.max(...buckets)).toBeLessThan(10_500);
  });
});

describe('under chaos', () => {
  it.each([1, 2, 3])('what was accepted is there unless it was taken, and nothing else is: seed %i', async (seed) => {
    const config = { q: { MaxDeliveryCount: 2000, LockDuration: 'PT2S' } };
    const bench = await Bench.start(config, {}, { chaos: { seed, maxDelayMs: 20 } });
    try {
      const [accepted, attempted, completed, tried] = [0, 1, 2, 3].map(() => new Set<string>()) as [Ids, Ids, Ids, Ids];
      let client = bench.client(300);
      for (let i = 0; i < 40; i++) {
        const ids = Array.from({ length: 5 }, (_, at) => `${i}-${at}`);
        for (const id of ids) attempted.add(id);
        try {
          await client.createSender('q').sendMessages(ids.map((messageId) => ({ messageId, body: 'x' })));
          for (const id of ids) accepted.add(id);
        } catch {
          client = bench.client(300);
        }
      }
      for (let i = 0; i < 30; i++) {
        try {
          const receiver = client.createReceiver('q', manual);
          for (const message of await receiver.receiveMessages(5, { maxWaitTimeInMs: 50 })) {
            tried.add(String(message.messageId));
            await receiver.completeMessage(message);
            completed.add(String(message.messageId));
          }
          await receiver.close();
        } catch {
          client = bench.client(300);
        }
      }
      expect(bench.broker.chaos?.log.length).toBeGreaterThan(0);
      bench.broker.chaos?.stop();
      const left = new Set(
        (await peekAll(bench.client().createReceiver('q'))).map(({ messageId }) => String(messageId)),
      );
      // A lost answer leaves the outcome open; an acceptance is the truth.
      for (const id of accepted) expect(left.has(id) || tried.has(id)).toBe(true);
      for (const id of completed) expect(left.has(id)).toBe(false);
      for (const id of left) expect(attempted.has(id)).toBe(true);
      expect(bench.broker.messages('q')).toHaveLength(left.size);
    } finally {
      await bench.close();
    }
  });
});

type Ids = Set<string>;
