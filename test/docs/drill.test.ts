import { afterEach, expect, test } from 'vitest';
import { type StartRun, startRun } from '../harness/startRun.ts';
import { notPrinted } from './shown.ts';

let run: StartRun | undefined;
afterEach(() => run?.close());

test('the drill goes as it is told, prints what its page shows, and leaves nothing behind', {
  timeout: 120_000,
}, async () => {
  run = startRun([], {}, 'drill');
  expect(await run.ended, `${run.out()}${run.errors()}`).toBe(0);
  expect(notPrinted('docs/drill.md', 'the office is open', run.out())).toEqual([]);
  expect(await run.leftBehind()).toEqual({ processes: false, files: [] });
});

test('unknown arguments are answered with the usage', async () => {
  run = startRun(['--fast'], {}, 'drill');
  expect(await run.ended).toBe(2);
  expect(run.errors()).toMatch(/^usage: npm run drill/m);
});
