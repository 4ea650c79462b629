import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type OfficeProcess, startOfficeProcess } from '../harness/host.ts';
import { aCatalog, anEntry, CONNECTION } from '../harness/values.ts';

let folder: string;
let office: OfficeProcess | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'office-'));
});
afterEach(async () => {
  await office?.stop();
  office = undefined;
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const CATALOG = 'DLO_CATALOG_INVALID';
const OTHER = 'DLO_SETTINGS_INVALID';
const SETTINGS = { ServiceBus: CONNECTION, AzureWebJobsStorage: 'UseDevelopmentStorage=true' };

async function start(catalog: unknown, settings: Record<string, string> = SETTINGS): Promise<OfficeProcess> {
  const file = join(folder, 'catalog.json');
  await writeFile(file, JSON.stringify(catalog));
  office = await startOfficeProcess({ settings: { ...settings, DLO_CATALOG: file }, timers: false });
  return office;
}

const https = CONNECTION.replace('sb://', 'https://');
test.each<[string, unknown, Record<string, string>, string, string]>([
  [
    'a catalog with a wrong field',
    aCatalog({ sources: [anEntry({ mode: 'delete' })] }),
    SETTINGS,
    'sources.0.mode',
    CATALOG,
  ],
  [
    'no connection to the namespace',
    aCatalog(),
    { AzureWebJobsStorage: 'x=y' },
    'ServiceBus__fullyQualifiedNamespace',
    OTHER,
  ],
  [
    'a connection that is none',
    aCatalog(),
    { ...SETTINGS, ServiceBus: https },
    '"ServiceBus" must have an Endpoint',
    OTHER,
  ],
  [
    'a storage that is none',
    aCatalog(),
    { ServiceBus: CONNECTION, AzureWebJobsStorage: 'hello' },
    'AzureWebJobsStorage',
    OTHER,
  ],
  ['a setting that is no number', aCatalog(), { ...SETTINGS, DLO_LEASE_SECONDS: 'long' }, 'DLO_LEASE_SECONDS', OTHER],
])(
  'with %s the app loads, and its only function says why it cannot work',
  async (_what, catalog, settings, why, code) => {
    const { functions, call, log } = await start(catalog, settings);
    expect(functions.map(({ name }) => name)).toEqual(['health']);
    const answer = await call('GET', '/api/health');
    expect(answer.status).toBe(503);
    expect(answer.json).toMatchObject({
      status: 'Unhealthy',
      problems: [expect.stringContaining(why)],
      code,
    });
    expect(answer.text).not.toContain('SharedAccessKey=');
    await expect.poll(log).toContain('the office cannot open: ');
    expect((await call('GET', '/api/sources')).status).toBe(404);
  },
);
