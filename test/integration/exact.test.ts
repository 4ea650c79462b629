import { afterAll, beforeAll, test } from 'vitest';
import { expectOfficeToBeExact } from '../harness/exact.ts';
import { openTestOffice, PLAIN, type TestOffice } from '../harness/office.ts';

let office: TestOffice;
beforeAll(async () => {
  office = await openTestOffice({
    sources: [
      { name: 'orders' },
      { name: 'without-trigger', trigger: false },
      { name: 'parts', trigger: false, entity: { ...PLAIN, partitioned: true } },
      { name: 'chats', mode: 'observe', entity: { ...PLAIN, requiresSession: true } },
    ],
    queues: { parts: { EnablePartitioning: true }, chats: { RequiresSession: true } },
  });
});
afterAll(() => office?.close());

test.each([
  ['trigger and collecting pass', 'orders'],
  ['the collecting pass alone', 'without-trigger'],
])('what comes back is what died, for every type and every body shape, by %s', async (_by, queue) => {
  await expectOfficeToBeExact(office, queue);
});

test.each([
  ['to a partitioned queue', 'parts', {}],
  ['to a queue of sessions', 'chats', { session: 'session' }],
])('what is sent one by one comes back as it died, too: %s', async (_where, queue, options) => {
  await expectOfficeToBeExact(office, queue, options);
});
