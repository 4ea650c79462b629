/** Preparing that goes on in the background, and runs that nobody is working on. */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newPlanId, type PlanId, type SourceKey } from '../../shared/letter.ts';
import { NO_COUNTS } from '../../shared/records/plan.ts';
import { openStore, type Store } from '../../shared/store/index.ts';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';
import { aPlan } from '../harness/values.ts';

const SOURCES = Array.from({ length: 15 }, (_, i) => `p${i}`);
let office: TestOffice;
let store: Store;
beforeAll(async () => {
  office = await openTestOffice({ sources: SOURCES.map((name) => ({ name })) });
  store = openStore({ AzureWebJobsStorage: office.storage }, 'test', randomUUID);
});
afterAll(() => office?.close());

const key = (name: string) => `127.0.0.1|${name}` as SourceKey;

/** A plan as a process leaves it that died while preparing. */
async function halfPrepared(name: string) {
  const now = Date.now();
  const head = aPlan({
    id: newPlanId(now, Buffer.from(randomUUID())),
    source: key(name),
    sourceName: name,
    target: name,
    state: 'preparing',
    chunks: 0,
    counts: NO_COUNTS,
    createdAt: now,
    expiresAt: now + 60_000,
    runner: 'a process that died',
  });
  await store.plans.create(head, 'w');
  await store.sources.indexPlan(head.source, head.id);
  return head;
}

test('the queue goes on with a plan whose process died while preparing', async () => {
  await office.deadLetters(5, 'p0');
  const { id } = await halfPrepared('p0');
  await store.runs.enqueue(id, 0);
  const ready = await office.finished(id, ['ready']);
  expect(ready.counts).toMatchObject({ planned: 5, pending: 5 });
  expect((await office.run(ready)).counts).toMatchObject({ done: 5 });
});

test('a plan that is being prepared can be cancelled, and is then left alone', async () => {
  await office.deadLetters(2, 'p1');
  const { id } = await halfPrepared('p1');
  await office.post(`plans/${id}/cancel`);
  await store.runs.enqueue(id, 0);
  await store.runs.enqueue((await halfPrepared('p1')).id, 0);
  await until(async () => {
    const { plans } = await office.get<{ plans: { state: string }[] }>('plans?source=p1&state=ready');
    return plans.length === 1 || undefined;
  }, 'the other plan, queued behind it, to be ready');
  expect((await office.getPlan(id)).state).toBe('cancelled');
});

test('a plan that waited too long is expired and cannot be run', async () => {
  await office.deadLetters(1, 'p2');
  const { id } = await office.plan({}, 'p2');
  const found = await store.plans.head(id as PlanId);
  if (found === undefined) throw new Error('the plan is stored');
  await store.plans.commit({ ...found.head, expiresAt: Date.now() - 1 }, found.etag, 'w');
  const refused = await office.call('replay', 'POST', `plans/${id}/run`, { confirm: 1 });
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_EXPIRED' } });
  const expired = await office.getPlan(id);
  expect(expired).toMatchObject({ state: 'expired', counts: { planned: 1, left: 1, pending: 0 } });
});

test('a paused plan can be resumed for seven days, and then ends with its letters where they are', async () => {
  await office.deadLetters(2, 'p4');
  const { id } = await office.plan({}, 'p4');
  await office.post(`plans/${id}/run`, { confirm: 2, ramp: { observe: 'PT1H' } });
  await office.finished(id, ['observing']);
  await office.post(`plans/${id}/pause`);
  await office.finished(id, ['paused']);
  const found = await store.plans.head(id as PlanId);
  if (found === undefined) throw new Error('the plan is stored');
  expect(found.head.expiresAt - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
  await store.plans.commit({ ...found.head, expiresAt: Date.now() - 1 }, found.etag, 'w');
  const refused = await office.call('replay', 'POST', `plans/${id}/resume`);
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_STATE', state: 'expired' } });
  expect((await office.getPlan(id)).counts).toMatchObject({ planned: 2, done: 1, left: 1, pending: 0 });
});

test('a paused plan that is cancelled marks what it sent and could not complete', async () => {
  await office.deadLetters(2, 'p6');
  const { id } = await office.plan({}, 'p6');
  const found = await store.plans.head(id as PlanId);
  const { value: chunk } = await store.plans.chunks(id as PlanId).next();
  if (found === undefined || chunk === undefined) throw new Error('the plan is stored');
  // As a run leaves it whose first letter was never seen in the subscription.
  const paused = { ...found.head, state: 'paused', startedAt: Date.now() } as const;
  await store.plans.commit(paused, found.etag, 'w', { chunks: [{ ...chunk, state: 'sent', sends: 1 }] });
  const cancelled = await office.post<PlanJson>(`plans/${id}/cancel`);
  expect(cancelled.counts).toMatchObject({ planned: 2, left: 2, pending: 0, maybeDuplicate: 2 });
  const { letters } = await office.get<{ letters: object[] }>(`plans/${id}/letters`);
  expect(letters).toMatchObject([
    { fate: 'left', maybeDuplicate: true },
    { fate: 'left', maybeDuplicate: true },
  ]);
  expect((await office.plan({}, 'p6')).findings.map(({ code, letters }) => [code, letters])).toEqual([
    ['maybe-sent', 2],
  ]);
});

test('the report of a run tells what became of it, in JSON and in words', async () => {
  await office.deadLetters(3, 'p5');
  const plan = await office.plan({ selection: { not: { messageId: ['m-2'] } } }, 'p5');
  expect(plan).toMatchObject({ counts: { planned: 2 }, letters: { reason: { UnsupportedCurrency: 2 } } });
  await office.run(plan);
  await office.deadLetterAll('p5', 'StillBroken');
  await office.held(3, 'p5');
  const report = await office.get<{ returned: object; state: string }>(`plans/${plan.id}/report`);
  expect(report).toMatchObject({ state: 'finished', returned: { StillBroken: 2 }, otherwise: {} });
  const text = await office.call('read', 'GET', `plans/${plan.id}/report?format=text`);
  expect(text.headers.get('content-type')).toContain('text/plain');
  expect(text.text).toContain('2 planned = 2 done, 0 skipped, 0 failed, 0 left');
  expect(text.text).toContain('2 StillBroken');
});

test('the watchdog frees a source whose holder died before it had begun, and one whose plan is no more', async () => {
  await office.deadLetters(1, 'p3');
  const plan = await office.plan({}, 'p3');
  for (const id of [plan.id as PlanId, newPlanId(0, Buffer.from('nobody'))]) {
    const lease = await store.sources.acquire(key('p3'), id, Date.now(), 1);
    await store.sources.release(lease, false);
    await until(async () => {
      await office.process.run('watch');
      return (await office.get<{ heldBy: string | null }>('sources/p3')).heldBy === null || undefined;
    }, 'the source to be free');
  }
  expect((await office.run(plan)).counts).toMatchObject({ done: 1 });
});

// Here, because the client writes an expiry by its own clock, and this file leaves the broker's alone.
test('a time to live so short that it kills again is told, and replaced where the plan says so', async () => {
  await office.send('p7', { messageId: 'brief', body: 'x', timeToLive: 30_000 });
  await office.deadLetterAll('p7');
  await office.held(1, 'p7');
  const warned = await office.plan({}, 'p7');
  expect(warned.findings).toMatchObject([{ code: 'ttl-short', level: 'warn', letters: 1 }]);
  const longer = await office.plan({ choices: { timeToLive: 'PT6H' } }, 'p7');
  expect(longer.findings).toEqual([]);
  expect(await office.run(longer)).toMatchObject({ counts: { done: 1 } });
  const receiver = office.client.createReceiver('p7', { receiveMode: 'receiveAndDelete' });
  const [message] = await receiver.receiveMessages(1);
  await receiver.close();
  expect(message).toMatchObject({ messageId: 'brief', timeToLive: 6 * 3_600_000 });
});

const codes = ({ findings }: PlanJson) => findings.map(({ code, letters }) => [code, letters]);
const start = ({ id, counts }: PlanJson) =>
  office.call('replay', 'POST', `plans/${id}/run`, { confirm: counts.pending, ramp: false });
const refusedFor = (plan: PlanJson) => ({ status: 409, json: { code: 'DLO_LETTERS_UNENDED', plan: plan.id } });

test('over letters that a paused run may have sent no other plan begins; once that is cancelled, those that know of it do', async () => {
  await office.deadLetters(2, 'p8');
  const [first, before] = [await office.plan({}, 'p8'), await office.plan({}, 'p8')];
  const lost = office.broker.faults.add({ at: 'send', entity: 'p8', do: 'lose-answer', times: 3 });
  await start(first);
  await office.finished(first.id, ['paused']);
  expect(lost.hits).toBe(3);
  const after = await office.plan({}, 'p8');
  expect(codes(after)).toEqual([['maybe-sent', 2]]);
  for (const plan of [before, after]) expect(await start(plan)).toMatchObject(refusedFor(first));
  await office.post(`plans/${first.id}/cancel`);
  // The one that was made before says nothing of copies in the target.
  expect(await start(before)).toMatchObject(refusedFor(first));
  expect((await office.run(after)).counts).toMatchObject({ done: 2, maybeDuplicate: 2 });
});

test.each([
  ['replay', 'p9'],
  ['discard', 'p10'],
])('what a paused %s has only to complete is not begun again by another plan', async (action, name) => {
  await office.deadLetters(2, name);
  const plan = await office.plan({ action }, name);
  const found = await store.plans.head(plan.id as PlanId);
  const { value: chunk } = await store.plans.chunks(plan.id as PlanId).next();
  if (found === undefined || chunk === undefined) throw new Error('the plan is stored');
  const paused = { ...found.head, state: 'paused', startedAt: Date.now() } as const;
  await store.plans.commit(paused, found.etag, 'w', { chunks: [{ ...chunk, state: 'sent', sends: 1 }] });
  const other = await office.plan({}, name);
  expect(await start(other)).toMatchObject(refusedFor(plan));
  expect(await store.sources.get(key(name))).toMatchObject({ occupant: undefined });
  if (action === 'discard') return;
  await office.post(`plans/${plan.id}/resume`);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 2 });
  expect((await office.run(other)).counts).toMatchObject({ done: 0, skipped: 2 });
  expect(office.broker.messages(name)).toEqual([]);
});

test('a plan goes to the target that it showed, or nowhere', async () => {
  await office.deadLetters(1, 'p11');
  const plan = await office.plan({}, 'p11');
  const found = await store.plans.head(plan.id as PlanId);
  if (found === undefined) throw new Error('the plan is stored');
  // As if the catalog had named another queue then.
  await store.plans.commit({ ...found.head, target: 'p0' }, found.etag, 'w');
  const refused = await start(plan);
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_BLOCKED' } });
  expect(refused.text).toContain('target-changed');
});

test('resuming a run whose process died makes it go on, without the watchdog', async () => {
  await office.deadLetters(3, 'p12');
  const plan = await office.plan({}, 'p12');
  const entity = 'p12/$DeadLetterQueue';
  const held = office.broker.faults.add({ at: 'settle', entity, operation: 'complete', do: 'hold', times: 50 });
  await start(plan);
  await until(() => held.hits > 0 || undefined, 'the completion to be asked for');
  await office.kill();
  await QueueServiceClient.fromConnectionString(office.storage).getQueueClient('runs').clearMessages();
  office.broker.clock.advance(61_000);
  held.remove();
  await office.restart();
  expect((await office.call('replay', 'POST', `plans/${plan.id}/resume`, {})).status).toBe(202);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
});

test('a running plan of a source that left the catalog pauses with the reason, is listed, and leaves the source to others', async () => {
  await office.deadLetters(2, 'p13');
  const plan = await office.plan({}, 'p13');
  const found = await store.plans.head(plan.id as PlanId);
  if (found === undefined) throw new Error('the plan is stored');
  await store.plans.commit({ ...found.head, state: 'running', startedAt: Date.now() }, found.etag, 'w');
  const lease = await store.sources.acquire(key('p13'), plan.id as PlanId, Date.now(), 1);
  await store.sources.release(lease, false);
  const preparing = await halfPrepared('p13');
  const file = office.settings.DLO_CATALOG ?? '';
  const catalog = JSON.parse(await readFile(file, 'utf8')) as { sources: { name: string }[] };
  const sources = catalog.sources.filter(({ name }) => name !== 'p13');
  await writeFile(file, JSON.stringify({ ...catalog, sources }));
  await office.process.stop();
  await office.restart();
  await office.process.run('watch');
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.stateReason).toContain('not in the catalog any more');
  const { plans } = await office.get<{ plans: PlanJson[] }>('plans?state=paused&top=500');
  expect(plans.map(({ id }) => id)).toContain(plan.id);
  await until(
    async () => (await store.sources.get(key('p13')))?.occupant === undefined || undefined,
    'the source to be free',
  );
  await store.runs.enqueue(preparing.id, 0);
  expect((await office.finished(preparing.id, ['cancelled'])).stateReason).toContain('left the catalog');
  expect(await office.post<PlanJson>(`plans/${plan.id}/cancel`)).toMatchObject({ state: 'cancelled' });
});
