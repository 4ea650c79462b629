/** Whether infra/azuredeploy.json, which the other tests read, is what the Bicep files say. Needs the compiler of
 * that version; fetches none. */
import { expect, test } from 'vitest';
import { guid, uniqueString } from './arm/hash.ts';
import { committed, compile, withoutGenerator } from './compiled.ts';
import { BICEP_VERSION, findCompiler } from './compiler.ts';

const compiler = await findCompiler();

// Another version may write the same differently; `npm run infra` compares what it means.
test.skipIf(compiler?.version !== BICEP_VERSION)(
  'infra/azuredeploy.json is current',
  async () => {
    if (compiler === undefined) return;
    expect(withoutGenerator(await compile(compiler)), 'npm run infra -- --write').toEqual(
      withoutGenerator(committed()),
    );
    // Seconds, but of both cores: other tests may have them.
  },
  300_000,
);

// Seen in what `bicep snapshot` predicts.
test('names are hashed as Azure does it', () => {
  const group = '/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-office';
  expect(uniqueString([group, 'dead-letter-office', 'westeurope'])).toBe('xyyhgt6smtdpq');
  expect(guid([group, 'dead-letters'])).toBe('c8a7ae07-d00a-52dc-b42a-83625cf878b3');
});
