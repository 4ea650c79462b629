/** Whether infra/azuredeploy.json, which the other tests read, is what the Bicep files say. Needs a compiler; fetches none. */
import { expect, test } from 'vitest';
import { guid, uniqueString } from './arm/hash.ts';
import { SCENARIOS } from './catalogs.ts';
import { committed, compile, deployed, versionOf, withoutGenerator } from './compiled.ts';
import { findCompiler } from './compiler.ts';

const compiler = await findCompiler();

test.skipIf(compiler === undefined)('infra/azuredeploy.json is current', async () => {
  if (compiler === undefined) return;
  const template = await compile(compiler);
  if (versionOf(template) === versionOf(committed())) {
    expect(withoutGenerator(template), 'npm run infra -- --write').toEqual(withoutGenerator(committed()));
  }
  // Another version of the compiler may write it differently, but must mean the same.
  for (const { catalog, parameters } of SCENARIOS) {
    expect(deployed(template, catalog, parameters)).toEqual(deployed(committed(), catalog, parameters));
  }
});

// Seen in what `bicep snapshot` predicts.
test('names are hashed as Azure does it', () => {
  const group = '/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-office';
  expect(uniqueString([group, 'dead-letter-office', 'westeurope'])).toBe('xyyhgt6smtdpq');
  expect(guid([group, 'dead-letters'])).toBe('c8a7ae07-d00a-52dc-b42a-83625cf878b3');
});
