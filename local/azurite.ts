/** Azure Storage on this machine: Azurite's blobs, queues and tables in memory, as a child process on free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface AzuriteOptions {
  /**
   * How many accounts to serve, `test0001` and on with random keys, so that each test can have its own. Without it there is
   * one, the well-known `devstoreaccount1` that storage tools find by themselves.
   */
  accounts?: number;
  /** Fixed ports; each is free (0) by default. */
  blobPort?: number;
  queuePort?: number;
  tablePort?: number;
  /** Gives the start up: the process is ended before the rejection. */
  signal?: AbortSignal;
}

export interface StorageAccount {
  name: string;
  /** Base64, as in a connection string. */
  key: string;
  connectionString: string;
}

export interface Azurite {
  /** Its working folder. Removed with it, even when this process is killed. */
  folder: string;
  accounts: StorageAccount[];
  /** The connection string of an account; of the first one by default. Throws when there is no such account. */
  connectionString(account?: string): string;
  /** An account nobody took before. Throws when all are taken. */
  takeAccount(): StorageAccount;
  /** Ends the process and removes its folder. */
  stop(): Promise<void>;
}

const services = ['Blob', 'Queue', 'Table'] as const;
type Endpoints = Record<(typeof services)[number], string>;

/** Published by Microsoft for every emulator (docs: "Use the Azurite emulator"); no secret. */
const wellKnownKey = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const startLimitMs = 30_000;

/**
 * Starts Azurite and waits until all three services answer. The process dies with this one, however this one dies.
 *
 * @throws Error with Azurite's own words when it does not start, such as for a port that is taken.
 */
export async function startAzurite(options: AzuriteOptions = {}): Promise<Azurite> {
  const location = await mkdtemp(join(tmpdir(), 'azurite-'));
  const secrets = makeAccounts(options.accounts);
  const child = spawnAzurite(location, secrets, options);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL'); // it keeps nothing, and a polite end waits for every idle connection
      await exited;
    }
    await rm(location, { recursive: true, force: true });
  };

  const giveUp = () => child.kill('SIGKILL');
  options.signal?.addEventListener('abort', giveUp);
  let endpoints: Endpoints;
  try {
    endpoints = await readEndpoints(child);
    options.signal?.throwIfAborted();
    // Any answer will do: without credentials it is a refusal.
    await Promise.all(Object.values(endpoints).map((url) => fetch(url).then((answer) => answer.arrayBuffer())));
  } catch (error) {
    await stop();
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', giveUp);
  }

  const accounts = secrets.map(({ name, key }) => ({ name, key, connectionString: connect(endpoints, name, key) }));
  const free = accounts.values();
  return {
    folder: location,
    accounts,
    connectionString: (name = accounts[0]?.name ?? '') => {
      const found = accounts.find((account) => account.name === name);
      if (!found) throw new Error(`Azurite serves no account "${name}".`);
      return found.connectionString;
    },
    takeAccount: () => {
      const next = free.next().value;
      if (!next) throw new Error(`All ${accounts.length} storage accounts are taken; start Azurite with more.`);
      return next;
    },
    stop,
  };
}

function makeAccounts(count: number | undefined): { name: string; key: string }[] {
  if (count === undefined) return [{ name: 'devstoreaccount1', key: wellKnownKey }];
  return Array.from({ length: count }, (_, index) => ({
    name: `test${String(index + 1).padStart(4, '0')}`,
    key: randomBytes(64).toString('base64'),
  }));
}

function spawnAzurite(
  location: string,
  accounts: { name: string; key: string }[],
  options: AzuriteOptions,
): ChildProcess {
  // Node closes the channel to a child when its parent ends, by whatever cause; then the child goes, and tidies up as at any
  // end of its own. Twice: what was under way in a thread while it starts can make the folder anew behind the first.
  // Its telemetry library takes half of its start, and telemetry is off.
  const preload = `
    import { rmSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    registerHooks({
      load: (url, context, next) =>
        url.includes('/node_modules/applicationinsights/')
          ? { format: 'commonjs', source: 'module.exports = {}', shortCircuit: true }
          : next(url, context),
    });
    const forget = () => rmSync(${JSON.stringify(location)}, { recursive: true, force: true });
    process.on('exit', () => {
      forget();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      forget();
    });
    process.on('disconnect', () => process.exit(0));`;
  const script = createRequire(import.meta.url).resolve('azurite/dist/src/azurite.js');
  return spawn(
    process.execPath,
    [
      `--import=data:text/javascript,${encodeURIComponent(preload)}`,
      script,
      ...['--inMemoryPersistence', '--silent', '--disableTelemetry', '--skipApiVersionCheck'],
      ...['--blobPort', String(options.blobPort ?? 0)],
      ...['--queuePort', String(options.queuePort ?? 0)],
      ...['--tablePort', String(options.tablePort ?? 0)],
    ],
    {
      cwd: location,
      env: { ...process.env, AZURITE_ACCOUNTS: accounts.map(({ name, key }) => `${name}:${key}`).join(';') },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  );
}

/** Azurite takes free ports by itself and says on stdout which, even when told to be silent. */
async function readEndpoints(child: ChildProcess): Promise<Endpoints> {
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('Azurite was started without pipes.');
  let output = '';
  stderr.on('data', (chunk) => {
    output += chunk;
  });
  const found: Partial<Endpoints> = {};
  const deadline = setTimeout(() => child.kill('SIGKILL'), startLimitMs);
  try {
    for await (const line of createInterface({ input: stdout })) {
      output += `${line}\n`;
      const match = /Azurite (\w+) service is successfully listening at (\S+)/.exec(line);
      const service = services.find((one) => one === match?.[1]);
      if (service && match?.[2]) found[service] = match[2];
      if (isComplete(found)) {
        stdout.resume(); // a full pipe would stop it
        return found;
      }
    }
  } finally {
    clearTimeout(deadline);
  }
  throw new Error(`Azurite did not start: ${output.trim()}`);
}

function isComplete(found: Partial<Endpoints>): found is Endpoints {
  return services.every((service) => found[service] !== undefined);
}

function connect(endpoints: Endpoints, name: string, key: string): string {
  const urls = services.map((service) => `${service}Endpoint=${endpoints[service]}/${name};`).join('');
  return `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${key};${urls}`;
}
