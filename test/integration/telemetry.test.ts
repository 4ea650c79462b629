import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import Long from 'long';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sourceKey } from '../../shared/catalog.ts';
import { EVENTS, METRICS } from '../../shared/signals.ts';
import { openStore } from '../../shared/store/index.ts';
import { type Ingestion, linksOf, openIngestion } from '../harness/ingestion.ts';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
/** Stands in every field that a sender, an operator or an owner fills. */
const MARK = 'Quagga';

let ingestion: Ingestion;
let office: TestOffice;
beforeAll(async () => {
  ingestion = await openIngestion();
  office = await openTestOffice({
    entry: 'test/integration/fixtures/office.ts',
    settings: ingestion.settings,
    sources: [
      { name: 'orders' },
      { name: 'marked' },
      { name: 'traced' },
      { name: 'halting' },
      { name: 'shared' },
      { name: 'aged', retainFor: 'P10D', trigger: false, owner: { team: MARK, contact: MARK } },
      { name: 'watched', mode: 'observe' },
      { name: 'troubled' },
    ],
  });
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-3000));
});
afterAll(async () => {
  await office?.close();
  await ingestion?.close();
});

const setClock = (ahead: number) => office.call('probe', 'POST', `test/clock?ahead=${ahead}`);
const told = (probe: () => boolean, what: string) => until(() => probe() || undefined, `${what} to be told`);
const gauge = (name: string, source: string) =>
  ingestion.points(name).filter(({ properties }) => properties.source === source);
const eventsOf = (name: string, planId: string) => ingestion.events(name).filter((event) => event.planId === planId);

test('each letter is told once, and each pass tells how its source stands', async () => {
  const letters = await office.deadLetters(3);
  await told(() => ingestion.events(EVENTS.classified).length >= 3, 'three letters');
  await office.collect();
  await told(() => gauge(METRICS.oldestAge, 'orders').some(({ value }) => value > 0), 'the age of the oldest');
  const events = ingestion.events(EVENTS.classified).filter(({ source }) => source === 'orders');
  expect(events.map(({ sequenceNumber }) => sequenceNumber).toSorted()).toEqual(
    letters.map(({ sequenceNumber }) => sequenceNumber).toSorted(),
  );
  // The reason is the application's own word, and stays here.
  expect(events[0]).toMatchObject({
    source: 'orders',
    category: 'unknown',
    advice: 'investigate',
    reason: 'application',
  });
  expect(events[0]).toMatchObject({ rule: 'application-reason', replayCount: '0' });
  expect(gauge(METRICS.open, 'orders').at(-1)).toMatchObject({ value: 3, properties: { category: 'unknown' } });
  expect(gauge(METRICS.snapshotAge, 'orders').at(-1)?.value).toBe(0);
  expect(gauge(METRICS.retentionUsed, 'orders')).toEqual([]);
});

test("the broker's own reason is told by name", async () => {
  await office.send('orders', { messageId: 'poison', body: 1 });
  const receiver = office.client.createReceiver('orders', { maxAutoLockRenewalDurationInMs: 0 });
  for (let delivery = 0; delivery < 3; delivery++) {
    for (const message of await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 })) {
      await receiver.abandonMessage(message);
    }
  }
  await receiver.close();
  await office.held(4);
  const isTold = () => ingestion.events(EVENTS.classified).some(({ reason }) => reason === 'MaxDeliveryCountExceeded');
  await told(isTold, 'the reason');
});

test('growth is told against the snapshot of a quarter of an hour ago', async () => {
  const key = sourceKey(office.broker.connectionString.match(/sb:\/\/([^/:;]+)/)?.[1] ?? '', 'orders');
  const store = openStore({ AzureWebJobsStorage: office.storage }, 'test', randomUUID);
  await store.snapshots.add(key, { at: Date.now() - 16 * MINUTE, open: 1, byCategory: {}, oldest: undefined });
  const { open } = await office.collect();
  await told(() => gauge(METRICS.growth, 'orders').at(-1)?.value === open - 1, 'the growth');
});

test('a run tells its end, the letters that left and those that came back', async () => {
  const before = (await office.letters()).length;
  const plan = await office.plan({ choices: { includeFixFirst: true } });
  await office.run(plan);
  await told(() => eventsOf(EVENTS.runFinished, plan.id).length > 0, 'the end of the run');
  expect(eventsOf(EVENTS.runFinished, plan.id)).toEqual([
    {
      source: 'orders',
      planId: plan.id,
      action: 'replay',
      outcome: 'finished',
      planned: String(before),
      done: String(before),
      skipped: '0',
      failed: '0',
      left: '0',
      returned: '0',
      seconds: expect.stringMatching(/^\d+(\.\d+)?$/),
    },
  ]);
  await told(() => ingestion.sum(METRICS.removed, { source: 'orders', fate: 'replayed' }) === before, 'the letters');
  await told(() => ingestion.sum(METRICS.runs, { source: 'orders', outcome: 'finished' }) === 1, 'the run');
  // The category that has no letters any more goes down to zero.
  await office.collect();
  await told(() => gauge(METRICS.open, 'orders').at(-1)?.value === 0, 'that nothing is open');
  await office.deadLetterAll('orders');
  await office.held(before);
  await told(() => ingestion.sum(METRICS.returned, { source: 'orders' }) === before, 'what came back');
});

test('a halt and a pause are told, and a cancelled run; a plan that never ran is no run', async () => {
  await office.deadLetters(4, 'halting');
  const plan = await office.plan({}, 'halting');
  await office.post(`plans/${plan.id}/run`, { confirm: 4, ramp: { steps: [1], observe: 'PT0.2S' } });
  await until(async () => (await office.deadLetterAll('halting')) || undefined, 'the first letter to be in its queue');
  await office.finished(plan.id, ['halted']);
  await told(() => eventsOf(EVENTS.runHalted, plan.id).length > 0, 'the halt');
  expect(eventsOf(EVENTS.runHalted, plan.id)).toEqual([
    {
      source: 'halting',
      planId: plan.id,
      why: expect.stringMatching(/^1 of the 1 letters of step 1 came back, for the same reason/),
      done: '1',
      returned: '1',
    },
  ]);
  await office.post(`plans/${plan.id}/cancel`);
  await told(() => eventsOf(EVENTS.runFinished, plan.id).length > 0, 'that it was cancelled');
  expect(eventsOf(EVENTS.runFinished, plan.id)).toMatchObject([{ outcome: 'cancelled', done: '1', left: '3' }]);

  const never = await office.plan({}, 'halting');
  await office.post(`plans/${never.id}/cancel`);
  const last = await office.plan({}, 'halting');
  await office.post(`plans/${last.id}/run`, { confirm: last.counts.pending, rate: 1, ramp: false });
  await office.post(`plans/${last.id}/pause`);
  await office.finished(last.id, ['paused', 'finished']);
  await told(() => ingestion.sum(METRICS.runs, { source: 'halting' }) === 3, 'the pause');
  expect(ingestion.sum(METRICS.runs, { source: 'halting', outcome: 'halted' })).toBe(1);
  expect(eventsOf(EVENTS.runFinished, never.id)).toEqual([]);
});

test('of two instances that work on a run only the one that ends it tells', async () => {
  const second = await openTestOffice({
    broker: office.broker,
    storage: office.storage,
    settings: ingestion.settings,
    sources: [{ name: 'shared' }],
  });
  try {
    await office.deadLetters(60, 'shared');
    const plans: PlanJson[] = [];
    for (let round = 0; round < 2; round++) {
      const plan = await office.plan({}, 'shared');
      plans.push(plan);
      await office.post(`plans/${plan.id}/run`, { confirm: plan.counts.pending, ramp: false });
      await Promise.all([second.post(`plans/${plan.id}/pause`), office.post(`plans/${plan.id}/pause`)]).catch(() => {});
      const { state } = await office.finished(plan.id, ['paused', 'finished']);
      if (state === 'paused') {
        await Promise.allSettled([second.post(`plans/${plan.id}/cancel`), office.post(`plans/${plan.id}/cancel`)]);
      }
    }
    await told(() => plans.every(({ id }) => eventsOf(EVENTS.runFinished, id).length > 0), 'every end');
    await second.process.stop();
    for (const { id } of plans) expect(eventsOf(EVENTS.runFinished, id)).toHaveLength(1);
  } finally {
    await second.close();
  }
});

test('the trace of a message goes on behind its replay, and the run links to it', async () => {
  const trace = (i: number) => `00-${String(i).padStart(32, 'a')}-${String(i).padStart(16, 'b')}-01`;
  const messages = Array.from({ length: 120 }, (_, i) => ({
    messageId: `t-${i}`,
    body: i,
    applicationProperties: i % 2 === 0 ? { 'Diagnostic-Id': trace(i) } : { traceparent: trace(i) },
  }));
  await office.send('traced', messages);
  await office.deadLetterAll('traced');
  await office.held(120, 'traced');
  const plan = await office.plan({}, 'traced');
  await office.run(plan);
  const spans = () => ingestion.spans('send').filter(({ data }) => data.baseData.properties?.planId === plan.id);
  const linked = () =>
    new Set(spans().flatMap((span) => linksOf(span).map(({ operation_Id, id }) => `${operation_Id}-${id}`)));
  await told(() => linked().size === 120, 'every link');
  expect(linked()).toEqual(new Set(messages.map((_, i) => trace(i).slice(3, 52))));
  for (const span of spans()) expect(linksOf(span).length).toBeLessThanOrEqual(100);
  // The spans of the chunks lie in that of the run.
  const [run] = ingestion.spans('run').filter(({ data }) => data.baseData.properties?.planId === plan.id);
  const parents = new Set(spans().map(({ tags }) => tags?.['ai.operation.parentId']));
  expect(parents).toEqual(new Set([run?.data.baseData.id]));
  const receiver = office.client.createReceiver('traced', { maxAutoLockRenewalDurationInMs: 0 });
  const back = await receiver.peekMessages(120, {});
  await receiver.close();
  for (const { messageId, applicationProperties } of back) {
    const i = Number(String(messageId).slice(2));
    expect(applicationProperties?.[i % 2 === 0 ? 'Diagnostic-Id' : 'traceparent']).toBe(trace(i));
  }
});

test('a classifier that throws is counted', async () => {
  await office.send('marked', { messageId: 'odd', subject: 'Unreadable', body: 1 });
  await office.deadLetterAll('marked');
  await office.held(1, 'marked');
  await told(() => ingestion.sum(METRICS.classifierErrors, { source: 'marked' }) === 1, 'the error');
});

test('nothing that a sender, an operator or an owner wrote is told', async () => {
  const everything = {
    messageId: MARK,
    correlationId: MARK,
    subject: MARK,
    contentType: MARK,
    partitionKey: MARK,
    to: MARK,
    replyTo: MARK,
    replyToSessionId: MARK,
    body: { [MARK]: MARK },
    applicationProperties: { [MARK]: MARK, ExceptionType: MARK, 'Diagnostic-Id': MARK, 'x-replay-id': MARK },
  };
  const before = (await office.letters('marked')).length;
  await office.send('marked', everything);
  await office.deadLetterAll('marked', MARK, `${MARK}: ${MARK}`);
  await office.held(before + 1, 'marked');
  const plan = await office.post<PlanJson>('sources/marked/plans', {}, 'replay', { 'x-operator': MARK });
  const path = `plans/${plan.id}/run`;
  await office.post(path, { confirm: plan.counts.pending, ramp: false }, 'replay', { 'x-operator': MARK });
  await office.finished(plan.id);
  await told(() => eventsOf(EVENTS.runFinished, plan.id).length > 0, 'the end of the run');
  const sent = ingestion.bodies.join('\n');
  expect(sent).not.toMatch(new RegExp(MARK, 'i'));
  for (const secret of [office.keys.read, office.keys.replay, 'SharedAccessKey', 'AccountKey', 'x-operator']) {
    expect(sent).not.toContain(secret);
  }
});

// From here on the office's clock is ahead of the broker's.

test('the cleanup tells what it removed, and how much of the time letters may stay is used', async () => {
  await office.deadLetters(2, 'aged');
  await setClock(5 * DAY);
  await office.collect('aged');
  await told(() => (gauge(METRICS.retentionUsed, 'aged').at(-1)?.value ?? 0) >= 0.5, 'the half of the retention');
  expect(gauge(METRICS.retentionUsed, 'aged').at(-1)?.value).toBeLessThan(0.51);
  await setClock(11 * DAY);
  await office.process.run('expire');
  const expired = () => ingestion.events(EVENTS.expired).filter(({ source }) => source === 'aged');
  await told(() => expired().length > 0, 'the cleanup');
  expect(expired()).toEqual([{ source: 'aged', removed: '2', left: '0' }]);
  await told(() => ingestion.sum(METRICS.removed, { source: 'aged', fate: 'expired' }) === 2, 'the letters');
  expect(ingestion.sum(METRICS.expiryFailures)).toBe(0);
});

test('a letter that somebody else removed is told as gone', async () => {
  const [letter] = await office.deadLetters(1, 'aged');
  const other = office.client.createReceiver('aged', { subQueueType: 'deadLetter' });
  for (const message of await other.receiveDeferredMessages([Long.fromString(letter?.sequenceNumber ?? '')])) {
    await other.completeMessage(message);
  }
  await other.close();
  await office.process.run('reconcile');
  await told(() => ingestion.sum(METRICS.removed, { source: 'aged', fate: 'gone' }) === 1, 'the letter');
});

test('a pass that fails tells since when nobody has looked, and a cleanup that fails that it did', async () => {
  await office.deadLetters(1, 'aged');
  await office.collect('watched');
  await setClock(11 * DAY + 20 * MINUTE);
  const fault = { at: 'manage', do: 'refuse', times: 10_000 } as const;
  const faults = ['watched', 'aged'].map((name) =>
    office.broker.faults.add({ ...fault, entity: `${name}/$DeadLetterQueue` }),
  );
  try {
    expect((await office.call('read', 'POST', 'sources/watched/collect', {})).status).toBe(503);
    await told(() => (gauge(METRICS.snapshotAge, 'watched').at(-1)?.value ?? 0) >= 1200, 'the age of the snapshot');
    await setClock(30 * DAY);
    await office.process.run('expire');
    await told(() => ingestion.sum(METRICS.expiryFailures, { source: 'aged' }) === 1, 'the failure');
  } finally {
    for (const one of faults) one.remove();
  }
});

test('nothing is told but that: no call of a library, no line of the log, nothing about the process', () => {
  expect(new Set(ingestion.points().map(({ name }) => name))).toSatisfy((names: Set<string>) =>
    [...names].every((name) => (Object.values(METRICS) as string[]).includes(name)),
  );
  const names = new Set(ingestion.spans().map(({ data }) => data.baseData.name));
  expect([...names].toSorted()).toEqual(['run', 'send']);
  const types = new Set(ingestion.envelopes.map(({ data }) => data.baseType));
  expect([...types].toSorted()).toEqual(['EventData', 'MetricData', 'RemoteDependencyData']);
  expect(ingestion.envelopes.every(({ sampleRate }) => sampleRate === undefined || sampleRate === 100)).toBe(true);
});

test('the library patches nothing, catches nothing, and does not keep a process from ending', async () => {
  const sent = ingestion.events(EVENTS.runHalted).length;
  const script = resolve(import.meta.dirname, 'fixtures/patches.ts');
  const env = { ...process.env, ...ingestion.settings };
  const { stdout } = await promisify(execFile)(process.execPath, [script], { env, timeout: 25_000 });
  expect(JSON.parse(stdout)).toEqual([]);
  expect(ingestion.events(EVENTS.runHalted)).toHaveLength(sent + 1);
});

describe('the office works where the endpoint', () => {
  let deaf: Ingestion;
  let other: TestOffice;
  beforeAll(async () => {
    deaf = await openIngestion();
    other = await openTestOffice({ settings: deaf.settings });
  });
  afterAll(async () => {
    await other?.close();
    await deaf?.close();
  });

  test.each([
    ['answers with an error', 'error'],
    ['answers with garbage', 'garbage'],
    ['never answers', 'never'],
  ] as const)('%s', async (_what, mood) => {
    deaf.mood = mood;
    const before = deaf.requests;
    await other.deadLetters(20);
    await told(() => deaf.requests > before, 'something');
    const finished = await other.run(await other.plan({ choices: { includeFixFirst: true } }));
    expect(finished).toMatchObject({ state: 'finished', counts: { failed: 0, pending: 0, maybeDuplicate: 0 } });
    expect((await other.call('probe', 'GET', 'health')).json).toMatchObject({ status: 'Healthy' });
    await other.deadLetterAll('orders');
  });

  test('it ends when it is asked to, with signals that nobody took', async () => {
    expect(await other.process.stop()).toBe(0);
  });
});
