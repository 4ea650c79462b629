import { describe, expect, it } from 'vitest';
import { forwardDeadLettersTo, forwardTo } from '../../local/broker/forwarding.ts';
import { partitionOf } from '../../local/broker/partitions.ts';
import { RuleSet } from '../../local/broker/rules/rule-set.ts';
import { Topic } from '../../local/broker/topic.ts';
import { arrival, Core, conditionOf, lock, type MessageOptions, numbers, reasonOf, START } from './core.ts';

function open(settings = {}) {
  const core = new Core();
  return { core, ...core.open('q', settings) };
}

describe('duplicate detection', () => {
  const store = (bench: ReturnType<typeof open>, ...messages: MessageOptions[]) =>
    bench.queue.store(messages.map((message) => arrival(message))).map((entry) => entry !== undefined);

  it('drops a known message id without a word, one by one in a batch', () => {
    const bench = open({ duplicateWindow: 60_000 });
    expect(store(bench, { id: 'a' }, { id: 'b' }, { id: 'a' })).toEqual([true, true, false]);
    expect(store(bench, { id: 'c' }, { id: 'b' })).toEqual([true, false]);
    expect(numbers(bench.queue)).toEqual([1n, 2n, 3n]);
  });

  it.each(['completed', 'dead-lettered', 'expired'] as const)('remembers a message that was %s', (fate) => {
    const bench = open({ duplicateWindow: 60_000 });
    store(bench, { id: 'a', ttl: 1_000 });
    if (fate === 'expired') bench.core.advance(1_000);
    else {
      const { token } = lock(bench.queue);
      bench.queue.settle(
        [token],
        fate === 'completed' ? { kind: 'complete' } : { kind: 'dead-letter', properties: [] },
      );
    }
    expect(numbers(bench.queue)).toEqual([]);
    expect(store(bench, { id: 'a' })).toEqual([false]);
  });

  it('forgets when the window since the last send that was stored is over', () => {
    const bench = open({ duplicateWindow: 60_000 });
    store(bench, { id: 'a' });
    bench.core.advance(40_000);
    expect(store(bench, { id: 'a' })).toEqual([false]);
    bench.core.advance(19_999);
    expect(store(bench, { id: 'a' })).toEqual([false]);
    bench.core.advance(1);
    expect(store(bench, { id: 'a' }, { id: 'a' })).toEqual([true, false]);
  });

  it('counts a scheduled message from when it was sent, also after it was cancelled', () => {
    const bench = open({ duplicateWindow: 60_000 });
    store(bench, { id: 'a', scheduledFor: START + 1_000 });
    bench.queue.cancelScheduled([1n]);
    expect(store(bench, { id: 'a' })).toEqual([false]);
  });

  it('knows nothing after the entity is emptied', () => {
    const bench = open({ duplicateWindow: 60_000 });
    store(bench, { id: 'a' });
    bench.queue.clear();
    expect(store(bench, { id: 'a' })).toEqual([true]);
  });

  it('goes by id and key in a partitioned entity', () => {
    const bench = open({ duplicateWindow: 60_000, partitions: 16 });
    const ids = [
      { id: 'a', partitionKey: 'x' },
      { id: 'a', partitionKey: 'y' },
      { id: 'a', partitionKey: 'x' },
    ];
    expect(store(bench, ...ids)).toEqual([true, true, false]);
  });
});

describe('scheduled messages', () => {
  it('become active at their time, with a new number and the first one kept', () => {
    const { core, queue } = open();
    queue.store([arrival({ scheduledFor: START + 5_000 }), arrival()]);
    expect(queue.all().map(({ scheduledFor }) => scheduledFor)).toEqual([START + 5_000, undefined]);
    expect(lock(queue).entry.sequenceNumber).toBe(2n);
    core.advance(4_999);
    expect(queue.lockNext()).toBeUndefined();
    core.advance(1);
    expect(lock(queue).entry).toMatchObject({
      sequenceNumber: 3n,
      enqueueSequenceNumber: 1n,
      enqueuedAt: START + 5_000,
      scheduledFor: undefined,
    });
  });

  it('become active in the order of their times when the clock jumps', () => {
    const { core, queue } = open();
    queue.store([3, 1, 2, 1].map((seconds) => arrival({ scheduledFor: START + seconds * 1_000 })));
    core.advance(60_000);
    const order = [1, 2, 3, 4].map(() => lock(queue).entry.enqueueSequenceNumber);
    expect(order).toEqual([2n, 4n, 3n, 1n]);
  });

  it('live from then on, also when the clock jumps over it', () => {
    const { core, queue, deadLetters } = open();
    queue.store([arrival({ scheduledFor: START + 60_000, ttl: 5_000 })]);
    core.advance(64_999);
    expect(queue.all()).toMatchObject([{ enqueuedAt: START + 60_000, expiresAt: START + 65_000 }]);
    core.advance(1);
    expect(numbers(queue)).toEqual([]);
    expect(reasonOf(deadLetters)[0]).toBe('TTLExpiredException');
  });

  it('live from then on, also under the default of the entity', () => {
    const { core, queue } = open({ defaultTimeToLive: 5_000 });
    queue.store([arrival({ scheduledFor: START + 60_000 })]);
    core.advance(60_000);
    core.advance(4_999);
    expect(numbers(queue)).toEqual([2n]);
    core.advance(1);
    expect(numbers(queue)).toEqual([]);
  });

  it('are active at once when their time lies behind', () => {
    const { queue } = open();
    queue.store([arrival({ scheduledFor: START })]);
    expect(lock(queue).entry.sequenceNumber).toBe(1n);
  });

  it('are cancelled all together or not at all', () => {
    const { queue } = open();
    queue.store([arrival({ scheduledFor: START + 1 }), arrival({ scheduledFor: START + 1 }), arrival()]);
    for (const bad of [
      [1n, 3n],
      [1n, 9n],
      [1n, 1n],
    ]) {
      expect(conditionOf(() => queue.cancelScheduled(bad))).toBe('com.microsoft:message-not-found');
    }
    queue.cancelScheduled([2n, 1n]);
    expect(numbers(queue)).toEqual([3n]);
  });
});

describe('forwarding', () => {
  function chain(length: number) {
    const core = new Core();
    const queues = Array.from({ length }, (_, i) => core.open(`q${i}`));
    for (const [i, { queue }] of queues.entries()) {
      const next = queues[i + 1]?.queue;
      if (next) queue.setOutlet(forwardTo(() => next));
    }
    return { core, queues };
  }

  it('gives a new number at the target and keeps the first one', () => {
    const { queues } = chain(2);
    const [source, target] = queues.map(({ queue }) => queue);
    target?.store([arrival(), arrival()]);
    source?.store([arrival()]);
    expect(source?.all()).toEqual([]);
    expect(target?.all().at(-1)).toMatchObject({ sequenceNumber: 3n, enqueueSequenceNumber: 1n, hops: 1 });
  });

  it('goes on for four hops, and the fifth is the end', () => {
    const { queues } = chain(6);
    queues[0]?.queue.store([arrival()]);
    expect(queues.map(({ queue, deadLetters }) => [queue.size, deadLetters.size])).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 1],
      [0, 0],
    ]);
    expect(reasonOf(queues[4]?.deadLetters as never)[0]).toBe('MaxTransferHopCountExceeded');
  });

  it('in a circle ends by the hops', () => {
    const core = new Core();
    const [a, b] = [core.open('a'), core.open('b')];
    a.queue.setOutlet(forwardTo(() => b.queue));
    b.queue.setOutlet(forwardTo(() => a.queue));
    a.queue.store([arrival()]);
    expect(reasonOf(a.deadLetters)[0]).toBe('MaxTransferHopCountExceeded');
    expect([a.queue.size, b.queue.size, b.deadLetters.size]).toEqual([0, 0, 0]);
  });

  it('does not prolong a life', () => {
    const { core, queues } = chain(2);
    queues[0]?.queue.store([arrival({ ttl: 5_000, scheduledFor: START + 1_000 })]);
    core.advance(1_000);
    expect(queues[1]?.queue.all()).toMatchObject([{ expiresAt: START + 6_000 }]);
  });

  it('dead-letters in the source what the target does not take', () => {
    const { queues } = chain(2);
    queues[1]?.queue.setStatus('Disabled');
    queues[0]?.queue.store([arrival()]);
    expect(queues.map(({ queue, deadLetters }) => [queue.size, deadLetters.size])).toEqual([
      [0, 1],
      [0, 0],
    ]);
    expect(reasonOf(queues[0]?.deadLetters as never)[0]).toBe('com.microsoft:entity-disabled');
  });

  it('waits while the source gives nothing', () => {
    const { queues } = chain(2);
    const [source, target] = queues.map(({ queue }) => queue);
    source?.setStatus('ReceiveDisabled');
    source?.store([arrival()]);
    expect([source?.size, target?.size]).toEqual([1, 0]);
    source?.setStatus('Active');
    expect([source?.size, target?.size]).toEqual([0, 1]);
  });

  it('of dead letters says where they come from, and lets what died of age live again', () => {
    const core = new Core();
    const { queue, deadLetters } = core.open('q');
    const target = core.open('errors');
    deadLetters.setOutlet(forwardDeadLettersTo(() => target.queue, 'q'));
    queue.store([arrival({ ttl: 1_000, absoluteExpiry: START + 1_000 })]);
    core.advance(5_000);
    expect(deadLetters.size).toBe(0);
    expect(target.queue.all()).toMatchObject([
      { deadLetterSource: 'q', deliveryCount: 0, enqueuedAt: START + 5_000, expiresAt: START + 6_000 },
    ]);
    expect(reasonOf(target.queue)[0]).toBe('TTLExpiredException');
  });

  it('of dead letters leaves where it is what no target takes', () => {
    const core = new Core();
    const { queue, deadLetters } = core.open('q', { maxDeliveryCount: 1 });
    deadLetters.setOutlet(
      forwardDeadLettersTo(() => {
        throw new Error('gone');
      }, 'q'),
    );
    queue.store([arrival()]);
    queue.settle([lock(queue).token], { kind: 'abandon', properties: [] });
    expect([queue.size, deadLetters.size]).toEqual([0, 1]);
  });
});

describe('the status', () => {
  it.each([
    ['Active', 'nothing was thrown', 'nothing was thrown', 'nothing was thrown'],
    ['SendDisabled', 'com.microsoft:entity-disabled', 'nothing was thrown', 'nothing was thrown'],
    ['ReceiveDisabled', 'nothing was thrown', 'com.microsoft:entity-disabled', 'nothing was thrown'],
    ['Disabled', 'com.microsoft:entity-disabled', 'com.microsoft:entity-disabled', 'com.microsoft:entity-disabled'],
  ] as const)('%s decides who may send, receive and look after messages', (status, send, receive, manage) => {
    const { queue } = open();
    queue.setStatus(status);
    expect(conditionOf(() => queue.store([arrival()]))).toBe(send);
    expect(conditionOf(() => queue.check('receive'))).toBe(receive);
    expect(conditionOf(() => queue.check('manage'))).toBe(manage);
  });
});

describe('a partitioned entity', () => {
  it('numbers beyond what JavaScript counts, each partition by itself', () => {
    const { queue } = open({ partitions: 16 });
    const stored = queue.store(Array.from({ length: 32 }, () => arrival()));
    const all = stored.map((entry) => entry?.sequenceNumber ?? 0n);
    expect(all.every((number) => number > BigInt(Number.MAX_SAFE_INTEGER) && number < 2n ** 63n)).toBe(true);
    expect(new Set(all.map(partitionOf)).size).toBe(16);
    expect(all.map((number) => number & 0xffffffffffffn)).toEqual([
      ...Array.from({ length: 16 }, () => 1n),
      ...Array.from({ length: 16 }, () => 2n),
    ]);
  });

  it('keeps what has one key together', () => {
    const { queue } = open({ partitions: 16 });
    const stored = queue.store([
      ...Array.from({ length: 5 }, () => arrival({ partitionKey: 'x' })),
      ...Array.from({ length: 5 }, () => arrival({ session: 'x' })),
    ]);
    expect(new Set(stored.map((entry) => partitionOf(entry?.sequenceNumber ?? 0n))).size).toBe(1);
  });

  it('answers a peek from one partition at a time, and all of them in the end', () => {
    const { queue } = open({ partitions: 4 });
    queue.store(Array.from({ length: 20 }, () => arrival()));
    const pages: number[] = [];
    let from = 0n;
    for (let page = queue.peek(from, 250); page.length > 0; page = queue.peek(from, 250)) {
      expect(new Set(page.map(({ sequenceNumber }) => partitionOf(sequenceNumber))).size).toBe(1);
      pages.push(page.length);
      from = (page.at(-1)?.sequenceNumber ?? 0n) + 1n;
    }
    expect(pages).toEqual([5, 5, 5, 5]);
  });

  it('hands out in the order of arrival as far as there is one', () => {
    const { queue } = open({ partitions: 4 });
    const stored = queue.store(Array.from({ length: 8 }, () => arrival())).map((entry) => entry?.sequenceNumber);
    expect(stored.map(() => lock(queue).entry.sequenceNumber)).toEqual(stored);
  });

  it('gives by number from one partition only', () => {
    const { queue } = open({ partitions: 4 });
    queue.store([arrival(), arrival()]);
    const tokens = [lock(queue).token, lock(queue).token];
    queue.settle(tokens, { kind: 'defer', properties: [] });
    expect(conditionOf(() => queue.lockDeferred(numbers(queue)))).toBe('amqp:not-allowed');
    for (const number of numbers(queue)) expect(queue.lockDeferred([number])).toHaveLength(1);
  });

  it('activates a scheduled message in its own partition, and buries it there', () => {
    const { core, queue, deadLetters } = open({ partitions: 16 });
    const [entry] = queue.store([arrival({ scheduledFor: START + 1_000, partitionKey: 'k' })]);
    core.advance(1_000);
    const active = lock(queue);
    expect(active.entry.sequenceNumber).toBe((entry?.sequenceNumber ?? 0n) + 1n);
    queue.settle([active.token], { kind: 'dead-letter', properties: [] });
    expect(numbers(deadLetters)).toEqual([active.entry.sequenceNumber]);
  });

  it.each([
    ['one key, on the envelope too', [{ partitionKey: 'k' }, { partitionKey: 'k' }], { partitionKey: 'k' }, true],
    ['one session, on the envelope too', [{ session: 's' }, { session: 's' }], { sessionId: 's' }, true],
    ['no key at all', [{}, {}], {}, true],
    ['two keys', [{ partitionKey: 'k' }, { partitionKey: 'l' }], { partitionKey: 'k' }, false],
    ['a key and none', [{ partitionKey: 'k' }, {}], { partitionKey: 'k' }, false],
    ['one key, but not on the envelope', [{ partitionKey: 'k' }, { partitionKey: 'k' }], {}, false],
    ['a key on the envelope only', [{}, {}], { partitionKey: 'k' }, false],
  ])('takes or refuses a batch with %s', (_, messages, keys, taken) => {
    const { queue } = open({ partitions: 16 });
    const envelope = { sessionId: undefined, partitionKey: undefined, ...keys };
    const store = () => queue.store(messages.map(arrival), envelope);
    expect(conditionOf(store)).toBe(taken ? 'nothing was thrown' : 'amqp:not-allowed');
    expect(queue.size).toBe(taken ? messages.length : 0);
  });

  it('with duplicate detection takes no batch of different ids without a common key', () => {
    const { queue } = open({ partitions: 16, duplicateWindow: 60_000 });
    const none = { sessionId: undefined, partitionKey: undefined };
    const batch = [arrival({ id: 'a' }), arrival({ id: 'b' })];
    expect(conditionOf(() => queue.store(batch, none))).toBe('amqp:not-allowed');
  });
});

describe('the default time to live', () => {
  it('decides about the end of a message and is written nowhere', () => {
    const { queue } = open({ defaultTimeToLive: 60_000 });
    const sent = arrival({ id: 'a' });
    const entry = queue.enqueue(sent);
    expect(entry.expiresAt).toBe(START + 60_000);
    expect(entry.message.bytes).toEqual(sent.message.bytes);
    // The header on the way out has five fields, of which only the delivery count is there.
    expect(queue.encoded(entry).subarray(0, 15).toString('hex')).toBe('005370c00a05404040407000000000');
  });
});

describe('a topic', () => {
  it('hands a scheduled message on at its time, and it lives from then on', () => {
    const core = new Core();
    const settings = { defaultTimeToLive: 3_600_000 };
    const topic = new Topic('t', settings, core.context);
    const { queue } = core.open('t/Subscriptions/s', settings);
    const rules = new RuleSet([{ name: '$Default', filter: { kind: 'true' }, createdAt: START }]);
    topic.add({ name: 's', entity: queue, rules });
    topic.store([arrival({ scheduledFor: START + 60_000, ttl: 5_000, absoluteExpiry: START + 5_000 })]);
    expect([topic.entity.size, queue.size]).toEqual([1, 0]);
    core.clock.time += 60_000;
    topic.entity.sweep();
    expect(topic.entity.size).toBe(0);
    expect(queue.all()).toMatchObject([{ enqueueSequenceNumber: 1n, expiresAt: START + 65_000 }]);
  });
});
