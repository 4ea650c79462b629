/** What each door of the office lets through: by which right, in which form, and how much of it. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { storageConnection } from '../../shared/store/connection.ts';
import { Table } from '../../shared/store/table.ts';
import { openTestOffice, type TestOffice, until } from '../harness/office.ts';

let office: TestOffice;
beforeAll(async () => {
  office = await openTestOffice({ sources: [{ name: 'removals' }, { name: 'paged' }] });
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-5000));
});
afterAll(() => office?.close());

const inDlq = (queue: string) => office.broker.messages(`${queue}/$DeadLetterQueue`).length;

test('a discard is started, resumed and cancelled by its own right only; whoever may stop can pause it', async () => {
  await office.deadLetters(30, 'removals');
  const plan = await office.plan({ action: 'discard' }, 'removals');
  const call = (right: 'replay' | 'discard', verb: string, body: unknown = {}) =>
    office.call(right, 'POST', `plans/${plan.id}/${verb}`, body);
  const start = { confirm: 30, rate: 0.1, ramp: false };
  expect((await call('replay', 'discard', start)).status).toBe(401);
  expect((await call('replay', 'run', start)).json).toMatchObject({ code: 'DLO_WRONG_ACTION' });
  expect((await call('discard', 'discard', start)).status).toBe(202);
  await until(() => inDlq('removals') < 30 || undefined, 'the first letter to be removed');
  await office.post('stop', {});
  await office.finished(plan.id, ['paused']);
  const left = inDlq('removals');
  expect(left).toBeGreaterThan(0);

  for (const verb of ['resume', 'cancel']) {
    expect((await call('replay', verb)).json).toMatchObject({ code: 'DLO_WRONG_ACTION', planAction: 'discard' });
    expect((await call('replay', `discard/${verb}`)).status).toBe(401);
  }
  expect(await office.getPlan(plan.id)).toMatchObject({ state: 'paused' });
  expect(inDlq('removals')).toBe(left);

  expect((await call('discard', 'discard/resume')).status).toBe(202);
  expect((await call('replay', 'pause')).status).toBeLessThan(300);
  await office.finished(plan.id, ['paused']);
  expect((await call('discard', 'discard/pause')).status).toBe(200);
  expect((await call('discard', 'discard/cancel')).json).toMatchObject({ state: 'cancelled' });

  const { id } = await office.plan({}, 'removals');
  const other = await office.call('discard', 'POST', `plans/${id}/discard/resume`, {});
  expect(other.json).toMatchObject({ code: 'DLO_WRONG_ACTION', planAction: 'replay' });
});

/** Every page of a list, however the tokens look. */
async function walk<Item>(path: string, name: string): Promise<Item[]> {
  const items: Item[] = [];
  let token: string | null = null;
  let pages = 0;
  do {
    const more: string = token === null ? '' : `&continuation=${encodeURIComponent(token)}`;
    const page: Record<string, unknown> = await office.get(`${path}${more}`);
    items.push(...(page[name] as Item[]));
    token = page.continuation as string | null;
  } while (token !== null && ++pages < 1000);
  return items;
}

test('every paged list takes back each continuation that it gives, also of chunks that were split until one letter was left', async () => {
  const letters = await office.deadLetters(60, 'paged');
  const numbers = letters.map(({ sequenceNumber }) => sequenceNumber);
  const plan = await office.plan({}, 'paged');
  const table = new Table(storageConnection({ AzureWebJobsStorage: office.storage }, 'table'), 'plans');
  const { rows } = await table.page(`PartitionKey eq '${plan.id}' and RowKey ge 'chunk:' and RowKey lt 'chunk;'`, {});
  expect(rows).toHaveLength(1);
  const [row] = rows;
  if (row === undefined) throw new Error('no chunk');
  // As a run leaves it that had to try its letters one by one: the front is split off, then that of the rest, and so on.
  const pairs = JSON.parse(String(row.letters)) as unknown[];
  const { etag: _etag, timestamp: _at, ...cells } = row as typeof row & { timestamp?: unknown };
  const split = pairs.map((pair, i) => ({
    ...cells,
    partitionKey: plan.id,
    rowKey: `chunk:~~${row.rowKey.slice('chunk:'.length)}${'.1'.repeat(i)}${i < pairs.length - 1 ? '.0' : ''}`,
    letters: JSON.stringify([pair]),
  }));
  await table.transact(split.map((one) => ({ kind: 'insert', row: one as never })));
  await table.remove(plan.id, row.rowKey);

  const told = await walk<{ sequenceNumber: string }>(`plans/${plan.id}/letters?top=1`, 'letters');
  expect(told.map(({ sequenceNumber }) => sequenceNumber).sort()).toEqual(numbers.toSorted());
  const listed = await walk<{ sequenceNumber: string }>('sources/paged/letters?top=7', 'letters');
  expect(listed.map(({ sequenceNumber }) => sequenceNumber)).toEqual(numbers);
  expect((await walk<unknown>('groups?top=1', 'groups')).length).toBeGreaterThan(0);
});
