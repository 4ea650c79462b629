import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ContainerClient } from '@azure/storage-blob';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Bundle, buildApp } from '../../build.ts';
import { ROUTE_TABLE } from '../../functions/routeTable.ts';
import { ARCHIVE_CONTAINER } from '../../shared/store/archive.ts';
import { load } from '../bench/start/measure.ts';
import { expectOfficeToBeExact } from '../harness/exact.ts';
import { type Ingestion, openIngestion } from '../harness/ingestion.ts';
import { openTestOffice, type TestOffice, until } from '../harness/office.ts';
import { expectStory } from '../harness/threeOrders.ts';

const repository = resolve(import.meta.dirname, '../..');

/** What is deployed: the bundle, with host.json and catalog.json beside its folder, and no node_modules. */
let root: string;
let bundle: Bundle;
let office: TestOffice;
let ingestion: Ingestion;
/** Gives tokens as the platform does to an app with a managed identity. */
const asked: URL[] = [];
const identity = createServer((request, response) => {
  asked.push(new URL(request.url ?? '', 'http://identity'));
  const expires_on = Math.floor(Date.now() / 1000) + 86_400;
  const token = { access_token: 'token-of-the-identity', expires_on, token_type: 'Bearer', resource: 'x' };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
});

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'office-bundle-'));
  for (const file of ['host.json', 'package.json', 'catalog.json']) cpSync(join(repository, file), join(root, file));
  bundle = await buildApp(join(root, 'dist'));
  ingestion = await openIngestion();
  await new Promise<void>((listening) => identity.listen(0, '127.0.0.1', listening));
  office = await openTestOffice({
    root,
    entry: 'dist/main.js',
    sources: [{ name: 'orders' }, { name: 'exact' }, { name: 'thrown', archive: true }],
    settings: {
      ...ingestion.settings,
      APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=client-of-telemetry;Authorization=AAD',
      IDENTITY_ENDPOINT: `http://127.0.0.1:${(identity.address() as AddressInfo).port}/token`,
      IDENTITY_HEADER: 'secret of the platform',
    },
  });
});
afterAll(async () => {
  await office?.close();
  await ingestion?.close();
  identity.close();
  rmSync(root, { recursive: true, force: true });
});

test('the built file tells the story as the sources do', async () => {
  await expectStory(office);
});

test('what the built file sends back is what died, for every type and every body shape', async () => {
  await expectOfficeToBeExact(office, 'exact');
});

test('the built file archives what it discards', async () => {
  await office.deadLetters(2, 'thrown');
  const plan = await office.plan({ action: 'discard' }, 'thrown');
  await office.post(`plans/${plan.id}/discard`, { confirm: 2 }, 'discard', { prefer: 'wait=20' });
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 2 });
  const names: string[] = [];
  for await (const { name } of new ContainerClient(office.storage, ARCHIVE_CONTAINER).listBlobsFlat()) names.push(name);
  expect(names).toHaveLength(2);
});

test('the built file registers every function of the sources', () => {
  const names = office.process.functions.map(({ name }) => name);
  const others = [
    'classify-orders',
    'classify-exact',
    'classify-thrown',
    'collect',
    'reconcile',
    'expire',
    'continue',
    'watch',
  ];
  expect(names.toSorted()).toEqual([...others, ...ROUTE_TABLE.map(({ name }) => name)].toSorted());
});

test('telemetry is loaded from the package, and publishes by the identity whose library is in it too', async () => {
  await until(() => ingestion.events('RunFinished').length > 0 || undefined, 'the end of a run to be told');
  expect(ingestion.authorizations).toContain('Bearer token-of-the-identity');
  const [question] = asked;
  expect(question?.searchParams.get('client_id')).toBe('client-of-telemetry');
  expect(ingestion.sum('dlo.letters.removed', { source: 'orders', fate: 'replayed' })).toBeGreaterThan(0);
});

test('every built file is needed: it is asked for by another, or is where it begins', () => {
  const built = bundle.files;
  const texts = built.map((name) => readFileSync(join(root, 'dist', name), 'utf8')).join('\n');
  for (const name of built) {
    if (name !== 'main.js' && name !== 'package.json') expect(texts).toContain(`("./${name}")`);
  }
});

test('a start loads neither the libraries nor the work: they are in files of their own', async () => {
  const { files, bytes } = bundle;
  expect(bytes).toBeLessThan(3_000_000);
  const loaded = await load(bundle);
  expect(loaded.functions).toEqual(expect.arrayContaining(['collect', 'openapi']));
  const parts = [
    'work',
    'live',
    'tableClient',
    'queueClient',
    'identity',
    'administrationClient',
    'applicationInsights',
  ];
  for (const part of parts) {
    expect(files.filter((name) => name.startsWith(`${part}-`))).toHaveLength(1);
    expect(loaded.files.filter((name) => name.startsWith(`${part}-`))).toEqual([]);
  }
  const size = loaded.files.reduce((sum, name) => sum + statSync(join(root, 'dist', name)).size, 0);
  expect(size).toBeLessThan(bytes / 4);
});

test('stacks of the built files name the functions and the lines', () => {
  const work = bundle.files.find((name) => name.startsWith('work-')) ?? '';
  const text = readFileSync(join(root, 'dist', work), 'utf8');
  expect(text).toMatch(/^async function collectAll\(office\) \{$/m);
});
