/** Whether infra/azuredeploy.json, which the other tests read, is what the Bicep files say. Needs the compiler of
 * that version; fetches none. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
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

describe('npm run infra on a machine without a compiler', () => {
  const empty = mkdtempSync(join(tmpdir(), 'nothing-'));
  afterAll(() => rmSync(empty, { recursive: true }));
  const env = { PATH: empty, HOME: empty, USERPROFILE: empty, XDG_CACHE_HOME: empty, AZURE_CONFIG_DIR: empty };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args], { env, encoding: 'utf8' });

  test('says that there is none, what to do, and ends with 3', () => {
    const { status, stdout } = run();
    expect(stdout).toContain('there is no Bicep compiler, and there is no dotnet to fetch one from NuGet with');
    expect(stdout).toContain('az bicep install');
    expect(status).toBe(3);
  });

  test('says so and ends well when it is told to fetch nothing', () => {
    const { status, stdout } = run('--offline');
    expect(stdout).toContain('nothing was compiled');
    expect(status).toBe(0);
  });

  test('ends with 2 for arguments that it does not know', () => {
    expect(run('--fix').status).toBe(2);
  });
});

// Seen in what `bicep snapshot` predicts.
test('names are hashed as Azure does it', () => {
  const group = '/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-office';
  expect(uniqueString([group, 'dead-letter-office', 'westeurope'])).toBe('xyyhgt6smtdpq');
  expect(guid([group, 'dead-letters'])).toBe('c8a7ae07-d00a-52dc-b42a-83625cf878b3');
});
