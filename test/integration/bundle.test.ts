import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Bundle, buildApp } from '../../build.ts';
import { expectOfficeToBeExact } from '../harness/exact.ts';
import { openTestOffice, type TestOffice } from '../harness/office.ts';
import { expectStory } from '../harness/threeOrders.ts';

const repository = resolve(import.meta.dirname, '../..');

/** What is deployed: the bundle, with host.json and catalog.json beside its folder, and no node_modules. */
let root: string;
let bundle: Bundle;
let office: TestOffice;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'office-bundle-'));
  for (const file of ['host.json', 'package.json', 'catalog.json']) cpSync(join(repository, file), join(root, file));
  bundle = await buildApp(join(root, 'dist'));
  office = await openTestOffice({ root, entry: 'dist/main.js', sources: [{ name: 'orders' }, { name: 'exact' }] });
});
afterAll(async () => {
  await office?.close();
  rmSync(root, { recursive: true, force: true });
});

test('the built file tells the story as the sources do', async () => {
  await expectStory(office);
});

test('what the built file sends back is what died, for every type and every body shape', async () => {
  await expectOfficeToBeExact(office, 'exact');
});

test('the built file registers every function of the sources', () => {
  const names = office.process.functions.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['classify-orders', 'collect', 'expire', 'continue', 'watch', 'openapi']),
  );
});

test('the identity library, slow to load, is in the built file and not evaluated when it loads', () => {
  const declarations = readFileSync(bundle.file, 'utf8').match(/^.*\bManagedIdentityCredential = class.*$/gm);
  expect(declarations).toHaveLength(1);
  // Indented: inside the function that a dynamic import calls.
  expect(declarations?.[0]).toMatch(/^\s/);
});
