import { afterAll, beforeAll, test } from 'vitest';
import { expectOfficeToBeExact } from '../harness/exact.ts';
import { openTestOffice, type TestOffice } from '../harness/office.ts';

let office: TestOffice;
beforeAll(async () => {
  office = await openTestOffice({ sources: [{ name: 'orders' }, { name: 'without-trigger', trigger: false }] });
});
afterAll(() => office?.close());

test.each([
  ['trigger and collecting pass', 'orders'],
  ['the collecting pass alone', 'without-trigger'],
])('what comes back is what died, for every type and every body shape, by %s', async (_by, queue) => {
  await expectOfficeToBeExact(office, queue);
});
