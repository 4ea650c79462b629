/** The package as it is built: on every Node.js it promises, on one that is too old, and with files missing. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildApp } from '../../build.ts';
import { type OfficeProcess, startOfficeProcess } from '../harness/host.ts';
import { openTestOffice } from '../harness/office.ts';
import { nodeOf, WANTED } from '../harness/runtimes.ts';
import { CONNECTION } from '../harness/values.ts';

const repository = resolve(import.meta.dirname, '../..');
const OLDEST = Number(/\d+/.exec(JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')).engines.node)?.[0]);
const TOO_OLD = 20;
const SETTINGS = {
  ServiceBusConnection: CONNECTION,
  ServiceBus: CONNECTION,
  AzureWebJobsStorage: 'UseDevelopmentStorage=true',
};

let root: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'office-package-'));
  for (const file of ['host.json', 'package.json', 'catalog.json']) cpSync(join(repository, file), join(root, file));
  await buildApp(join(root, 'dist'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('what is tried is what package.json promises, and the version before it', () => {
  expect(WANTED.filter((major) => major >= OLDEST)).toEqual([22, 24]);
  expect(OLDEST).toBe(22);
  expect(TOO_OLD).toBeLessThan(OLDEST);
});

describe.for([22, 24])('on Node.js %i', (major) => {
  const node = nodeOf(major);
  test.skipIf(node === undefined)('the package starts and replays', async () => {
    const office = await openTestOffice({ root, entry: 'dist/main.js', ...(node !== undefined && { node }) });
    try {
      await office.deadLetters(3);
      const finished = await office.run(await office.plan());
      expect(finished).toMatchObject({ state: 'finished', counts: { done: 3, maybeDuplicate: 0 } });
      expect(office.broker.messages('orders')).toHaveLength(3);
      expect(office.broker.messages('orders/$DeadLetterQueue')).toEqual([]);
      expect((await office.call('probe', 'GET', 'health')).status).toBe(200);
    } finally {
      await office.close();
    }
  });
});

test.skipIf(nodeOf(TOO_OLD) === undefined)(
  'on a Node.js that is too old the package loads, and /health says so',
  async () => {
    const script = join(repository, 'test/bench/start/load.cjs');
    const args = [script, join(root, 'dist/main.js'), 'health'];
    const { stdout } = await promisify(execFile)(nodeOf(TOO_OLD) ?? '', args, { env: SETTINGS });
    const { functions, files, health } = JSON.parse(stdout.slice(stdout.indexOf('{')));
    expect(functions).toEqual(['health']);
    // Nothing is loaded that such a version might not know.
    expect(files.toSorted()).toEqual(['azureFunctions.js', 'main.js', 'unhealthy.js']);
    expect(health).toMatchObject({
      status: 503,
      jsonBody: {
        status: 'Unhealthy',
        code: 'DLO_NODE_TOO_OLD',
        problems: [expect.stringMatching(/^this is Node.js 20\..* 22 or newer/)],
      },
    });
  },
);

describe('a package that lacks a file names it', () => {
  let office: OfficeProcess | undefined;
  const without = async (part: RegExp) => {
    const folder = mkdtempSync(join(tmpdir(), 'office-part-'));
    cpSync(root, folder, { recursive: true });
    const file = readdirSync(join(folder, 'dist')).find((name) => part.test(name)) ?? '';
    rmSync(join(folder, 'dist', file));
    try {
      office = await startOfficeProcess({ root: folder, entry: 'dist/main.js', settings: SETTINGS, timers: false });
      const key = office.keys.master;
      return {
        file,
        health: await office.call('GET', '/api/health'),
        sources: await office.call('GET', '/api/sources', { key }),
      };
    } finally {
      await office?.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  };

  test.each([
    ['of the start', /^start\.js$/],
    ['of the work', /^work-.*\.js$/],
    ['of the store', /^tableClient-.*\.js$/],
  ])('%s', async (_what, part) => {
    const { file, health, sources } = await without(part);
    expect(health.status).toBe(503);
    expect(health.json).toMatchObject({ status: 'Unhealthy', problems: [`the package lacks the file "${file}"`] });
    if (file === 'start.js') return;
    expect(sources).toMatchObject({
      status: 503,
      json: { code: 'DLO_PACKAGE_INCOMPLETE', detail: expect.stringContaining(file) },
    });
  });
});

test('a mistake of the program halts a run with its own words, and touches no letter', async () => {
  // As on a Node.js that does not have it, under the part that locks letters.
  const office = await openTestOffice({ nodeOptions: ['--import', 'data:text/javascript,delete Map.groupBy'] });
  try {
    await office.deadLetters(2);
    const plan = await office.plan();
    await office.post(`plans/${plan.id}/run`, { confirm: 2 }, 'replay', { prefer: 'wait=5' });
    const halted = await office.finished(plan.id, ['halted']);
    expect(halted.stateReason).toBe('a mistake of the program: TypeError: Map.groupBy is not a function');
    expect(halted.counts).toMatchObject({ pending: 2, done: 0, maybeDuplicate: 0 });
    expect(office.broker.messages('orders')).toEqual([]);
    expect(await office.letters()).toHaveLength(2);
    expect(office.process.log()).toMatch(/a mistake of the program: TypeError: Map.groupBy.*\n\s+at /);
    // It holds nothing: the source is free for what comes next.
    await office.post(`plans/${plan.id}/cancel`, {});
  } finally {
    await office.close();
  }
});

test('a mistake in what is done before a run ends halts it as well, and its letters are not sent again unknown', async () => {
  const letters = pathToFileURL(join(repository, 'shared/store/letters.ts'));
  const broken = `import { LetterStore } from ${JSON.stringify(letters.href)};
    LetterStore.prototype.markMaybeSent = LetterStore.prototype.close = (_, { length }) => length && null.length;`;
  const office = await openTestOffice({
    nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(broken)}`],
  });
  try {
    await office.deadLetters(1);
    const plan = await office.plan();
    await office.call('replay', 'POST', `plans/${plan.id}/run`, { confirm: 1 });
    const halted = await office.finished(plan.id, ['halted']);
    expect(halted.stateReason).toMatch(/^a mistake of the program: TypeError: Cannot read properties of null/);
    expect(office.broker.messages('orders')).toHaveLength(1);
    // It marked nothing, so the next plan has to look at what it has begun.
    const next = await office.plan();
    expect(await office.call('replay', 'POST', `plans/${next.id}/run`, { confirm: 1 })).toMatchObject({ status: 409 });
    expect(office.broker.messages('orders')).toHaveLength(1);
  } finally {
    await office.close();
  }
});
