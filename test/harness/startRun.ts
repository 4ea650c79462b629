/** Runs a command of `local/` as a newcomer does, in a process group and a temporary folder of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { until } from './office.ts';

export interface StartRun {
  /** All that was printed so far. */
  out(): string;
  errors(): string;
  /** Waits until a line of the output begins so. */
  line(beginning: string): Promise<void>;
  /** What is in its temporary folder. */
  files(): string[];
  /** Sends a signal to every process of the group, as a terminal does, or to the first one alone. */
  signal(name: NodeJS.Signals, to: 'group' | 'first'): void;
  /** The exit code of the first process; null when a signal ended it. */
  ended: Promise<number | null>;
  /** Waits for the end of the first process, then says which processes and files are still there when none should be. */
  leftBehind(): Promise<{ processes: boolean; files: string[] }>;
  /** Ends whatever is left. */
  close(): void;
}

/** Starts `local/start.ts`, or another command there. */
export function startRun(
  args: readonly string[],
  env: Record<string, string> = {},
  command: 'start' | 'drill' = 'start',
): StartRun {
  const script = resolve(import.meta.dirname, `../../local/${command}.ts`);
  const folder = mkdtempSync(join(tmpdir(), 'start-'));
  const child = spawn(process.execPath, [script, ...args], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env, TMPDIR: folder },
  });
  const text = { out: '', errors: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text.out += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    text.errors += chunk;
  });
  const group = -(child.pid ?? Number.NaN);
  const isAlive = () => {
    try {
      return process.kill(group, 0);
    } catch {
      return false;
    }
  };
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    out: () => text.out,
    errors: () => text.errors,
    line: async (beginning) => {
      const look = () => text.out.split('\n').some((line) => line.startsWith(beginning)) || undefined;
      await until(look, `the line "${beginning}" in:\n${text.out}${text.errors}`, 60_000);
    },
    files: () => readdirSync(folder),
    signal: (name, to) => void process.kill(to === 'group' ? group : -group, name),
    ended,
    leftBehind: async () => {
      await ended;
      // Children of a killed process notice it a moment later.
      await until(() => !isAlive() || undefined, 'its processes to end', 15_000).catch(() => {});
      return { processes: isAlive(), files: readdirSync(folder) };
    },
    close: () => {
      if (isAlive()) process.kill(group, 'SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
