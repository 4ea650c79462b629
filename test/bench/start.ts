/**
 * How long a newcomer waits, from `npm start` until the office is open; and what a start of the deployed app costs, beside that
 * of a function app that does nothing. The two are built alike and loaded in turns, since the machine has other things to do.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { atMost, figure, median, type Row } from './row.ts';
import { buildApps, type Load, load } from './start/measure.ts';

const RUNS = 3;
const LOADS = 15;

export async function bench(): Promise<Row[]> {
  const rows = await ofThePackage();
  const seconds: number[] = [];
  for (let run = 0; run < RUNS; run++) seconds.push(await secondsToOpen());
  return [...rows, atMost(`npm start to open, median of ${RUNS}`, median(seconds), 's', 10)];
}

async function ofThePackage(): Promise<Row[]> {
  const apps = await buildApps();
  try {
    const [office, hello, helloZod]: [Load[], Load[], Load[]] = [[], [], []];
    for (let run = 0; run < LOADS; run++) {
      hello.push(await load(apps.hello));
      helloZod.push(await load(apps.helloZod));
      office.push(await load(apps.office));
    }
    const ms = (loads: Load[]) => median(loads.map((one) => one.ms));
    const megabytes = (loads: Load[]) => median(loads.map(({ rss }) => rss)) / 1e6;
    // Each pair was measured at the same time: their ratio depends less on the machine than the ratio of the medians.
    const ratio = (loads: Load[]) => median(loads.map((one, i) => one.ms / (hello[i] as Load).ms));
    return [
      atMost('package: all files of dist/', apps.office.bytes / 1e6, 'MB', 3),
      figure(`load of hello world, median of ${LOADS}`, ms(hello), 'ms'),
      figure(`load of the office, median of ${LOADS}`, ms(office), 'ms'),
      atMost('load of the office to that of hello world', ratio(office), 'times', 2.5),
      figure('load of hello world with zod to that without', ratio(helloZod), 'times'),
      figure('memory after load, hello world', megabytes(hello), 'MB'),
      figure('memory after load, the office', megabytes(office), 'MB'),
    ];
  } finally {
    await apps.remove();
  }
}

async function secondsToOpen(): Promise<number> {
  const began = performance.now();
  const root = resolve(import.meta.dirname, '../..');
  // A group of its own, so that the Ctrl-C below reaches npm and all it started, as in a terminal.
  const child = spawn('npm', ['start', '--', '--no-story'], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.startsWith('the office is open')) return (performance.now() - began) / 1000;
    }
    throw new Error('npm start ended before the office was open');
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT');
    await ended;
  }
}
