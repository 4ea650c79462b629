import { afterAll, beforeAll, test } from 'vitest';
import { expectArticle } from '../harness/article.ts';
import { openTestOffice, type TestOffice } from '../harness/office.ts';

let office: TestOffice;
beforeAll(async () => {
  office = await openTestOffice({ sources: [{ name: 'orders' }] });
});
afterAll(() => office?.close());

test('the article: two come back three times with their own count, the third is left, the fourth plan finds both over the limit', async () => {
  await expectArticle(office);
});
