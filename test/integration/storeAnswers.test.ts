/** Answers of the store that get lost, and calls that fail, at the moments where it would matter. */
import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';
import { takeStorage } from '../harness/storage.ts';
import { openStoreProxy, type StoreProxy } from '../harness/storeProxy.ts';

let office: TestOffice;
let proxy: StoreProxy;
beforeAll(async () => {
  proxy = await openStoreProxy(await takeStorage(), 1);
  const names = ['audited', 'created', 'started', 'unsure', 'known', 'preparing', 'laid-out', 'refused'];
  const sources = [
    ...names.map((name) => ({ name, trigger: false })),
    { name: 'triggered' },
    { name: 'seen', mode: 'observe' },
  ];
  office = await openTestOffice({ storage: proxy.connectionString, sources });
});
afterAll(async () => {
  await office?.close();
  await proxy?.close();
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

const target = (queue: string) => office.broker.messages(queue);

/** Waits until the queue asks for nothing: a plan that was just made has a continuation, should its process die. */
async function quiet(): Promise<void> {
  const queue = QueueServiceClient.fromConnectionString(office.storage).getQueueClient('runs');
  await until(async () => (await queue.getProperties()).approximateMessagesCount === 0 || undefined, 'an empty queue');
}

/** Waits for the end of a plan, and lets the watchdog look meanwhile. */
async function ended(id: string): Promise<PlanJson> {
  return until(async () => {
    await office.process.run('watch');
    const plan = await office.getPlan(id);
    return plan.state === 'finished' ? plan : undefined;
  }, `plan ${id} to be finished`);
}

test('an audit entry whose answer is lost is written once, and nobody is bothered', async () => {
  await office.deadLetters(2, 'audited');
  const lost = proxy.strike('answer-lost', 'write', '"plan.create"');
  const plan = await office.plan({}, 'audited');
  expect(lost.isHit).toBe(true);
  const { entries } = await office.get<{ entries: unknown[] }>(`audit?plan=${plan.id}`);
  expect(entries).toMatchObject([{ operation: 'plan.create', outcome: 'ready: 2 letters, 0 skipped' }]);
});

test('a plan whose last letters are laid out when the store goes away holds each letter once', async () => {
  await office.deadLetters(3, 'laid-out');
  const away = proxy.strike('busy', 'write', '"state":"ready"');
  expect((await office.call('replay', 'POST', 'sources/laid-out/plans', {})).status).toBe(503);
  expect(away.isHit).toBe(true);
  const { plans } = await office.get<{ plans: { id: string }[] }>('plans?source=laid-out');
  const [{ id } = { id: '' }] = plans;
  const plan = await office.finished(id, ['ready']);
  expect(plan.counts).toMatchObject({ planned: 3, pending: 3 });
  const { letters } = await office.get<{ letters: unknown[] }>(`plans/${id}/letters`);
  expect(letters).toHaveLength(3);
});

test('a plan whose first answer is lost is made once', async () => {
  await office.deadLetters(2, 'created');
  const lost = proxy.strike('answer-lost', 'write', '"preparing"');
  const plan = await office.plan({}, 'created');
  expect(lost.isHit).toBe(true);
  expect(plan).toMatchObject({ state: 'ready', counts: { pending: 2 } });
  expect((await office.get<{ plans: unknown[] }>('plans?source=created')).plans).toHaveLength(1);
});

test('a plan is started though the answer to its start is lost', async () => {
  await office.deadLetters(2, 'started');
  const plan = await office.plan({}, 'started');
  await quiet();
  const lost = proxy.strike('answer-lost', 'write', '"running"');
  const started = await office.post<PlanJson>(`plans/${plan.id}/run`, { confirm: 2, ramp: false });
  expect(lost.isHit).toBe(true);
  expect(started.state).toMatch(/running|finished/);
  expect((await ended(plan.id)).counts).toMatchObject({ done: 2, maybeDuplicate: 0 });
  expect(target('started')).toHaveLength(2);
});

test('a start of which nobody knows is found by the watchdog', async () => {
  await office.deadLetters(2, 'unsure');
  const plan = await office.plan({}, 'unsure');
  await quiet();
  const lost = proxy.strike('cut-after', 'write', '"running"');
  const answer = await office.call('replay', 'POST', `plans/${plan.id}/run`, { confirm: 2, ramp: false });
  expect(lost.isHit).toBe(true);
  expect(answer).toMatchObject({ status: 503, json: { code: 'DLO_STORE_UNAVAILABLE' } });
  expect((await ended(plan.id)).counts).toMatchObject({ done: 2, maybeDuplicate: 0 });
  expect(target('unsure')).toHaveLength(2);
});

test('letters that were recorded but not held are recorded again in a few calls', async () => {
  const messages = Array.from({ length: 60 }, (_, i) => ({ messageId: `m-${i}`, body: i }));
  await office.send('known', messages);
  await office.deadLetterAll('known');
  await office.process.run('reconcile'); // records all, holds none
  expect(await office.letters('known')).toHaveLength(60);
  const before = proxy.calls;
  expect((await office.collect('known')).collected).toBe(60);
  // A look at each, two failed and two good writes, and what a pass costs besides.
  expect(proxy.calls - before).toBeLessThan(90);
  expect(await office.letters('known')).toHaveLength(60);
});

test('preparing goes on though the store failed in its continuation', async () => {
  await office.deadLetters(3, 'preparing');
  // The call that makes the plan fails on the letters, and so does the first continuation.
  const first = proxy.strike('busy', 'GET', 'letters()');
  const answer = await office.call('replay', 'POST', 'sources/preparing/plans', {});
  expect(first.isHit).toBe(true);
  expect(answer.status).toBe(503);
  const second = proxy.strike('busy', 'GET', 'letters()');
  const ready = await until(async () => {
    const { plans } = await office.get<{ plans: PlanJson[] }>('plans?source=preparing');
    return plans[0]?.state === 'ready' ? plans[0] : undefined;
  }, 'the plan to be ready');
  expect(second.isHit).toBe(true);
  expect(ready.counts).toMatchObject({ planned: 3, pending: 3 });
});

/** Puts letters into a DLQ: twenty that the store takes, two with a word in them that it does not, one with a name of 17,000 quotation marks. */
async function mixed(queue: string): Promise<void> {
  const plain = Array.from({ length: 20 }, (_, i) => ({ messageId: `plain-${i}`, body: { i } }));
  await office.send(queue, plain, {
    messageId: 'long-name',
    body: {},
    applicationProperties: { ['"'.repeat(17_000)]: 'x'.repeat(3000), after: 'it' },
  });
  await office.deadLetterAll(queue);
  const bad = [1, 2].map((i) => ({ messageId: `bad-${i}`, body: { i }, applicationProperties: { note: 'unlovable' } }));
  await office.send(queue, bad);
  await office.deadLetterAll(queue, 'Unlovable', 'an unlovable text');
}

test.each([
  ['refused', 400],
  ['triggered', 400],
  ['seen', 413],
] as const)(
  'what the store refuses for good keeps no other letter of %s from being recorded (%d)',
  async (name, status) => {
    const all = 23;
    try {
      await mixed(name);
      proxy.refuseRows('unlovable', status);
      if (name === 'seen') await office.collect(name);
      else await office.held(all, name);
      const letters = await office.letters(name);
      expect(letters).toHaveLength(all);
      const byId = new Map(letters.map(({ messageId, sequenceNumber }) => [messageId, sequenceNumber]));
      const bad = await office.letter(String(byId.get('bad-1')), name);
      expect(bad).toMatchObject({ category: expect.any(String), properties: [], fate: null });
      expect(String(bad.refused)).toContain('PropertyValueTooLarge');
      const long = await office.letter(String(byId.get('long-name')), name);
      expect(long).toMatchObject({
        refused: null,
        properties: expect.arrayContaining([{ name: 'after', type: 'string', value: 'it' }]),
      });
      expect(JSON.stringify(long.cut).length).toBeLessThan(10_000);

      const { groups } = await office.get<{ groups: { count: number; cause: string }[] }>(`groups?source=${name}`);
      expect(groups.map(({ count, cause }) => [count, cause]).sort()).toEqual([
        [2, '(its words are not recorded)'],
        [21, expect.any(String)],
      ]);
      const again = await office.post<{ lookedAt: number; unreadable: number }>(`sources/${name}/reclassify`, {
        reread: true,
      });
      expect(again).toMatchObject({ lookedAt: all, unreadable: 0, continuation: null });
      await office.process.run('reconcile');
      expect(await office.get(`sources/${name}`)).toMatchObject({ open: all, problems: [] });

      const plan = await office.plan({}, name);
      const run = await office.post<PlanJson>(
        `plans/${plan.id}/run`,
        { confirm: plan.counts.pending, ramp: false },
        'replay',
        { prefer: 'wait=20' },
      );
      expect(run.counts).toMatchObject({ planned: all, done: all });
      expect(target(name)).toHaveLength(all);
    } finally {
      proxy.refuseRows(undefined);
    }
  },
);
