/** How long a newcomer waits: from `npm start` until the office is open. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { atMost, median, type Row } from './row.ts';

const RUNS = 3;

export async function bench(): Promise<Row[]> {
  const seconds: number[] = [];
  for (let run = 0; run < RUNS; run++) seconds.push(await secondsToOpen());
  return [atMost(`npm start to open, median of ${RUNS}`, median(seconds), 's', 10)];
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
