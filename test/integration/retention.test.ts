import { TableClient } from '@azure/data-tables';
import type { ServiceBusReceivedMessage, ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sourceKey } from '../../shared/catalog.ts';
import { type Office, sourceNamed } from '../../shared/office.ts';
import { openOffice } from '../../shared/open.ts';
import { expireSource } from '../../shared/retention/expire.ts';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';

const DAY = 86_400_000;
const ENTRY = 'test/integration/fixtures/office.ts';
const FORTNIGHT = { retainFor: 'P14D', trigger: false };

interface Preview {
  seenUntil: string | null;
  count: number;
  more: boolean;
  letters: { sequenceNumber: string }[];
}

interface AuditJson {
  operator: string;
  operation: string;
  source: string;
  letters: string[];
  letterCount: number;
  outcome: string;
  closedAt: string | null;
}

let office: TestOffice;
/** How far the clock of the office is ahead, days. It only goes forward. */
let today = 0;

beforeAll(async () => {
  office = await openTestOffice({
    entry: ENTRY,
    sources: [
      ...['aged', 'twice', 'reborn', 'records', 'many', 'unheld'].map((name) => ({ name, ...FORTNIGHT })),
      { name: 'leaving', ...FORTNIGHT, keepRecordsFor: 'P30D' },
      { name: 'kept', trigger: false },
      { name: 'seen', ...FORTNIGHT, mode: 'observe' },
      { name: 'busy', retainFor: 'PT1S', trigger: false },
    ],
  });
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-3000));
});
afterAll(() => office?.close());

const dlq = (queue: string) => office.broker.messages(`${queue}/$DeadLetterQueue`);
const numbers = (letters: readonly { sequenceNumber: string }[]) => letters.map(({ sequenceNumber }) => sequenceNumber);
const preview = (source: string) => office.get<Preview>(`sources/${source}/expiry`);
const clean = (which = office) => which.process.run('expire');
const logged = (text: string) => office.process.log().split(text).length - 1;

function tableOf(name: string): TableClient {
  return TableClient.fromConnectionString(office.storage, name, { allowInsecureConnection: true });
}

async function setClock(days: number, which = office): Promise<void> {
  await which.call('probe', 'POST', `test/clock?ahead=${days * DAY}`);
}

async function pass(days: number): Promise<void> {
  today += days;
  await setClock(today);
}

async function audits(source: string): Promise<AuditJson[]> {
  const { entries } = await office.get<{ entries: AuditJson[] }>(`audit?source=${source}&top=500`);
  return entries.filter(({ operation }) => operation === 'expire');
}

/** Puts letters into the DLQ of a queue without the office touching them. */
async function die(queue: string, count: number, body = 'b'): Promise<void> {
  const messages = Array.from({ length: count }, (_, i) => ({ messageId: `${body}-${i}`, body }));
  await office.send(queue, messages);
  await office.deadLetterAll(queue);
}

async function byHand<T>(queue: string, act: (receiver: ServiceBusReceiver) => Promise<T>): Promise<T> {
  const options = { subQueueType: 'deadLetter', maxAutoLockRenewalDurationInMs: 0 } as const;
  const receiver = office.client.createReceiver(queue, options);
  try {
    return await act(receiver);
  } finally {
    await receiver.close();
  }
}

test('letters past their time are removed and audited, younger ones stay; a dry run tells before what goes', async () => {
  const old = numbers(await office.deadLetters(3, 'aged'));
  expect(await preview('aged')).toMatchObject({ count: 0, more: false, letters: [] });
  await pass(10);
  const young = numbers(await office.deadLetters(2, 'aged')).slice(3);
  await pass(5);
  const before = dlq('aged');
  const dry = await preview('aged');
  expect(dry).toMatchObject({ count: 3, more: false });
  expect(numbers(dry.letters)).toEqual(old);
  expect(Date.parse(dry.seenUntil ?? '')).toBeCloseTo(Date.now() + (today - 14) * DAY, -5);
  expect(dlq('aged')).toEqual(before);
  expect(await office.letters('aged')).toHaveLength(5);
  expect(await audits('aged')).toEqual([]);

  await clean();
  expect(dlq('aged').map(({ sequenceNumber }) => String(sequenceNumber))).toEqual(young);
  expect(numbers(await office.letters('aged'))).toEqual(young);
  for (const number of old) {
    expect(await office.letter(number, 'aged')).toMatchObject({ fate: { fate: 'expired', planId: null } });
  }
  expect(await audits('aged')).toMatchObject([
    { operator: 'retention of test', letters: old, letterCount: 3, outcome: '3 removed', closedAt: expect.any(String) },
  ]);
  expect(await office.get('sources/aged')).toMatchObject({ open: 2, heldBy: null });
  await clean();
  expect(await audits('aged')).toHaveLength(1);
});

test('without a promise nothing is ever removed', async () => {
  await office.deadLetters(2, 'kept');
  await pass(300);
  expect(await preview('kept')).toEqual({ seenUntil: null, count: 0, more: false, letters: [] });
  await clean();
  expect(dlq('kept').map(({ state }) => state)).toEqual(['deferred', 'deferred']);
  expect(await office.letters('kept')).toHaveLength(2);
});

test('of an observe source only what is due is removed, the rest is given back as it was', async () => {
  await die('seen', 2, 'old');
  await office.process.run('collect');
  await pass(10);
  await die('seen', 3, 'young');
  await office.process.run('collect');
  await pass(5);
  await die('seen', 1, 'unrecorded');
  const [, , ...rest] = dlq('seen');
  expect((await preview('seen')).count).toBe(2);
  await clean();
  expect(dlq('seen')).toEqual(rest);
  expect(await office.letters('seen')).toHaveLength(3);
  expect(await audits('seen')).toMatchObject([{ letterCount: 2, outcome: '2 removed' }]);
});

test('a letter that somebody holds is left, and removed the next time', async () => {
  const [first, second, third] = numbers(await office.deadLetters(3, 'twice')) as [string, string, string];
  await pass(15);
  await byHand('twice', async (receiver) => {
    const [held] = (await receiver.receiveDeferredMessages(Long.fromString(second))) as [ServiceBusReceivedMessage];
    await clean();
    expect(dlq('twice').map(({ sequenceNumber }) => String(sequenceNumber))).toEqual([second]);
    expect(logged('expire twice: 2 removed, 1 left for the next time')).toBe(1);
    expect(await office.letter(second, 'twice')).toMatchObject({ fate: null });
    await receiver.abandonMessage(held);
  });
  await clean();
  expect(dlq('twice')).toEqual([]);
  expect((await audits('twice')).map(({ letters }) => letters)).toEqual([[second], [first, third]]);
});

test('a letter that somebody has taken meanwhile is gone, not removed', async () => {
  const [first, second] = numbers(await office.deadLetters(2, 'twice')) as [string, string];
  await pass(15);
  await byHand('twice', async (receiver) => {
    const [message] = (await receiver.receiveDeferredMessages(Long.fromString(first))) as [ServiceBusReceivedMessage];
    await receiver.completeMessage(message);
  });
  await clean();
  expect(await office.letter(first, 'twice')).toMatchObject({ fate: { fate: 'gone' } });
  expect(await office.letter(second, 'twice')).toMatchObject({ fate: { fate: 'expired' } });
  expect((await audits('twice'))[0]).toMatchObject({ letters: [second], letterCount: 1 });
});

test('another message under a recorded number is never removed', async () => {
  const old = numbers(await office.deadLetters(2, 'reborn'));
  await pass(15);
  office.broker.recreate('reborn');
  await die('reborn', 2, 'new');
  await byHand('reborn', async (receiver) => {
    const [message] = (await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 })) as [ServiceBusReceivedMessage];
    await receiver.deferMessage(message);
  });
  const before = dlq('reborn');
  expect(before.map(({ sequenceNumber }) => String(sequenceNumber))).toEqual(old);
  expect((await preview('reborn')).count).toBe(2);
  await clean();
  expect(dlq('reborn')).toEqual(before);
  expect(await audits('reborn')).toEqual([]);
  await office.process.run('reconcile');
  expect(await preview('reborn')).toMatchObject({ count: 0 });
  await clean();
  expect(dlq('reborn')).toEqual(before);
});

test('a recorded letter that is not held yet is left until it is', async () => {
  await die('unheld', 1);
  await office.process.run('reconcile');
  await pass(15);
  await clean();
  expect(dlq('unheld').map(({ state, locked }) => [state, locked])).toEqual([['active', false]]);
  await office.collect('unheld');
  await clean();
  expect(dlq('unheld')).toEqual([]);
});

test('a cleanup goes through all that is due, page by page; one that comes late in a long run removes its share, the next the rest', async () => {
  await die('many', 1220);
  await office.collect('many');
  await pass(15);
  const dry = await preview('many');
  expect(dry).toMatchObject({ count: 1220, more: false });
  expect(dry.letters).toHaveLength(100);
  const opened = openOffice({
    root: new URL('../../', import.meta.url),
    settings: office.settings,
    log: () => {},
  });
  const later: Office = { ...opened, clock: () => Date.now() + today * DAY };
  try {
    expect(await expireSource(later, sourceNamed(later, 'many'), 100)).toEqual({
      removed: 100,
      left: 0,
      unarchived: 0,
    });
  } finally {
    await later.broker.close();
  }
  expect(dlq('many')).toHaveLength(1120);
  await clean();
  expect(dlq('many')).toEqual([]);
  expect(await office.letters('many')).toEqual([]);
  const counts = (await audits('many')).map(({ letterCount }) => letterCount);
  expect(counts).toEqual([20, ...Array.from({ length: 12 }, () => 100)]);
}, 60_000);

test('a source that a run holds has its turn when the run has ended, and the others have theirs now', async () => {
  await office.deadLetters(2, 'busy');
  await office.deadLetters(1, 'aged');
  const plan = await office.plan({}, 'busy');
  const busy = office.broker.faults.add({
    at: 'send',
    entity: 'busy',
    do: 'refuse',
    condition: 'com.microsoft:server-busy',
    times: 10_000,
  });
  await office.post(`plans/${plan.id}/run`, { confirm: 2, ramp: false });
  await pass(15);
  await clean();
  expect(dlq('busy')).toHaveLength(2);
  expect(dlq('aged')).toEqual([]);
  expect(logged('expire busy: busy, tried again next time')).toBe(1);
  await expect.poll(() => office.process.log()).toContain(`the source is held by the run of plan ${plan.id}`);
  expect(await office.get('sources/busy')).toMatchObject({ heldBy: plan.id });
  await office.post(`plans/${plan.id}/cancel`, {});
  await office.finished(plan.id, ['cancelled']);
  busy.remove();
  await clean();
  expect(dlq('busy')).toEqual([]);
});

describe('records', () => {
  test('of letters that left are kept as long as the catalog says', async () => {
    const [number = ''] = numbers(await office.deadLetters(1, 'records'));
    await pass(15);
    await clean();
    await pass(89);
    await clean();
    expect(await office.letter(number, 'records')).toMatchObject({ fate: { fate: 'expired' } });
    await pass(2);
    await clean();
    expect((await office.call('read', 'GET', `sources/records/letters/${number}`)).status).toBe(404);
  });

  test('of open letters are never forgotten', async () => {
    expect(await office.letters('kept')).toHaveLength(2);
  });

  test('of plans and audit are kept as long as the catalog says', async () => {
    const plan = await office.plan({}, 'kept');
    const spoilt = await office.plan({}, 'kept');
    const head = { partitionKey: spoilt.id, rowKey: 'head', choices: '{' };
    await tableOf('plans').updateEntity(head, 'Merge');
    const closed = await office.post<PlanJson>(`plans/${plan.id}/cancel`, {});
    expect(closed.state).toBe('cancelled');
    await pass(399);
    await clean();
    expect(await office.getPlan(plan.id)).toMatchObject({ state: 'cancelled' });
    expect((await entriesOf(plan.id)).map(({ operation }) => operation)).toEqual(['plan.cancel', 'plan.create']);
    expect(await auditRows(plan.id)).toBe(2);
    await pass(2 + 31); // audit goes by whole months
    await clean();
    expect((await office.call('read', 'GET', `plans/${plan.id}`)).status).toBe(404);
    expect(await office.get('plans?source=kept')).toEqual({ plans: [], unreadable: [] });
    expect(await auditRows(plan.id)).toBe(0);
  });

  /** The list goes back fourteen months only; what is kept is in the table. */
  async function auditRows(plan: string): Promise<number> {
    let rows = 0;
    const queryOptions = { filter: `planId eq '${plan}'` };
    for await (const _row of tableOf('audit').listEntities({ queryOptions })) rows++;
    return rows;
  }

  async function entriesOf(plan: string): Promise<AuditJson[]> {
    return (await office.get<{ entries: AuditJson[] }>(`audit?plan=${plan}`)).entries;
  }
});

test('a source that left the catalog keeps its promise, and is forgotten when nothing of it is left', async () => {
  const old = numbers(await office.deadLetters(2, 'leaving'));
  await pass(10);
  const [, , young = ''] = numbers(await office.deadLetters(1, 'leaving'));
  await pass(5);
  await office.process.stop();
  const smaller = await openTestOffice({
    entry: ENTRY,
    broker: office.broker,
    storage: office.storage,
    sources: [{ name: 'kept', trigger: false }],
  });
  try {
    const key = sourceKey('127.0.0.1', 'leaving');
    const rowOf = async () => (await rows('sources')).find(({ rowKey }) => rowKey === 'source');
    const rows = async (name: string) => {
      const found: Record<string, unknown>[] = [];
      const queryOptions = { filter: `PartitionKey eq '${key}'` };
      for await (const row of tableOf(name).listEntities({ queryOptions })) found.push(row);
      return found;
    };
    const later = async (days: number) => {
      today += days;
      await setClock(today, smaller);
      await clean(smaller);
    };

    await later(0);
    expect(dlq('leaving').map(({ sequenceNumber }) => String(sequenceNumber))).toEqual([young]);
    expect((await smaller.call('read', 'GET', 'sources/leaving')).status).toBe(404);
    expect(await rowOf()).toMatchObject({ retired: true });
    expect((await rows('letters')).map(({ fate }) => fate)).toEqual(['expired', 'expired', 'open']);

    await later(10);
    expect(dlq('leaving')).toEqual([]);
    expect(await rows('letters')).toHaveLength(old.length + 1);
    expect(await rows('groups')).toHaveLength(1);
    expect(await rowOf(), 'its records are still there, and found only by this row').toMatchObject({ retired: true });

    await later(31);
    await later(31);
    expect(await rows('letters')).toEqual([]);
    expect(await rows('snapshots')).toEqual([]);
    expect(await rows('groups')).toEqual([]);
    expect(await rowOf()).toBeUndefined();
    await until(
      () => smaller.process.log().includes('expire leaving: 2 removed') || undefined,
      'the log of the cleanup',
    );
  } finally {
    await smaller.close();
  }
});
