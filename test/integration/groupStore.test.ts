/** Groups against real tables: no count is lost, none is made twice, and what is wrong is made good. */
import { randomUUID } from 'node:crypto';
import { TableClient } from '@azure/data-tables';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Source } from '../../shared/catalog.ts';
import { causeOf, type Fingerprint } from '../../shared/classify/fingerprint.ts';
import { formerFingerprint } from '../../shared/classify/former/fingerprint.ts';
import { classify } from '../../shared/classify/index.ts';
import { countLetters, countReturned, countSent, groupsBefore, keepOpen, recount } from '../../shared/groups/keep.ts';
import type { PlanId, SequenceNumber, SourceKey } from '../../shared/letter.ts';
import type { Office } from '../../shared/office.ts';
import { openOffice } from '../../shared/open.ts';
import { inParallel } from '../../shared/parallel.ts';
import { type Group, groupOf } from '../../shared/records/group.ts';
import type { LetterFate } from '../../shared/records/letterRecord.ts';
import { changed, type TriageChange, triageOf } from '../../shared/records/triage.ts';
import { forgetAll } from '../../shared/retention/forget.ts';
import { MAX_GROUPS, OVERFLOW } from '../../shared/store/groups.ts';
import { openStore, type Store } from '../../shared/store/index.ts';
import { takeStorage } from '../harness/storage.ts';
import { aLetter, aPlan, aSight, CONNECTION, identified, NOW, PLAN_ID } from '../harness/values.ts';

const HOUR = 3_600_000;
const OTHER_PLAN = '20261130t104512-zzzzzzzz' as PlanId;
let office: Office;
let store: Store;
let storage: string;
let source: { key: SourceKey; name: string };
let now: number;
let log: string[];

beforeAll(async () => {
  storage = await takeStorage();
});
beforeEach(() => {
  log = [];
  now = NOW;
  const settings = { AzureWebJobsStorage: storage, ServiceBusConnection: CONNECTION };
  const opened = openOffice({ root: new URL('../../', import.meta.url), settings, log: (line) => log.push(line) });
  office = { ...opened, clock: () => now };
  store = office.store;
  source = { key: `host|${randomUUID()}` as SourceKey, name: 'orders' };
});

const rows = () => TableClient.fromConnectionString(storage, 'groups', { allowInsecureConnection: true });
const spoil = (fingerprint: string, cells: Record<string, unknown>, how: 'Merge' | 'Replace' = 'Merge') =>
  rows().upsertEntity({ partitionKey: source.key, rowKey: fingerprint, ...cells }, how);

/** A letter that died of `reason`. */
const letter = (number: number, reason = 'Declined') =>
  aLetter({ sequenceNumber: String(number) as SequenceNumber, reason, messageId: `m-${number}` });

/** Records letters as trigger, timer and reconcile do. */
async function arrive(letters: readonly ReturnType<typeof letter>[], through = office): Promise<void> {
  const classified = letters.map((one) => ({ letter: one, classification: classify(aSight(one)) }));
  const recorded = await through.store.letters.record(source.key, classified, now);
  await countLetters(through, source, classified, recorded, now);
}

async function groups(): Promise<Group[]> {
  const { groups: found } = await store.groups.list(source.key);
  return [...found.values()]
    .map(({ group }) => group)
    .sort((a, b) => b.total - a.total || (a.cause < b.cause ? -1 : 1));
}
const counts = async () => (await groups()).map(({ cause, total, open }) => [cause.split(':')[0], total, open]);

async function pass(): Promise<void> {
  const read = await groupsBefore(office, source);
  await keepOpen(office, source, read, await store.letters.tally(source.key));
}

const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

describe('as letters arrive', () => {
  test('a letter counts once, however often it is recorded; a number with a new message counts again', async () => {
    await arrive([letter(1), letter(2), letter(3, 'Expired card')]);
    await arrive([letter(1), letter(2)]);
    expect(await counts()).toEqual([
      ['Declined', 2, 2],
      ['Expired card', 1, 1],
    ]);
    await arrive([{ ...letter(1), messageId: 'another' }]);
    expect((await counts())[0]).toEqual(['Declined', 3, 3]);
    now += HOUR;
    await recount(office, source);
    expect((await counts())[0]).toEqual(['Declined', 2, 2]);
  });

  test('many writers of one process and of others lose no count', async () => {
    const other = { ...office, store: openStore({ AzureWebJobsStorage: storage }, 'other', randomUUID) };
    const third = { ...office, store: openStore({ AzureWebJobsStorage: storage }, 'third', randomUUID) };
    const writers = [office, other, third];
    await Promise.all(range(1, 90).map((i) => arrive([letter(i), letter(1000 + i, 'Lost')], writers[i % 3])));
    expect(log).toEqual([]);
    expect(await counts()).toEqual([
      ['Declined', 90, 90],
      ['Lost', 90, 90],
    ]);
  });

  test('a store that does not take the counts keeps no letter from being recorded, and the next pass makes them good', async () => {
    const broken = {
      ...office,
      store: { ...store, groups: openStore({ AzureWebJobsStorage: UNREACHABLE }, 'x', randomUUID).groups },
    };
    await arrive([letter(1), letter(2)], broken);
    expect(log).toHaveLength(1);
    expect(log[0]).toContain('groups orders: not counted');
    expect((await store.letters.tally(source.key)).open).toBe(2);
    expect(await counts()).toEqual([]);
    await pass();
    expect(await counts()).toEqual([['Declined', 2, 2]]);
  }, 60_000);

  test.each([1, 5])('a resolved cause is back since its first letter, in a batch of %i causes', async (causes) => {
    const reasons = ['Declined', 'Lost', 'Late', 'Torn', 'Wet'].slice(0, causes);
    await arrive(reasons.map((reason, i) => letter(i + 1, reason)));
    const { fingerprint, cause } = (await groups()).find((group) => group.cause.startsWith('Declined')) as Group;
    const said = { fingerprint, cause, owner: '', note: '', bug: '', changedAt: now, changedBy: 'ada' };
    await store.triage.put({ ...said, state: 'resolved', resolvedAt: now, regressedAt: undefined }, undefined);
    for (const i of [1, 2]) {
      now += HOUR;
      await arrive(reasons.map((reason, j) => letter(100 * i + j, reason)));
    }
    const stored = await store.triage.get(fingerprint);
    expect(stored?.triage).toMatchObject({ state: 'resolved', resolvedAt: NOW, regressedAt: NOW + HOUR });
    await store.triage.remove(fingerprint);
  });

  test('a row that cannot be read is no reason to stop counting', async () => {
    await arrive([letter(1)]);
    const [{ fingerprint } = { fingerprint: '' }] = await groups();
    await spoil(fingerprint, { total: 'many', trend: '{' });
    expect(await groups()).toEqual([]);
    await arrive([letter(2)]);
    expect(await counts()).toEqual([['Declined', 1, 1]]);
    await recount(office, source);
    expect(await counts()).toEqual([['Declined', 2, 2]]);
  });
});

/** Closes the records of letters, as a run does. */
async function leave(numbers: string[], fate: LetterFate, planId?: PlanId): Promise<void> {
  const records = await Promise.all(numbers.map((number) => store.letters.get(source.key, number as SequenceNumber)));
  const letters = records.flatMap((record) => (record ? [identified(record.letter)] : []));
  await store.letters.close(source.key, letters, fate, now, planId);
}

/** Nobody listens there. */
const UNREACHABLE =
  'DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:9/a;QueueEndpoint=http://127.0.0.1:9/a;';

describe('with every pass', () => {
  test('open letters are counted as they leave and come', async () => {
    await arrive(range(1, 5).map((i) => letter(i)));
    await leave(['1', '2'], 'replayed');
    expect(await counts()).toEqual([['Declined', 5, 5]]);
    await pass();
    expect(await counts()).toEqual([['Declined', 5, 3]]);
    await leave(['3', '4', '5'], 'gone');
    await pass();
    expect(await counts()).toEqual([['Declined', 5, 0]]);
  });

  test('a group that was written since it was read keeps what it was given', async () => {
    await arrive([letter(1)]);
    const read = await groupsBefore(office, source);
    const tally = await store.letters.tally(source.key);
    await arrive([letter(2)]);
    await keepOpen(office, source, read, { ...tally, byFingerprint: new Map() });
    expect(await counts()).toEqual([['Declined', 2, 2]]);
    await keepOpen(office, source, await groupsBefore(office, source), { ...tally, byFingerprint: new Map() });
    expect(await counts()).toEqual([['Declined', 2, 0]]);
  });

  test.each<[string, (fingerprint: string) => Promise<unknown>]>([
    ['deleted', (fingerprint) => rows().deleteEntity(source.key, fingerprint)],
    ['garbled', (fingerprint) => spoil(fingerprint, { firstSeen: 'yesterday', categories: '[["hunter2",1]]' })],
    ['replaced by a stranger’s', (fingerprint) => spoil(fingerprint, { hello: 'world' }, 'Replace')],
  ])('a row that was %s is made again', async (_how, spoilRow) => {
    await arrive([letter(1), letter(2), letter(3, 'Lost')]);
    const before = await groups();
    await spoilRow(before[0]?.fingerprint ?? '');
    await pass();
    expect(await groups()).toEqual(before);
  });

  test('a row under a key that is no fingerprint is removed', async () => {
    await arrive([letter(1)]);
    await spoil('~stranger', { total: 1 });
    expect((await store.groups.list(source.key)).unreadable).toEqual(['~stranger']);
    await pass();
    expect((await store.groups.list(source.key)).unreadable).toEqual([]);
    expect(await counts()).toEqual([['Declined', 1, 1]]);
  });

  test('a letter whose record is half spoilt has a group all the same, and passes do not count for ever', async () => {
    await arrive([letter(1), letter(2)]);
    const letters = TableClient.fromConnectionString(storage, 'letters', { allowInsecureConnection: true });
    const row = (number: string) => ({ partitionKey: source.key, rowKey: number.padStart(20, '0') });
    await letters.upsertEntity(
      { ...row('1'), fingerprint: 'hunter2', cause: 7, properties: '{', messageType: 1 },
      'Merge',
    );
    await letters.upsertEntity({ ...row('2'), advice: 'hunter2' }, 'Merge');
    await pass();
    expect((await counts()).find(([cause]) => String(cause).startsWith('No reason told'))).toEqual([
      expect.any(String),
      1,
      1,
    ]);
    const before = (await store.groups.list(source.key)).groups;
    await pass();
    expect((await store.groups.list(source.key)).groups).toEqual(before);
  });

  test('letters of before there were groups get theirs', async () => {
    await arrive([letter(1), letter(2)]);
    const letters = TableClient.fromConnectionString(storage, 'letters', { allowInsecureConnection: true });
    for (const rowKey of ['1', '2'].map((number) => number.padStart(20, '0'))) {
      const {
        fingerprint: _f,
        cause: _c,
        etag: _e,
        timestamp: _t,
        ...old
      } = await letters.getEntity(source.key, rowKey);
      await letters.upsertEntity({ ...old, partitionKey: source.key, rowKey }, 'Replace');
    }
    for (const { fingerprint } of await groups()) await rows().deleteEntity(source.key, fingerprint);
    await pass();
    expect(await counts()).toEqual([['Declined', 2, 2]]);
    const [{ fingerprint } = { fingerprint: '' as Fingerprint }] = await groups();
    const numbers = [];
    for await (const { number } of store.letters.ofGroup(source.key, fingerprint)) numbers.push(number);
    expect(numbers).toEqual(['1', '2']);
  });
});

describe('letters in groups of an earlier version', () => {
  const told = (reason: string) => classify(aSight(letter(1, reason))).evidence;
  const former = (reason: string) => formerFingerprint(told(reason));
  const cells = () => TableClient.fromConnectionString(storage, 'letters', { allowInsecureConnection: true });
  const key = (number: number) => ({ partitionKey: source.key, rowKey: String(number).padStart(20, '0') });
  const said = (reason: string, change: TriageChange, at = now) =>
    store.triage.put(
      changed(undefined, change, { fingerprint: former(reason), cause: reason, at, operator: 'ada' }),
      undefined,
    );

  /** Makes rows as version 1 has left them; `stored` is what it called their cause. */
  async function asBefore(numbers: readonly number[], stored: Fingerprint): Promise<void> {
    await inParallel(numbers, async (number) => {
      const { formerly: _f, ...row } = await cells().getEntity(source.key, key(number).rowKey);
      await cells().updateEntity({ ...row, ...key(number), fingerprint: stored, cause: 'as it was' }, 'Replace');
    });
  }

  test('get theirs with a pass, all of them, and keep the old one beside it however often they are recorded', async () => {
    const letters = range(1, 250).map((i) => letter(i));
    for (let i = 0; i < 250; i += 100) await arrive(letters.slice(i, i + 100));
    const before = await groups();
    // What another version made of the text need not be what would be made of it now.
    const stored = former('Something else');
    await asBefore(range(1, 250), stored);
    for (const { fingerprint } of before) await rows().deleteEntity(source.key, fingerprint);
    await cells().updateEntity({ ...key(9), properties: '{' }, 'Merge');
    await pass();
    expect(await groups()).toMatchObject([
      { fingerprint: before[0]?.fingerprint, cause: before[0]?.cause, total: 249, open: 249, formerly: [stored] },
      { total: 1, open: 1, formerly: [stored] },
    ]);
    await arrive([letter(1)]);
    expect(await store.letters.get(source.key, '1' as SequenceNumber)).toMatchObject({ formerly: stored });
    const calls = await groups();
    await pass();
    expect(await groups()).toEqual(calls);
  });

  test('are looked for by either name', async () => {
    await arrive([letter(1), letter(2, 'Other')]);
    await asBefore([1], former('Declined'));
    const outdated = [];
    for await (const { number, formerly } of store.letters.outdated(source.key)) outdated.push([number, formerly]);
    expect(outdated).toEqual([['1', former('Declined')]]);
    await pass();
    for await (const { number } of store.letters.outdated(source.key)) expect.unreachable(number);
    for (const name of [former('Declined'), causeOf(told('Declined'), source.key).fingerprint]) {
      const found = [];
      for await (const { number } of store.letters.ofGroup(source.key, name)) found.push(number);
      expect(found).toEqual(['1']);
    }
  });

  test('one of several that were resolved as one is back alone', async () => {
    await said('MaxDeliveryCountExceeded', { state: 'resolved', owner: 'Ada' });
    const dead = (number: number, subject: string) =>
      aLetter({ ...letter(number, 'MaxDeliveryCountExceeded'), subject });
    await arrive([dead(1, 'OrderPlaced'), dead(2, 'OrderPaid')]);
    now += HOUR;
    await arrive([dead(3, 'OrderPaid')]);
    const triages = await store.triage.all();
    const states = (await groups()).map((group) => [group.total, triageOf(triages, group)] as const);
    expect(states).toMatchObject([
      [2, { state: 'resolved', owner: 'Ada', regressedAt: now }],
      [1, { state: 'resolved', owner: 'Ada', regressedAt: undefined }],
    ]);
    expect(triages.get(former('MaxDeliveryCountExceeded'))?.regressedAt).toBeUndefined();
  });

  test('what was said of the old one is kept as long as one of them is open, however long ago it was said', async () => {
    await said('Old', { state: 'on-hold' }, 1);
    await said('Gone', { state: 'on-hold' }, 1);
    await arrive([letter(1, 'Old')]);
    const [entry] = office.catalog.sources as [Source];
    await forgetAll(office, [{ ...entry, ...source }]);
    expect((await store.triage.get(former('Old')))?.triage.state).toBe('on-hold');
    expect(await store.triage.get(former('Gone'))).toBeUndefined();
  });
});

describe('a recount', () => {
  test('is exact for all that is a while ago, whatever the row said', async () => {
    await arrive(range(1, 4).map((i) => letter(i)));
    await leave(['4'], 'discarded');
    const [{ fingerprint } = { fingerprint: '' }] = await groups();
    await spoil(fingerprint, { total: 999, open: 77, trend: JSON.stringify([[NOW - (NOW % 300_000), 999]]) });
    now += HOUR;
    expect(await recount(office, source)).toBe(1);
    expect(await counts()).toEqual([['Declined', 4, 3]]);
  });

  test('loses nothing that is recorded meanwhile', async () => {
    await arrive(range(1, 50).map((i) => letter(i)));
    await Promise.all([recount(office, source), ...range(51, 50).map((i) => arrive([letter(i)]))]);
    expect((await counts())[0]?.[1]).toBeGreaterThanOrEqual(100);
    now += HOUR;
    await recount(office, source);
    expect(await counts()).toEqual([['Declined', 100, 100]]);
  });

  test('drops groups of which no letter is on record, but for those that somebody has said something of', async () => {
    await arrive([letter(1), letter(2, 'Said')]);
    const said = (await groups()).find(({ cause }) => cause.startsWith('Said')) as Group;
    const triage = { state: 'resolved', owner: 'ada', note: '', bug: '', changedAt: now, changedBy: 'ada' } as const;
    await store.triage.put(
      { ...triage, fingerprint: said.fingerprint, cause: said.cause, resolvedAt: now, regressedAt: undefined },
      undefined,
    );
    await leave(['1', '2'], 'replayed');
    await store.letters.forgetClosed(source.key, now + 1, 10);
    now += HOUR;
    await recount(office, source);
    expect(await counts()).toEqual([['Said', 0, 0]]);
    expect((await store.triage.get(said.fingerprint))?.triage.owner).toBe('ada');
  });
});

describe('what was sent back, and came back', () => {
  const PLAN = PLAN_ID;
  const replays = async () => (await groups()).map(({ total, sent, returned }) => [total, sent, returned]);

  test('is counted once in the group that the letter had, however often it is told, and the same by a recount', async () => {
    const three = [1, 2, 3].map((number) => letter(number));
    await arrive(three);
    await arrive([letter(4, 'Other')]);
    const numbers = three.map(({ sequenceNumber }) => sequenceNumber);
    await store.plans.create(aPlan({ source: source.key }), 'w');
    // Sent by this plan are the first two; the third by nobody, the fourth by another.
    await leave(numbers.slice(0, 2), 'replayed', PLAN);
    await leave(['4'], 'replayed', OTHER_PLAN);
    await countSent(office, source, PLAN, ['1', '2'] as SequenceNumber[]);
    for (const number of ['2', '2', '4', '99'] as SequenceNumber[]) {
      await Promise.all([1, 2].map(() => countReturned(office, PLAN, [number], now)));
    }
    await countReturned(office, PLAN, [], now);
    await countReturned(office, OTHER_PLAN, ['1' as SequenceNumber], now); // there is no such plan
    expect(await replays()).toEqual([
      [3, 2, 1],
      [1, 0, 0],
    ]);
    await recount(office, source);
    expect(await replays()).toEqual([
      [3, 2, 1],
      [1, 1, 0],
    ]);
    expect((await groups())[0]?.lastReturned).toBe(now);
    expect(log).toEqual([]);
  });

  test('and what was not counted when it happened is made good by a recount', async () => {
    await arrive([letter(1), letter(2)]);
    await store.plans.create(aPlan({ source: source.key, id: OTHER_PLAN }), 'w');
    await leave(['1', '2'], 'replayed', OTHER_PLAN);
    await store.letters.markReturned(source.key, '1' as SequenceNumber, OTHER_PLAN, now); // and then the process died
    await countReturned(office, OTHER_PLAN, ['1' as SequenceNumber], now);
    expect(await replays()).toEqual([[2, 0, 0]]);
    await recount(office, source);
    expect(await replays()).toEqual([[2, 2, 1]]);
  });
});

describe('any number of causes', () => {
  const word = (i: number) => [...String(i)].map((digit) => 'abcdefghij'[Number(digit)]).join('');
  const made = (i: number): Group =>
    groupOf({
      number: String(i) as SequenceNumber,
      fingerprint: `f1-${word(i).padStart(22, 'x')}` as Fingerprint,
      cause: `cause ${word(i)}`,
      category: 'unknown',
      advice: 'investigate',
      messageType: undefined,
      at: NOW,
      open: true,
    });

  test('makes so many groups and one more, and no letter is uncounted', async () => {
    for (let i = 0; i < MAX_GROUPS + 120; i += 100)
      await store.groups.add(source.key, range(i, Math.min(100, MAX_GROUPS + 120 - i)).map(made));
    await store.groups.add(source.key, range(MAX_GROUPS + 200, 5).map(made));
    await store.groups.add(source.key, [made(0)]); // has its row
    const all = await groups();
    expect(all).toHaveLength(MAX_GROUPS + 1);
    expect(all.find(({ fingerprint }) => fingerprint === OVERFLOW)).toMatchObject({
      total: 125,
      cause: expect.stringContaining('Other causes'),
    });
    expect(all.reduce((sum, { total }) => sum + total, 0)).toBe(MAX_GROUPS + 126);
  });

  test('hides no cause that is larger than they: it takes the place of a small one', async () => {
    const junk = range(0, MAX_GROUPS + 10).map((i) => letter(i + 1, `junk ${word(i)}`));
    for (let i = 0; i < junk.length; i += 100) await arrive(junk.slice(i, i + 100));
    await arrive(range(5000, 3).map((i) => letter(i, 'The real one')));
    expect((await groups()).some(({ cause }) => cause.startsWith('The real one'))).toBe(false);
    await pass();
    const all = await groups();
    expect(all).toHaveLength(MAX_GROUPS + 1);
    expect(all.find(({ cause }) => cause.startsWith('The real one'))).toMatchObject({ total: 3, open: 3 });
    expect(all.find(({ fingerprint }) => fingerprint === OVERFLOW)).toMatchObject({ total: 11, open: 11 });
    // And then it is as it is: no pass makes it again.
    await pass();
    expect(await groups()).toEqual(all);
  });
});
