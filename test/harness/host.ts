/** Runs an app in the local host, in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { FunctionInfo, HostKeys } from '../../local/host/index.ts';

const repository = resolve(import.meta.dirname, '../..');

export interface OfficeProcessOptions {
  /** Default `functions/index.ts`. */
  entry?: string;
  /** Default: the repository. */
  root?: string;
  /** App settings, such as connection strings. */
  settings?: Record<string, string>;
  /** Random by default. */
  keys?: HostKeys;
  /** Path of the Node.js that it runs on; default: that of the tests. */
  node?: string;
  /** Options of Node.js itself. */
  nodeOptions?: string[];
  /** False: timers run only through `run`. */
  timers?: boolean;
}

export interface CallOptions {
  /** Sent as `x-functions-key`. */
  key?: string;
  /** A string or bytes go as they are, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed text; undefined when it is not JSON. Tests say what they expect in it. */
  json: unknown;
}

export interface OfficeProcess {
  url: string;
  keys: HostKeys;
  functions: FunctionInfo[];
  process: ChildProcess;
  /** Calls `path` (such as `/api/health`). */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Runs a function that is not HTTP, to its end; throws with its error. */
  run(functionName: string, input?: unknown): Promise<void>;
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>;
  /** Asks the process to stop and waits; answers its exit code. */
  stop(): Promise<number | null>;
  /** All that the host and the app logged so far. */
  log(): string;
}

/**
 * Starts the app and waits until it serves. The process ends with this one if a test forgets it.
 *
 * @throws Error with the host's log when the app does not load.
 */
export async function startOfficeProcess(options: OfficeProcessOptions = {}): Promise<OfficeProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'office-'));
  try {
    const settings = join(folder, 'settings.json');
    await writeFile(settings, JSON.stringify(options.settings ?? {}), { mode: 0o600 });
    const args = ['--settings', settings, '--exit-with-parent'];
    args.push('--root', resolve(repository, options.root ?? '.'), '--entry', options.entry ?? 'functions/index.ts');
    if (options.timers === false) args.push('--no-timers');
    if (options.keys) {
      const keys = join(folder, 'keys.json');
      await writeFile(keys, JSON.stringify(options.keys), { mode: 0o600 });
      args.push('--keys', keys);
    }
    return await spawnHost(args, options);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function spawnHost(args: string[], { node, nodeOptions = [] }: OfficeProcessOptions): Promise<OfficeProcess> {
  const child = spawn(node ?? process.execPath, [...nodeOptions, join(repository, 'local/host/main.ts'), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    log += chunk;
  });
  const exited = once(child, 'close') as Promise<[number | null]>;
  const ready = await readReady(child);
  if (!ready) {
    await exited;
    throw new Error(`The app did not start:\n${log}`);
  }

  const call = async (method: string, path: string, { key, body, headers }: CallOptions = {}): Promise<Answer> => {
    const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array;
    const answer = await fetch(`${ready.url}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        ...(isRaw ? {} : { 'content-type': 'application/json' }),
        ...(key ? { 'x-functions-key': key } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, json: parse(text) };
  };
  return {
    url: ready.url,
    keys: ready.keys,
    functions: ready.functions,
    process: child,
    call,
    run: async (name, input) => {
      const headers = { 'x-wait': '1' };
      const path = `/admin/functions/${name}`;
      const answer = await call('POST', path, { key: ready.keys.master, headers, body: { input } });
      if (answer.status !== 202) throw new Error(`Function "${name}" failed (${answer.status}): ${answer.text}`);
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    stop: async () => {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
    log: () => log,
  };
}

interface ReadyLine {
  url: string;
  keys: HostKeys;
  functions: FunctionInfo[];
}

async function readReady(child: ChildProcess): Promise<ReadyLine | undefined> {
  if (!child.stdout) return undefined;
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line) as ReadyLine;
  return undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
