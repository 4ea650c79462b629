import { afterAll, beforeAll, test } from 'vitest';
import { openTestOffice, type TestOffice } from '../harness/office.ts';
import { expectStory } from '../harness/threeOrders.ts';

let office: TestOffice;
beforeAll(async () => {
  office = await openTestOffice({ sources: [{ name: 'orders' }] });
});
afterAll(() => office?.close());

test('of three orders two come back three times with their own count, the third is left, the fourth plan finds both over the limit', async () => {
  await expectStory(office);
});
