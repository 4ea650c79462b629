/** Causes over all queues, through the whole office: groups, head line, holds, regressions, histories. */
import { TableClient } from '@azure/data-tables';
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from 'vitest';
import { sourceKey } from '../../shared/catalog.ts';
import { formerFingerprint } from '../../shared/classify/former/fingerprint.ts';
import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { problemSchema } from '../../shared/http/problem.ts';
import type { Answer } from '../harness/host.ts';
import { type LetterJson, openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';

type Json = Record<string, unknown>;

interface GroupJson {
  fingerprint: string;
  cause: string;
  open: number;
  count: number;
  share: number;
  advice: string;
  category: string;
  sources: { source: string; open: number; count: number }[];
  messageTypes: { messageType: string; count: number }[];
  trend: { from: string; count: number }[];
  examples: { source: string; sequenceNumber: string }[];
  formerly: string[];
  now: string[];
  triage: Json & { state: string; regressedSince: string | null };
}
interface GroupsJson {
  groups: GroupJson[];
  open: number;
  unreadable: number;
  continuation: string | null;
}

const SHOP = ['shop-a', 'shop-b', 'shop-c', 'shop-d'];
const ALONE = [
  'raced',
  'chosen',
  'held',
  'late',
  'ramped',
  'fixed',
  'vain',
  'spoilt',
  'lives',
  'forged',
  'forgotten',
  'old-a',
  'old-b',
];
const UNKNOWN = `f2-${'a'.repeat(22)}`;
let office: TestOffice;

beforeAll(async () => {
  office = await openTestOffice({
    entry: 'test/integration/fixtures/office.ts',
    sources: [
      ...SHOP.map((name) => ({ name, trigger: false })),
      ...ALONE.map((name) => ({ name, trigger: name === 'raced', keepRecordsFor: 'P90D' })),
      { name: 'billing', topic: 'events', subscription: 'billing', replay: { replayQueue: 'billing-again' } },
      { name: 'billing-again', trigger: false },
      { name: 'empty' },
    ],
    topics: { events: { billing: {} } },
  });
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-3000));
});
afterAll(() => office?.close());

/** Lets `count` messages of a queue die of one cause, and the office hold them. */
async function die(
  queue: string,
  count: number,
  reason: string,
  description = '',
  subject?: string,
): Promise<LetterJson[]> {
  const before = (await office.letters(queue)).length;
  const messages = Array.from({ length: count }, (_, i) => ({
    messageId: `${reason}-${before + i}`,
    body: { order: i },
    ...(subject !== undefined && { subject }),
  }));
  await office.send(queue, messages);
  await office.deadLetterAll(queue, reason, description);
  return office.held(before + count, queue);
}

const list = (query = '') => office.get<GroupsJson>(`groups?${query}`);
async function groupOf(source: string, reason: string): Promise<GroupJson> {
  const { groups } = await list(`source=${source}&top=500`);
  const found = groups.find(({ cause }) => cause.startsWith(reason));
  if (found === undefined) throw new Error(`no group of ${source} begins with ${reason}`);
  return found;
}
const triage = (fingerprint: string, change: Json, headers: Record<string, string> = {}) =>
  office.call('replay', 'POST', `groups/${fingerprint}/triage`, change, headers);
const table = (name: string) =>
  TableClient.fromConnectionString(office.storage, name, { allowInsecureConnection: true });
const setClock = (ms: number) => office.process.call('POST', `/api/test/clock?ahead=${ms}`, {});

function expectProblem(answer: Answer, code: ErrorCode): void {
  expect(answer.status, answer.text.slice(0, 300)).toBe(ERRORS[code].status);
  expect(problemSchema.parse(answer.json).code).toBe(code);
}

describe('a cause that strikes four queues', () => {
  let fingerprint: string;
  beforeAll(async () => {
    for (const [i, queue] of SHOP.entries()) {
      await die(
        queue,
        3,
        'PaymentTimeout',
        `no answer from 10.0.0.${i} within ${i + 2} seconds for order ${i}4711`,
        `Type${i % 2}`,
      );
    }
    await die('shop-a', 1, 'UnsupportedCurrency', 'no such currency');
    ({ fingerprint } = await groupOf('shop-a', 'PaymentTimeout'));
  });

  test('is one group, with all that it has in common', async () => {
    const { groups } = await list();
    const found = groups.filter(({ cause }) => cause.startsWith('PaymentTimeout'));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({
      fingerprint,
      cause: 'PaymentTimeout: no answer from <host> within <number> seconds for order <number>',
      category: 'transient',
      advice: 'replay',
      open: 12,
      count: 12,
      messageTypes: [
        { messageType: 'Type0', count: 6 },
        { messageType: 'Type1', count: 6 },
      ],
      triage: { state: 'open', owner: null, note: null, bug: null, by: null, at: null, regressedSince: null },
    });
    expect(found[0]?.sources.map(({ source, open }) => [source, open]).sort()).toEqual(SHOP.map((name) => [name, 3]));
    expect(found[0]?.trend.reduce((sum, { count }) => sum + count, 0)).toBe(12);
    expect(found[0]?.examples).toHaveLength(10);
    for (const { source, sequenceNumber } of found[0]?.examples ?? []) {
      expect(await office.letter(sequenceNumber, source)).toMatchObject({ fingerprint, cause: found[0]?.cause });
    }
    expect(await office.get(`groups/${fingerprint}`)).toEqual({ asOf: null, ...found[0] });
  });

  test('of one source is that source’s part', async () => {
    const { groups, open } = await list('source=shop-a');
    expect(open).toBe(4);
    expect(groups.map(({ cause, open, share }) => [cause.split(':')[0], open, share])).toEqual([
      ['PaymentTimeout', 3, 0.75],
      ['UnsupportedCurrency', 1, 0.25],
    ]);
  });

  test('is what letters can be chosen by, or left out by', async () => {
    const numbers = (query: string) =>
      office.letters('shop-a', query).then((letters) => letters.map(({ reason }) => reason));
    expect(await numbers(`&fingerprint=${fingerprint}`)).toEqual(Array(3).fill('PaymentTimeout'));
    expect(await numbers(`&notFingerprint=${fingerprint}`)).toEqual(['UnsupportedCurrency']);
    const plan = await office.plan({ selection: { fingerprint: [fingerprint] } }, 'shop-a');
    expect(plan.counts).toMatchObject({ planned: 3, pending: 3 });
    const not = await office.plan({ selection: { not: { fingerprint: [fingerprint] } } }, 'shop-a');
    expect(not.counts).toMatchObject({ planned: 1 });
    const { counts } = await office.get<{ counts: Json[] }>('summary?by=fingerprint&source=shop-a');
    expect(counts).toMatchObject([{ key: fingerprint, count: 3 }, { count: 1 }]);
  });

  test('makes the head line, as data and as text', async () => {
    const only = await office.get<Json>('summary?by=cause&source=shop-b');
    expect(only).toMatchObject({ by: 'cause', total: 3, unreadable: 0 });
    expect(only.headLine).toMatch(
      /^3 letters on shop-b, one cause: "PaymentTimeout: no answer from <host> [^"]+", (at|between) \d\d:\d\d.* UTC, safe to send back\.$/,
    );
    expect(only.counts).toMatchObject([
      { key: fingerprint, count: 3, advice: 'replay', sources: ['shop-b'], state: 'open' },
    ]);
    const all = await office.get<{ headLine: string; counts: Json[] }>('summary?by=cause');
    expect(all.headLine).toMatch(
      /^12 letters on four queues, one cause: "PaymentTimeout: .*; 1 other is to be looked at\.$/,
    );
    expect(all.counts[0]?.sources).toEqual(SHOP);
    const text = await office.call('read', 'GET', 'summary?by=cause&format=text');
    expect(text.headers.get('content-type')).toContain('text/plain');
    // Some were never looked at by a pass; that is told beside the line.
    expect(text.text).toBe(`${all.headLine}\nNot every source was looked at yet.\n`);
    const reasons = await office.call('read', 'GET', 'summary?by=reason&source=shop-a&format=text');
    expect(reasons.text).toBe('4 open letters\n  3 PaymentTimeout\n  1 UnsupportedCurrency\n');
    const none = await office.call('read', 'GET', 'summary?by=cause&source=empty&format=text');
    expect(none.text).toBe('No open letters.\nNo pass over empty has completed yet.\n');
  });

  test('loses those that were sent back at once, without a pass, and forgets none', async () => {
    const plan = await office.plan({ selection: { fingerprint: [fingerprint] } }, 'shop-c');
    await office.run(plan);
    const group = await groupOf('shop-c', 'PaymentTimeout');
    expect(group).toMatchObject({ open: 0, count: 3, sent: 3, returned: 0, advice: 'replay' });
    expect((await office.get<Json>('summary?by=cause')).headLine).toContain('9 letters on three queues');
  });

  test('is listed by place, page after page, and by category and state', async () => {
    const everything = (await list('top=500')).groups.map((group) => group.fingerprint);
    const paged: string[] = [];
    for (let continuation: string | null = ''; continuation !== null; ) {
      const page: GroupsJson = await list(`top=1${continuation && `&continuation=${continuation}`}`);
      paged.push(...page.groups.map((group) => group.fingerprint));
      continuation = page.continuation;
    }
    expect(everything.length).toBeGreaterThan(1);
    expect(paged).toEqual(everything);
    expect((await list('category=transient')).groups).toMatchObject([{ fingerprint }]);
    expect((await list('category=unknown')).groups.length).toBe(everything.length - 1);
    expect((await list('category=oversized')).groups).toEqual([]);
    expect((await list('state=on-hold')).groups).toEqual([]);
    expect((await list('state=open')).groups.length).toBe(everything.length);
  });
});

test('counts are right after trigger and timer have worked at the same time, and after it was all looked at again', async () => {
  const messages = Array.from({ length: 80 }, (_, i) => ({ messageId: `r-${i}`, body: i }));
  await office.send('raced', messages);
  const collecting = until(async () => {
    await office.collect('raced');
    return office.broker.messages('raced/$DeadLetterQueue').filter(({ state }) => state === 'deferred').length === 80;
  }, 'all letters to be held');
  await office.deadLetterAll('raced', 'Raced');
  await collecting;
  await office.collect('raced');
  expect(await groupOf('raced', 'Raced')).toMatchObject({ open: 80, count: 80 });
  await office.process.run('reconcile');
  expect(await groupOf('raced', 'Raced')).toMatchObject({ open: 80, count: 80 });
});

test('a row that other hands have spoilt hides no other, is told, and is made good', async () => {
  await die('spoilt', 2, 'Good');
  await die('spoilt', 3, 'Bad');
  const bad = await groupOf('spoilt', 'Bad');
  const row = { partitionKey: sourceKey('127.0.0.1', 'spoilt'), rowKey: bad.fingerprint };
  await table('groups').upsertEntity({ ...row, open: 'hunter2', lastSeen: 'never', examples: '[' }, 'Merge');
  const spoilt = await list('source=spoilt');
  expect(spoilt).toMatchObject({ unreadable: 1, groups: [{ open: 2 }] });
  expectProblem(await office.call('read', 'GET', `groups/${bad.fingerprint}`), 'DLO_GROUP_UNKNOWN');
  expect((await office.get<Json>('summary?by=cause&source=spoilt')).total).toBe(5);
  await office.process.run('reconcile');
  expect(await list('source=spoilt')).toMatchObject({ unreadable: 0 });
  expect(await groupOf('spoilt', 'Bad')).toEqual(bad);

  await table('groups').deleteEntity(row.partitionKey, row.rowKey);
  await office.collect('spoilt');
  expect(await groupOf('spoilt', 'Bad')).toEqual(bad);
});

describe('a group on hold', () => {
  test('keeps its letters out of plans, unless they include it by name; and says so', async () => {
    await die('held', 3, 'Suspicious');
    await die('held', 2, 'Harmless');
    const { fingerprint } = await groupOf('held', 'Suspicious');
    const answer = await triage(fingerprint, {
      state: 'on-hold',
      owner: 'Ada',
      note: 'fraud?',
      bug: 'https://bugs.example.org/7',
    });
    expect(answer).toMatchObject({ status: 200, json: { fingerprint } });
    expect((answer.json as GroupJson).triage).toMatchObject({
      state: 'on-hold',
      owner: 'Ada',
      note: 'fraud?',
      bug: 'https://bugs.example.org/7',
      by: 'test',
    });
    expect((await list('state=on-hold')).groups.map((group) => group.fingerprint)).toEqual([fingerprint]);

    const plan = await office.plan({}, 'held');
    expect(plan).toMatchObject({ counts: { planned: 5, pending: 2, skipped: 3 } });
    expect(plan.findings).toMatchObject([{ code: 'on-hold', level: 'warn', letters: 3, groups: [fingerprint] }]);
    const discard = await office.plan({ action: 'discard' }, 'held');
    expect(discard.counts).toMatchObject({ pending: 2, skipped: 3 });
    const other = await office.plan({ choices: { includeOnHold: [UNKNOWN] } }, 'held');
    expect(other.counts).toMatchObject({ pending: 2, skipped: 3 });
    const { letters } = await office.get<{ letters: Json[] }>(`plans/${plan.id}/letters`);
    expect(letters.filter(({ reason }) => reason === 'on-hold')).toHaveLength(3);
    expect((await office.run(plan)).counts).toMatchObject({ done: 2, skipped: 3 });

    const included = await office.plan({ choices: { includeOnHold: [fingerprint] } }, 'held');
    expect(included).toMatchObject({ findings: [], counts: { planned: 3, pending: 3 } });
    expect((await office.run(included)).counts).toMatchObject({ done: 3 });
  });

  test('blocks the start of a plan that was made before, until it is lifted', async () => {
    await die('late', 4, 'Doubtful');
    const { fingerprint } = await groupOf('late', 'Doubtful');
    const [replay, discard] = [await office.plan({}, 'late'), await office.plan({ action: 'discard' }, 'late')];
    await triage(fingerprint, { state: 'on-hold' });
    for (const [plan, right, act] of [
      [replay, 'replay', 'run'],
      [discard, 'discard', 'discard'],
    ] as const) {
      const refused = await office.call(right, 'POST', `plans/${plan.id}/${act}`, { confirm: 4 });
      expect(refused).toMatchObject({
        status: 409,
        json: {
          code: 'DLO_PLAN_BLOCKED',
          findings: [{ code: 'on-hold', level: 'block', letters: 4, groups: [fingerprint] }],
        },
      });
      expect((await office.getPlan(plan.id)).state).toBe('ready');
    }
    expect(office.broker.messages('late/$DeadLetterQueue')).toHaveLength(4);
    await triage(fingerprint, { state: 'open' });
    expect((await office.run(replay)).counts).toMatchObject({ done: 4 });
  });

  test('pauses a run that is under way, which goes on when the hold is lifted', async () => {
    await die('ramped', 6, 'Slow');
    const { fingerprint } = await groupOf('ramped', 'Slow');
    const plan = await office.plan({}, 'ramped');
    const ramp = { steps: [1], observe: 'PT1S', haltAbove: 1 };
    await office.post(`plans/${plan.id}/run`, { confirm: 6, ramp });
    await office.finished(plan.id, ['observing']);
    await triage(fingerprint, { state: 'on-hold' });
    const receiver = office.client.createReceiver('ramped', { receiveMode: 'receiveAndDelete' });
    await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    await receiver.close();
    const paused = await office.finished(plan.id, ['paused', 'finished']);
    expect(paused).toMatchObject({ state: 'paused', counts: { done: 1, pending: 5 } });
    expect(paused.stateReason).toBe(`on-hold: 5 of its letters belong to ${fingerprint}`);
    expectProblem(await office.call('replay', 'POST', `plans/${plan.id}/resume`, {}), 'DLO_PLAN_BLOCKED');
    await triage(fingerprint, { state: 'open' });
    await office.post(`plans/${plan.id}/resume`, {});
    await until(async () => (await office.getPlan(plan.id)).counts.done > 1 || undefined, 'the run to go on');
  });

  test('stays one when its row is spoilt: nobody lifts a hold by accident', async () => {
    await die('chosen', 1, 'Fragile');
    const { fingerprint } = await groupOf('chosen', 'Fragile');
    await triage(fingerprint, { state: 'on-hold', owner: 'Ada' });
    await table('groups').upsertEntity(
      { partitionKey: 'triage', rowKey: fingerprint, state: 'hunter2', changedAt: 'never', owner: 7 },
      'Merge',
    );
    expect((await groupOf('chosen', 'Fragile')).triage).toMatchObject({ state: 'on-hold', owner: null });
    expect((await office.plan({}, 'chosen')).findings).toMatchObject([
      { code: 'on-hold' },
      { code: 'nothing-to-send' },
    ]);
    expect((await triage(fingerprint, { state: 'open' })).status).toBe(200);
    expect((await office.plan({}, 'chosen')).counts).toMatchObject({ pending: 1 });
  });
});

describe('a hold under a fingerprint of an earlier version', () => {
  const REASON = 'MaxDeliveryCountExceeded';
  const LET = { includeFixFirst: true };
  const former = formerFingerprint({ reason: REASON });

  /** Makes the rows of a source as version 1 has left them. */
  async function asBefore(queue: string): Promise<void> {
    const filter = `PartitionKey eq '${sourceKey('127.0.0.1', queue)}'`;
    for await (const row of table('letters').listEntities({ queryOptions: { filter } })) {
      const { formerly: _f, ...old } = row;
      await table('letters').updateEntity({ ...old, fingerprint: former, cause: 'as it was' } as never, 'Replace');
    }
    for await (const row of table('groups').listEntities({ queryOptions: { filter } })) {
      await table('groups').deleteEntity(row.partitionKey as string, row.rowKey as string);
    }
  }
  const blocked = { code: 'on-hold', groups: [former] };

  beforeAll(async () => {
    await die('old-a', 2, REASON, '', 'OrderPlaced');
    await die('old-b', 3, REASON, '', 'InvoicePaid');
    await table('groups').upsertEntity(
      {
        partitionKey: 'triage',
        rowKey: former,
        cause: 'as it was',
        state: 'on-hold',
        owner: 'Ada',
        note: 'fraud?',
        bug: '',
        changedAt: new Date(),
        changedBy: 'ada',
      },
      'Replace',
    );
    for (const queue of ['old-a', 'old-b']) await asBefore(queue);
  });

  test('holds before any pass has looked at the letters, and can be included and chosen by its name', async () => {
    expect((await office.plan({ choices: LET }, 'old-a')).findings).toMatchObject([
      blocked,
      { code: 'nothing-to-send' },
    ]);
    expect((await office.plan({ choices: { ...LET, includeOnHold: [former] } }, 'old-a')).counts).toMatchObject({
      pending: 2,
    });
    expect(await office.letters('old-a', `&fingerprint=${former}`)).toHaveLength(2);
    expect(await office.letters('old-a', `&notFingerprint=${former}`)).toHaveLength(0);
  });

  test('blocks a plan that was made before it, whether its letters are in their new groups yet or not', async () => {
    const ready = await office.plan({ choices: { ...LET, includeOnHold: [former] } }, 'old-b');
    const head = { partitionKey: ready.id, rowKey: 'head' };
    const row = await table('plans').getEntity<{ choices: string }>(head.partitionKey, head.rowKey);
    const choices = JSON.stringify({ ...(JSON.parse(row.choices) as Json), includeOnHold: undefined });
    await table('plans').updateEntity({ ...head, choices }, 'Merge');
    const refused = { status: 409, json: { code: 'DLO_PLAN_BLOCKED', findings: [{ ...blocked, letters: 3 }] } };
    expect(await office.call('replay', 'POST', `plans/${ready.id}/run`, { confirm: 3 })).toMatchObject(refused);
    await office.collect('old-b');
    expect(await office.call('replay', 'POST', `plans/${ready.id}/run`, { confirm: 3 })).toMatchObject(refused);
    expect(office.broker.messages('old-b/$DeadLetterQueue')).toHaveLength(3);
  });

  test('counts for every group that it has become, with all that was said; the old one says where it went', async () => {
    await office.collect('old-a');
    await office.collect('old-b');
    const [a, b] = [await groupOf('old-a', 'Delivery limit'), await groupOf('old-b', 'Delivery limit')];
    expect(a.fingerprint).not.toBe(b.fingerprint);
    for (const group of [a, b]) {
      expect(group).toMatchObject({
        formerly: [former],
        triage: { state: 'on-hold', owner: 'Ada', note: 'fraud?', by: 'ada', from: former },
      });
    }
    expect(a.cause).toBe('Delivery limit reached, no exception told (OrderPlaced in old-a)');
    expect(await office.get(`groups/${former}`)).toMatchObject({
      open: 0,
      now: [b.fingerprint, a.fingerprint],
      triage: { state: 'on-hold', from: null },
    });
    // As a letter that comes now is of the old cause, too.
    await die('old-a', 1, REASON, '', 'OrderPlaced');
    const plan = await office.plan({ choices: LET, selection: { fingerprint: [former] } }, 'old-a');
    expect(plan).toMatchObject({ counts: { planned: 3, pending: 0 }, findings: [{ ...blocked, letters: 3 }, {}] });
    // And where the summary of groups is lost, each letter still knows.
    await table('groups').deleteEntity(sourceKey('127.0.0.1', 'old-a'), a.fingerprint);
    expect((await office.plan({ choices: LET }, 'old-a')).counts).toMatchObject({ planned: 3, pending: 0 });
    await office.collect('old-a');
  });

  test('can be lifted for a part, and for what is left', async () => {
    const [a, b] = [await groupOf('old-a', 'Delivery limit'), await groupOf('old-b', 'Delivery limit')];
    expect((await triage(a.fingerprint, { state: 'open' })).json).toMatchObject({
      triage: { state: 'open', owner: 'Ada', note: 'fraud?', from: null },
    });
    expect((await office.run(await office.plan({ choices: LET }, 'old-a'))).counts).toMatchObject({ done: 3 });
    expect((await office.plan({ choices: LET }, 'old-b')).counts).toMatchObject({ planned: 3, pending: 0 });
    expect((await triage(former, { state: 'open' })).status).toBe(200);
    const ready = await office.plan({ choices: LET }, 'old-b');
    expect(ready.counts).toMatchObject({ planned: 3, pending: 3 });
    await triage(b.fingerprint, { state: 'on-hold' });
    expect((await office.plan({ choices: { ...LET, includeOnHold: [former] } }, 'old-b')).findings).toMatchObject([
      { code: 'on-hold', groups: [b.fingerprint] },
      {},
    ]);
    // A hold under the new name keeps letters back whose rows have the old one.
    await asBefore('old-b');
    expect(await office.call('replay', 'POST', `plans/${ready.id}/run`, { confirm: 3 })).toMatchObject({
      status: 409,
      json: { findings: [{ code: 'on-hold', letters: 3, groups: [b.fingerprint] }] },
    });
    await office.collect('old-b');
    // What happened to one queue holds nothing back in another.
    await die('old-a', 1, REASON, '', 'OrderPlaced');
    expect((await office.plan({ choices: LET }, 'old-a')).counts).toMatchObject({ planned: 4, pending: 4 }); // with the three that were sent back
  });

  test('a group of an earlier version of which nothing was said is told by what it is now', async () => {
    await die('old-b', 1, 'Quoted', '"payment declined"');
    const { formerly, fingerprint } = await groupOf('old-b', 'Quoted');
    const answer = await office.call('read', 'GET', `groups/${formerly[0]}`);
    expectProblem(answer, 'DLO_GROUP_UNKNOWN');
    expect((answer.json as Json).detail).toContain(fingerprint);
  });
});

test('a cause that was resolved and strikes again is regressed, since the first letter of it', async () => {
  await die('fixed', 2, 'Regressing');
  const { fingerprint } = await groupOf('fixed', 'Regressing');
  await triage(fingerprint, { state: 'resolved', note: 'fixed in 1.2' });
  const resolved = await groupOf('fixed', 'Regressing');
  expect(resolved.triage).toMatchObject({ state: 'resolved', regressedSince: null });
  await die('fixed', 1, 'Another');
  expect((await groupOf('fixed', 'Regressing')).triage.state).toBe('resolved');

  const again = await die('fixed', 1, 'Regressing');
  const since = again.filter(({ reason }) => reason === 'Regressing').at(-1)?.firstSeen;
  await die('fixed', 1, 'Regressing');
  const regressed = await groupOf('fixed', 'Regressing');
  expect(regressed.triage).toMatchObject({ state: 'regressed', regressedSince: since, note: 'fixed in 1.2' });
  expect((await list('state=regressed')).groups.map((group) => group.fingerprint)).toEqual([fingerprint]);
  expect((await office.get<Json>('summary?by=cause&source=fixed')).headLine).toContain('after it was resolved');
  await office.process.run('reconcile');
  expect((await groupOf('fixed', 'Regressing')).triage).toEqual(regressed.triage);
  // A word about it changes nothing of that; resolving it again does.
  expect(((await triage(fingerprint, { owner: 'Grace' })).json as GroupJson).triage).toMatchObject({
    state: 'regressed',
    owner: 'Grace',
  });
  expect(((await triage(fingerprint, { state: 'resolved' })).json as GroupJson).triage.state).toBe('resolved');
});

test('a cause whose letters died again after a replay, of whatever, says so: counts, advice, head line, the next plan', async () => {
  await die('vain', 3, 'PaymentTimeout', 'no answer within 3 seconds');
  const before = await groupOf('vain', 'PaymentTimeout');
  expect(before).toMatchObject({ advice: 'replay', sent: 0, returned: 0, lastReturned: null });

  const plan = await office.plan({}, 'vain');
  expect(plan.findings).toEqual([]);
  await office.post(`plans/${plan.id}/run`, { confirm: 3, ramp: { steps: [1], observe: 'PT1M' } });
  await until(() => office.broker.messages('vain').length === 1 || undefined, 'the first letter to arrive');
  await office.deadLetterAll('vain', 'UnknownCustomer', 'no such customer');
  const halted = await office.finished(plan.id, ['halted']);
  expect(halted.counts).toMatchObject({ done: 1, pending: 2 });

  // At once: no pass comes in this test but those of the run itself.
  const first = { open: 2, count: 3, advice: 'investigate', sent: 1, returned: 1, lastReturned: expect.any(String) };
  const second = { open: 1, count: 1, sent: 0, returned: 0, lastReturned: null };
  const seen = async () => [await groupOf('vain', 'PaymentTimeout'), await groupOf('vain', 'UnknownCustomer')];
  expect(await seen()).toMatchObject([first, second]);
  expect(await office.get(`groups/${before.fingerprint}`)).toMatchObject({ returned: 1, advices: expect.any(Array) });
  const causes = await office.get<{ headLine: string; counts: Json[] }>('summary?by=cause&source=vain');
  expect(causes.counts[0]).toMatchObject({ count: 2, advice: 'investigate', sent: 1, returned: 1 });
  expect(causes.headLine).toMatch(
    /^3 letters on vain, .*no answer within <number> seconds", at [^,]*, to be looked at/,
  );
  const next = await office.plan({ selection: { fingerprint: [before.fingerprint] } }, 'vain');
  expect(next.findings).toMatchObject([{ code: 'came-back', level: 'warn', letters: 2, groups: [before.fingerprint] }]);

  // Recorded again, and counted anew from the letters, it is the same.
  await office.collect('vain');
  expect(await seen()).toMatchObject([first, second]);
  const letters = table('letters');
  const back = (await office.letters('vain')).find(({ reason }) => reason === 'UnknownCustomer');
  const row = { partitionKey: sourceKey('127.0.0.1', 'vain'), rowKey: String(back?.sequenceNumber).padStart(20, '0') };
  await letters.updateEntity({ ...row, fate: 'gone' }, 'Merge');
  await office.process.run('reconcile');
  expect(await seen()).toMatchObject([first, second]);
  await table('groups').deleteEntity(row.partitionKey, before.fingerprint);
  await office.process.run('reconcile');
  expect(await seen()).toMatchObject([first, second]);

  // Who says that it is resolved is believed, until one comes back after that.
  await triage(before.fingerprint, { state: 'resolved' });
  expect((await groupOf('vain', 'PaymentTimeout')).advice).toBe('replay');
  expect((await office.plan({ selection: { fingerprint: [before.fingerprint] } }, 'vain')).findings).toEqual([]);
});

test('what is said of a cause is in the audit, with who said it', async () => {
  const { fingerprint } = await groupOf('fixed', 'Another');
  await triage(fingerprint, { owner: 'Grace', note: 'secret plan' }, { 'x-operator': 'ada' });
  const audit = await office.call('read', 'GET', 'audit?top=1');
  expect(audit.json).toMatchObject({
    entries: [
      {
        operator: 'ada',
        operation: 'group.triage',
        group: fingerprint,
        outcome: 'open (was open); owner: Grace; note changed',
      },
    ],
  });
  expect(audit.text).not.toContain('secret plan');
});

describe('the history of a letter', () => {
  /** Sends everything of a source back and lets it die again. */
  async function again(source: string, queue: string, reason: string): Promise<PlanJson> {
    const plan = await office.run(await office.plan({}, source));
    await office.deadLetterAll(queue, reason, '');
    return plan;
  }
  interface Life {
    source: string;
    sequenceNumber: string;
    reason: string;
    category: string;
    fingerprint: string;
    firstSeen: string;
    fate: { fate: string; planId: string };
  }
  type Lived = Omit<LetterJson, 'history'> & { history: Life[]; historyEnd: { kind: string; message: string } };
  const lived = async (source: string, reason: string) => {
    const letter = (await office.letters(source)).find((one) => one.reason === reason);
    return (await office.letter(letter?.sequenceNumber ?? '', source)) as unknown as Lived;
  };

  test('tells of two lives before this one, with their causes and plans', async () => {
    const [first] = await die('lives', 1, 'First');
    const one = await again('lives', 'lives', 'Second');
    await office.held(1, 'lives');
    const two = await again('lives', 'lives', 'Third');
    await office.held(1, 'lives');
    const { history, historyEnd } = await lived('lives', 'Third');
    expect(history).toMatchObject([
      { source: 'lives', reason: 'Second', category: 'unknown', fate: { fate: 'replayed', planId: two.id } },
      {
        source: 'lives',
        reason: 'First',
        sequenceNumber: first?.sequenceNumber,
        fate: { fate: 'replayed', planId: one.id },
      },
    ]);
    expect(history.map(({ fingerprint }) => fingerprint)).toEqual([
      expect.stringMatching(/^f2-/),
      (await groupOf('lives', 'First')).fingerprint,
    ]);
    expect(
      history
        .map(({ firstSeen }) => firstSeen)
        .toSorted()
        .reverse(),
    ).toEqual(history.map(({ firstSeen }) => firstSeen));
    expect(historyEnd.kind).toBe('first');
  });

  test('goes on in the source it died in before', async () => {
    await office.send('events', { messageId: 'e-1', body: 1 });
    const receiver = office.client.createReceiver('events', 'billing');
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    if (message)
      await receiver.deadLetterMessage(message, {
        deadLetterReason: 'InTheSubscription',
        deadLetterErrorDescription: '',
      });
    await receiver.close();
    await until(async () => {
      await office.collect('billing');
      return (await office.letters('billing')).length === 1 && (await office.plan({}, 'billing')).counts.pending === 1;
    }, 'the letter of the subscription');
    const plan = await again('billing', 'billing-again', 'InTheQueue');
    await office.held(1, 'billing-again');
    const { history, historyEnd } = await lived('billing-again', 'InTheQueue');
    expect(history).toMatchObject([{ source: 'billing', reason: 'InTheSubscription', fate: { planId: plan.id } }]);
    expect(historyEnd.kind).toBe('first');
  });

  test('says where a link is forged or missing, and believes none of it', async () => {
    const [victim] = await die('forged', 1, 'Victim');
    const plan = await office.plan({}, 'forged');
    const claim = (of: string, planId: string = plan.id) => ({
      'x-replay-count': 1,
      'x-replay-id': planId,
      'x-replay-of': of,
    });
    const claims: [string, Json, string][] = [
      ['Stolen', claim(victim?.sequenceNumber ?? ''), 'forged'],
      ['Nowhere', claim('999999'), 'missing'],
      ['NoSuchPlan', claim('999999', '20200101t000000-aaaaaaaa'), 'missing'],
      ['OnlyACount', { 'x-replay-count': 2 }, 'missing'],
      ['Garbage', { 'x-replay-count': 'many', 'x-replay-id': 'x', 'x-replay-of': '-1' }, 'first'],
    ];
    for (const [i, [reason, applicationProperties]] of claims.entries()) {
      await office.send('forged', {
        messageId: `claim-${i}`,
        body: i,
        applicationProperties: applicationProperties as Record<string, string>,
      });
      await office.deadLetterAll('forged', reason, '');
    }
    await office.held(1 + claims.length, 'forged');
    for (const [reason, , kind] of claims) {
      const { history, historyEnd } = await lived('forged', reason);
      expect([reason, history, historyEnd.kind]).toEqual([reason, [], kind]);
    }
    const own = await lived('forged', 'Victim');
    expect([own.history, own.historyEnd.kind]).toEqual([[], 'first']);
  });

  test('ends at a record that was spoilt or forgotten', async () => {
    const letter = await lived('lives', 'Third');
    const [second] = letter.history;
    const row = {
      partitionKey: sourceKey('127.0.0.1', 'lives'),
      rowKey: (second?.sequenceNumber ?? '').padStart(20, '0'),
    };
    await table('letters').upsertEntity({ ...row, firstSeen: 'yesterday' }, 'Merge');
    expect(await lived('lives', 'Third')).toMatchObject({ history: [], historyEnd: { kind: 'unreadable' } });
    await table('letters').deleteEntity(row.partitionKey, row.rowKey);
    expect(await lived('lives', 'Third')).toMatchObject({ history: [], historyEnd: { kind: 'missing' } });
  });
});

describe('at the door', () => {
  it.each<[string, ErrorCode]>([
    ['groups?top=0', 'DLO_BAD_REQUEST'],
    ['groups?category=hopeless', 'DLO_BAD_REQUEST'],
    ['groups?state=closed', 'DLO_BAD_REQUEST'],
    ['groups?continuation=%27%20or%201', 'DLO_BAD_REQUEST'],
    ['groups?continuation=1.2.3.4', 'DLO_BAD_REQUEST'],
    ['groups?by=cause', 'DLO_BAD_REQUEST'],
    ['groups?source=nowhere', 'DLO_SOURCE_UNKNOWN'],
    ['groups/overflow', 'DLO_BAD_REQUEST'],
    ['groups/triage', 'DLO_BAD_REQUEST'],
    ['groups/%27', 'DLO_BAD_REQUEST'],
    [`groups/${UNKNOWN}`, 'DLO_GROUP_UNKNOWN'],
    ['summary?by=causes', 'DLO_BAD_REQUEST'],
    ['summary?by=cause&format=html', 'DLO_BAD_REQUEST'],
    ['sources/held/letters?fingerprint=x', 'DLO_BAD_REQUEST'],
  ])('%s is %s', async (path, code) => {
    expectProblem(await office.call('read', 'GET', path), code);
  });

  it.each<Json>([
    {},
    { state: 'regressed' },
    { owner: 'two\nlines' },
    { bug: 'javascript:alert(1)' },
    { bug: 'https://example.org/ <script>' },
    { state: 'open', more: 1 },
  ])('triage %j is refused and not audited', async (change) => {
    const { fingerprint } = await groupOf('fixed', 'Another');
    const before = await office.get('audit?top=1');
    expectProblem(await triage(fingerprint, change), 'DLO_BAD_REQUEST');
    expect(await office.get('audit?top=1')).toEqual(before);
  });

  test('nothing is said of a cause that nobody has seen, nor by nobody, nor by who may only look', async () => {
    const { fingerprint } = await groupOf('fixed', 'Another');
    expectProblem(await triage(UNKNOWN, { state: 'on-hold' }), 'DLO_GROUP_UNKNOWN');
    expectProblem(await triage(fingerprint, { state: 'on-hold' }, { 'x-operator': '' }), 'DLO_OPERATOR_MISSING');
    expect((await office.call('read', 'POST', `groups/${fingerprint}/triage`, { state: 'on-hold' })).status).toBe(401);
    expect((await groupOf('fixed', 'Another')).triage.state).toBe('open');
  });

  test('two who say something at the same time are both heard', async () => {
    const { fingerprint } = await groupOf('fixed', 'Another');
    const answers = await Promise.all([
      triage(fingerprint, { owner: 'Ada' }),
      triage(fingerprint, { bug: 'https://bugs.example.org/9' }),
      triage(fingerprint, { note: 'n' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await groupOf('fixed', 'Another')).triage).toMatchObject({
      owner: 'Ada',
      bug: 'https://bugs.example.org/9',
      note: 'n',
    });
  });
});

test('groups are forgotten when their letters are, but not what was said of their causes', async () => {
  const DAY = 86_400_000;
  await die('forgotten', 1, 'Kept');
  await die('forgotten', 1, 'Said');
  const said = await groupOf('forgotten', 'Said');
  await triage(said.fingerprint, { state: 'resolved', owner: 'Ada' });
  await office.run(await office.plan({}, 'forgotten'));
  await office.collect('forgotten');
  await setClock(89 * DAY);
  await office.process.run('expire');
  expect((await list('source=forgotten')).groups).toHaveLength(2);
  await setClock(91 * DAY);
  await office.process.run('expire');
  const left = await list('source=forgotten&top=500');
  expect(left.groups.find(({ cause }) => cause.startsWith('Kept'))).toBeUndefined();
  expect(left.groups.find(({ cause }) => cause.startsWith('Said'))?.triage).toMatchObject({
    state: 'resolved',
    owner: 'Ada',
  });
  await office.process.run('reconcile');
  expect(await office.get(`groups/${said.fingerprint}`)).toMatchObject({ open: 0, count: 0, triage: { owner: 'Ada' } });
  await setClock(91 * DAY + 400 * DAY);
  await office.process.run('expire');
  expectProblem(await office.call('read', 'GET', `groups/${said.fingerprint}`), 'DLO_GROUP_UNKNOWN');
});
