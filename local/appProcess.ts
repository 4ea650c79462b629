/** Runs the app in the local host, in a process of its own, so that its output and its end stay apart from ours. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';

/** What the app is started with. */
export interface AppOptions {
  /** Folder with host.json. */
  readonly root: string;
  /** The app's entry, relative to `root`. */
  readonly entry: string;
  /** App settings; they win over the environment's. */
  readonly settings: Readonly<Record<string, string>>;
  /** File with the host's keys. Read once, before the app is open. */
  readonly keysFile: string;
  /** Takes every line that the host and the app log. */
  readonly log: (line: string) => void;
  /** Gives the start up. */
  readonly signal: AbortSignal;
}

/** The app, serving. */
export interface AppProcess {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Settles when the process has ended, however it did. */
  readonly ended: Promise<void>;
  /** Asks the process to end, and ends it after {@link GRACE_MS} when it has not. */
  stop(): Promise<void>;
}

/** Longest wait for a stop that was asked for, ms. */
const GRACE_MS = 8000;
const readySchema = z.object({ ready: z.literal(true), url: z.string() });

/** Starts the app and waits until it serves. It ends with this process, however this one ends. Throws with what it said. */
export async function startApp(options: AppOptions): Promise<AppProcess> {
  const args = ['--root', options.root, '--entry', options.entry, '--keys', options.keysFile, '--exit-with-parent'];
  const child = spawn(process.execPath, [join(import.meta.dirname, 'host/main.ts'), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...options.settings },
  });
  const ended = once(child, 'close').then(() => {});
  const said: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    if (said.length > 20) said.shift();
    options.log(line);
  });
  const giveUp = () => child.kill('SIGKILL');
  options.signal.addEventListener('abort', giveUp);
  try {
    const url = await readUrl(child);
    options.signal.throwIfAborted();
    return { url, ended, stop: () => stop(child, ended) };
  } catch (error) {
    giveUp();
    await ended;
    options.signal.throwIfAborted();
    throw new Error(`The app did not start:\n${said.join('\n')}`, { cause: error });
  } finally {
    options.signal.removeEventListener('abort', giveUp);
  }
}

async function readUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the app was started without pipes');
  for await (const line of createInterface({ input: child.stdout })) {
    child.stdout.resume(); // nothing else comes, but a full pipe would stop it
    return readySchema.parse(JSON.parse(line)).url;
  }
  throw new Error('it ended before it was open');
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await ended;
  clearTimeout(late);
}
