import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openTestOffice, type TestOffice } from '../harness/office.ts';

let office: TestOffice;
beforeAll(async () => {
  office = await openTestOffice();
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log());
});
afterAll(() => office?.close());

test('letters are held, planned, sent back and come again with their count', async () => {
  await office.send('orders', { messageId: 'msg-1', body: { a: 1 } }, { messageId: 'msg-3', body: { a: 3 } });
  await office.deadLetterAll('orders');
  const letters = await office.held(2);
  expect(letters.map(({ reason }) => reason)).toEqual(['UnsupportedCurrency', 'UnsupportedCurrency']);
  const plan = await office.plan({ selection: { reason: ['UnsupportedCurrency'] } });
  expect(plan).toMatchObject({ state: 'ready', counts: { planned: 2, pending: 2 }, findings: [] });
  const finished = await office.run(plan);
  expect(finished).toMatchObject({ state: 'finished', counts: { done: 2, pending: 0, maybeDuplicate: 0 } });
  expect(office.broker.messages('orders/$DeadLetterQueue')).toEqual([]);
  expect(office.broker.messages('orders')).toHaveLength(2);
});
