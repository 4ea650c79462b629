/** The ceiling of a namespace as the adapter keeps it, on the local broker. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodedMessage } from '../../shared/brokers/broker.ts';
import type { Source } from '../../shared/catalog.ts';
import type { PlanId } from '../../shared/letter.ts';
import { dataSection } from '../broker/harness.ts';
import { type Bench, holdAll, START, startBench } from '../harness/serviceBus.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

/** The source in a namespace of its own, with this ceiling. */
function under(operationsPerSecond: number): Source {
  const namespace = { ...bench.orders.namespace, label: `under-${operationsPerSecond}`, operationsPerSecond };
  return { ...bench.orders, namespace };
}

const messages = (count: number) => Array.from({ length: count }, () => encodedMessage(dataSection('x')));

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

describe('the ceiling of a namespace', () => {
  it('holds for its sends, a message each, whatever they come in', async () => {
    const target = await bench.office.openTarget(under(100), 'parking');
    expect(await target.send(messages(100), 5_000)).toEqual({ kind: 'accepted' });
    expect(await msOf(() => target.send(messages(40), 5_000))).toBeGreaterThan(300);
    expect(bench.broker.messages('parking')).toHaveLength(140);
    await target.close();
  });

  it('holds for all together: what is locked or peeked is not sent', async () => {
    await bench.deadLetter(messages(60));
    const source = under(100);
    const [queue, target] = [await bench.office.open(source), await bench.office.openTarget(source, 'parking')];
    const locked = await queue.receive(60, 2_000);
    expect(locked).toHaveLength(60);
    // Sixty locked, sixty peeked for their bytes, and sixty held: eighty are owed, and time has hardly passed.
    await queue.hold(locked.map(({ lock }) => lock));
    expect(await msOf(() => target.send(messages(10), 5_000))).toBeGreaterThan(400);
    await target.close();
  });

  it('keeps no settlement waiting: its lock would run out', async () => {
    await bench.deadLetter(messages(20));
    const queue = await bench.office.open(bench.orders);
    const numbers = await holdAll(queue, 20);
    const slow = await bench.office.open(under(20));
    const { locked } = await slow.take(numbers);
    expect(locked).toHaveLength(20);
    expect(await msOf(() => slow.complete(locked.map(({ lock }) => lock)))).toBeLessThan(800);
    expect(bench.broker.messages('orders/$DeadLetterQueue')).toEqual([]);
  });

  it('refuses a send that would wait too long, before anything is written', async () => {
    const target = await bench.office.openTarget(under(1), 'parking');
    expect(await target.send(messages(20), 2_000)).toEqual({ kind: 'accepted' });
    const outcome = await target.send(messages(1), 200);
    expect(outcome).toMatchObject({ kind: 'refused-busy', code: 'over-budget' });
    expect(bench.broker.messages('parking')).toHaveLength(20);
    await target.close();
  });

  it('is one for each namespace', async () => {
    const slow = await bench.office.openTarget(under(1), 'parking');
    await slow.send(messages(20), 2_000);
    const free = await bench.office.openTarget(bench.orders, 'parking');
    expect(await msOf(() => free.send(messages(20), 2_000))).toBeLessThan(1_000);
  });

  it('sends those who wait away when the office closes', async () => {
    const source = under(1);
    const target = await bench.office.openTarget(source, 'parking');
    const queue = await bench.office.open(source);
    await queue.peek(START, 1);
    await target.send(messages(20), 2_000);
    const waiting = queue.peek(START, 1);
    const told = expect(waiting).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
    const sending = target.send(messages(1), 2_000);
    await bench.office.close();
    await told;
    expect(await sending).toMatchObject({ kind: 'refused-busy' });
  });
});

describe('a broker that says it is busy gets less traffic', () => {
  const busy = { do: 'refuse', condition: 'com.microsoft:server-busy', description: 'throttled' } as const;
  const halved = 'namespace main: the broker is busy: at most 50000 operations a second for now';

  it('when it refuses a send', async () => {
    const target = await bench.office.openTarget(bench.orders, 'parking');
    bench.broker.faults.add({ at: 'send', ...busy });
    expect(await target.send(messages(1), 2_000)).toMatchObject({ kind: 'refused-busy' });
    expect(bench.lines).toEqual([halved]);
    expect(await target.send(messages(1), 2_000)).toEqual({ kind: 'accepted' });
  });

  it('when it refuses a request', async () => {
    const queue = await bench.office.open(bench.orders);
    bench.broker.faults.add({ at: 'manage', operation: 'peek-message', ...busy });
    await expect(queue.peek(START, 10)).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
    expect(bench.lines).toEqual([halved]);
    expect(await queue.peek(START, 10)).toEqual([]);
  });

  it('also when nobody is told of the refusal', async () => {
    bench.broker.faults.add({ at: 'manage', operation: 'peek-message', ...busy });
    expect(await bench.office.isWaiting(bench.orders, 'parking', 'p' as PlanId)).toBe('unknown');
    expect(bench.lines).toEqual([halved]);
  });

  it('but not when it refuses for another reason', async () => {
    const queue = await bench.office.open(bench.orders);
    bench.broker.faults.add({ at: 'manage', operation: 'peek-message', do: 'refuse' });
    await expect(queue.peek(START, 10)).rejects.toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
    expect(bench.lines).toEqual([]);
  });
});
