/** Message ids that a target with duplicate detection would recognise: judged by what arrives there and what stays in the DLQ. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { MovableClock, startBroker } from '../../local/broker/index.ts';
import { brokerConfig, openTestOffice, PLAIN, type PlanJson, type TestOffice, until } from '../harness/office.ts';

const detecting = (window: string) => ({
  RequiresDuplicateDetection: true,
  DuplicateDetectionHistoryTimeWindow: window,
});
/** The shortest window there is: with its margin it is over by the office's clock, too, when the tests begin. */
const SHORT = detecting('PT20S');
const LONG = detecting('PT10M');
const queues = {
  once: SHORT,
  renamed: SHORT,
  'two-plans': SHORT,
  'made-before': SHORT,
  refused: SHORT,
  unclear: SHORT,
  edge: LONG,
  later: LONG,
  tried: {},
  sandbox: SHORT,
  shared: SHORT,
};
const entity = (window: string) => ({ ...PLAIN, duplicateDetection: window });
/** How far the broker's clock is behind the office's while the tests run: less than the margin. */
const BEHIND = 30_000;

let office: TestOffice;
beforeAll(async () => {
  // The past is made by a clock that begins an hour ago.
  const clock = new MovableClock(() => Date.now() - 3_600_000);
  const topics = { events: { mail: {}, billing: {} } };
  const broker = await startBroker({ config: brokerConfig(queues, topics), clock });
  const sources = [
    ...['once', 'renamed', 'two-plans', 'made-before', 'refused', 'unclear'].map((name) => ({ name })),
    { name: 'edge', entity: entity('PT10M') },
    { name: 'later', entity: entity('PT10M') },
    { name: 'tried', replay: { sandboxQueue: 'sandbox' } },
    ...['mail', 'billing'].map((name) => ({
      name,
      topic: 'events',
      subscription: name,
      replay: { replayQueue: 'shared' },
    })),
  ];
  office = await openTestOffice({ broker, sources: sources.map((one) => ({ entity: entity('PT20S'), ...one })) });
  const twice = ['once', 'renamed', 'two-plans', 'made-before'];
  const order = { messageId: 'order-17', body: 'first' };
  for (const queue of [...twice, 'refused', 'unclear', 'later', 'tried', 'events']) await office.send(queue, order);
  clock.advance(21_000);
  for (const queue of twice) await office.send(queue, { ...order, body: 'second' });
  for (const queue of [...twice, 'refused', 'unclear', 'later', 'tried']) await office.deadLetterAll(queue);
  for (const name of ['mail', 'billing']) {
    const receiver = office.client.createReceiver('events', name, { maxAutoLockRenewalDurationInMs: 0 });
    for (const message of await receiver.receiveMessages(1)) await receiver.deadLetterMessage(message);
    await receiver.close();
  }
  const AGE = 585_000;
  clock.advance(3_600_000 - 21_000 - AGE - BEHIND);
  for (const queue of ['edge', 'later']) {
    await office.send(queue, { ...order, body: 'second' });
    await office.deadLetterAll(queue);
  }
  clock.advance(AGE);
});
afterAll(async () => {
  await office?.close();
  await office?.broker.close();
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

const inQueue = (queue: string) => office.broker.messages(queue).length;
const inDlq = (queue: string) => inQueue(`${queue}/$DeadLetterQueue`);
const found = ({ findings }: PlanJson) => findings.map(({ code, level, letters }) => [code, level, letters]);
const only = (source: string, number: number) =>
  office.plan({ selection: { sequenceNumber: [String(number)] } }, source);

async function observed(source: string, count: number): Promise<void> {
  await until(async () => {
    await office.collect(source);
    return (await office.letters(source)).length === count || undefined;
  }, `${count} letters of ${source}`);
}

test('of two letters with one message id the first goes, the second stays and is told', async () => {
  await office.held(2, 'once');
  const plan = await office.plan({}, 'once');
  expect(found(plan)).toEqual([['repeated-id', 'warn', 1]]);
  expect((await office.run(plan)).counts).toMatchObject({ planned: 2, done: 1, skipped: 1, maybeDuplicate: 0 });
  expect([inQueue('once'), inDlq('once')]).toEqual([1, 1]);
});

test('with new ids both go, the second under one of its own, and it is told', async () => {
  await office.held(2, 'renamed');
  const plan = await office.plan({ choices: { onDuplicate: 'new-id' } }, 'renamed');
  expect(found(plan)).toEqual([['repeated-id', 'warn', 1]]);
  expect((await office.run(plan)).counts).toMatchObject({ planned: 2, done: 2 });
  expect([inQueue('renamed'), inDlq('renamed')]).toEqual([2, 0]);
  const receiver = office.client.createReceiver('renamed', { receiveMode: 'receiveAndDelete' });
  const ids = (await receiver.receiveMessages(2)).map(({ messageId }) => messageId);
  await receiver.close();
  expect(ids).toEqual(['order-17', `${plan.id}:2`]);
});

test('a plan that comes after another leaves the ids that the other has sent', async () => {
  await office.held(2, 'two-plans');
  await office.run(await only('two-plans', 1));
  const second = await only('two-plans', 2);
  expect(found(second)).toEqual([
    ['duplicate-window', 'warn', 1],
    ['nothing-to-send', 'block', 0],
  ]);
  expect([inQueue('two-plans'), inDlq('two-plans')]).toEqual([1, 1]);
});

test('what another plan has sent since a plan was made is seen when the plan runs', async () => {
  await office.held(2, 'made-before');
  const [first, second] = [await only('made-before', 1), await only('made-before', 2)];
  expect(found(second)).toEqual([]);
  expect((await office.run(first)).counts).toMatchObject({ done: 1 });
  expect((await office.run(second)).counts).toMatchObject({ done: 0, skipped: 1 });
  expect([inQueue('made-before'), inDlq('made-before')]).toEqual([1, 1]);
});

test('two sources with one target send an id there once, also at the same moment', async () => {
  await Promise.all([observed('mail', 1), observed('billing', 1)]);
  const plans = await Promise.all(['mail', 'billing'].map((source) => office.plan({}, source)));
  const counts = (await Promise.all(plans.map((plan) => office.run(plan)))).map((plan) => plan.counts);
  expect(counts.map(({ done }) => done).sort()).toEqual([0, 1]);
  expect(counts.map(({ skipped }) => skipped).sort()).toEqual([0, 1]);
  expect(inQueue('shared')).toBe(1);
});

test('an id that was refused was not sent', async () => {
  await office.held(1, 'refused');
  const rule = { at: 'send', entity: 'refused', do: 'refuse', condition: 'com.microsoft:entity-disabled' } as const;
  const disabled = office.broker.faults.add(rule);
  const plan = await office.plan({}, 'refused');
  await office.post(`plans/${plan.id}/run`, { confirm: 1, ramp: false });
  await office.finished(plan.id, ['paused']);
  await office.post(`plans/${plan.id}/cancel`);
  disabled.remove();
  expect((await office.run(await office.plan({}, 'refused'))).counts).toMatchObject({ done: 1 });
  expect([inQueue('refused'), inDlq('refused')]).toEqual([1, 0]);
});

test('a send without an answer is made again by its own plan, and recognised; another plan takes the id for sent', async () => {
  await office.held(1, 'unclear');
  const lost = office.broker.faults.add({ at: 'send', entity: 'unclear', do: 'lose-answer' });
  const plan = await office.plan({}, 'unclear');
  await office.post(`plans/${plan.id}/run`, { confirm: 1, ramp: false });
  await until(() => lost.hits > 0 || undefined, 'the send');
  await office.post(`plans/${plan.id}/pause`);
  await office.finished(plan.id, ['paused']);
  expect(found(await office.plan({}, 'unclear'))).toContainEqual(['duplicate-window', 'warn', 1]);
  await office.post(`plans/${plan.id}/resume`);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 1, maybeDuplicate: 1 });
  expect([inQueue('unclear'), inDlq('unclear')]).toEqual([1, 0]);
});

test('at the edge of the window the clocks may differ: the letter stays', async () => {
  await office.held(1, 'edge');
  const plan = await office.plan({}, 'edge');
  expect(found(plan)).toContainEqual(['duplicate-window', 'warn', 1]);
  expect([inQueue('edge'), inDlq('edge')]).toEqual([0, 1]);
});

test('a send that is refused for now is made again, under the new id that it had', async () => {
  const rule = { at: 'send', entity: 'edge', do: 'refuse', condition: 'com.microsoft:server-busy', times: 1 } as const;
  const busy = office.broker.faults.add(rule);
  const plan = await office.plan({ choices: { onDuplicate: 'new-id' } }, 'edge');
  expect((await office.run(plan)).counts).toMatchObject({ done: 1, maybeDuplicate: 0 });
  expect(busy.hits).toBe(1);
  expect([inQueue('edge'), inDlq('edge')]).toEqual([1, 0]);
});

test('an id counts as sent, too, when another letter came with it', async () => {
  await office.held(2, 'later');
  expect(found(await only('later', 1))).toContainEqual(['duplicate-window', 'warn', 1]);
});

test('copies in a sandbox that detects duplicates count there, and only there', async () => {
  await office.held(1, 'tried');
  const choices = { target: 'sandbox' };
  expect((await office.run(await office.plan({ choices }, 'tried'))).counts).toMatchObject({ done: 1 });
  const again = await office.plan({ choices }, 'tried');
  expect(found(again)).toContainEqual(['duplicate-window', 'warn', 1]);
  const renamed = await office.plan({ choices: { ...choices, onDuplicate: 'new-id' } }, 'tried');
  expect((await office.run(renamed)).counts).toMatchObject({ done: 1 });
  expect(inQueue('sandbox')).toBe(2);
  expect((await office.run(await office.plan({}, 'tried'))).counts).toMatchObject({ done: 1 });
  expect(inQueue('tried')).toBe(1);
});
