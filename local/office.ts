/** The whole office on this machine: storage, broker and app on free ports. Nothing of it outlives `close`. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { AppProcess } from './appProcess.ts';
import type { RightKeys } from './rights.ts';

/** What the office is opened with. */
export interface LocalOptions {
  /** Content of the catalog; `catalog.json` of the repository when absent. */
  readonly catalog?: unknown;
  /** Entities of the broker, in the format of Microsoft's emulator; `local/Config.json` when absent. */
  readonly config?: unknown;
  /** App settings beside those that lead to storage and broker. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lets things go wrong at random in the broker, by this seed. */
  readonly chaos?: number | undefined;
  /** Takes every line that the host, the app and the broker log. */
  readonly log: (line: string) => void;
  /** Gives the start up; what was begun is ended before the rejection. */
  readonly signal: AbortSignal;
}

/** The office, open. */
export interface LocalOffice {
  /** Address of the interface, such as `http://127.0.0.1:40123/api`. */
  readonly url: string;
  /** Address of the host's own routes, such as `http://127.0.0.1:40123/admin`. */
  readonly adminUrl: string;
  /** One key a right, for this opening only. */
  readonly rights: RightKeys;
  /** Opens the host's own routes. */
  readonly masterKey: string;
  /** Connection string of the broker, for any Service Bus client. */
  readonly broker: string;
  /** How often something went wrong at random in the broker so far. */
  faults(): number;
  /** Settles when the app has ended, however it did. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

const ROOT = resolve(import.meta.dirname, '..');

/** Opens the office. Throws what kept a part from starting, after ending the others. */
export async function openLocalOffice(options: LocalOptions): Promise<LocalOffice> {
  const { catalog, config, chaos, log, signal } = options;
  const undo: (() => Promise<unknown>)[] = [];
  const close = async () => {
    // Last opened, first closed: the app must not see its storage go.
    for (let end = undo.pop(); end !== undefined; end = undo.pop()) await end();
  };
  try {
    // Each takes seconds, the first one in a process of its own: side by side they take as long as the slower.
    const starting = [storage(signal), broker(log, config, chaos), import('./rights.ts')] as const;
    undo.push(async () => (await starting[0].catch(() => undefined))?.stop());
    undo.push(async () => (await starting[1].catch(() => undefined))?.close());
    const [store, bus, { keysByRight }] = await Promise.all(starting);
    signal.throwIfAborted();

    const { rights, host } = keysByRight();
    // In the storage's folder, because that goes even when this process is killed. A catalog holds no secrets, keys do.
    const keysFile = await write(store.folder, 'keys.json', host);
    const file =
      catalog === undefined ? join(ROOT, 'catalog.json') : await write(store.folder, 'catalog.json', catalog);
    const settings = {
      AzureWebJobsStorage: store.connectionString(),
      ServiceBusConnection: bus.connectionString,
      DLO_ADMINISTRATION_URL: `http://127.0.0.1:${bus.adminPort}`,
      DLO_CATALOG: file,
      // A laptop's broker answers at once; waiting longer for letters that are not there would only cost time.
      DLO_COLLECT_WAIT_SECONDS: '0.3',
      ...options.settings,
    };
    const app = await startApp({ settings, keysFile, log, signal });
    undo.push(() => app.stop());
    await rm(keysFile); // it has been read, and keys should not lie about
    const [url, adminUrl] = [`${app.url}/api`, `${app.url}/admin`];
    await assertWorking(url);
    const faults = () => bus.chaos?.hits ?? 0;
    const { connectionString } = bus;
    return { url, adminUrl, rights, masterKey: host.master, broker: connectionString, faults, ended: app.ended, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** An app that cannot work serves all the same, to be able to say so. */
async function assertWorking(url: string): Promise<void> {
  const answer = await fetch(`${url}/health`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the office cannot open: ${answer.status} ${text}`);
}

// Loaded when they are wanted, so that storage, which is slowest, starts before the broker's code is read.

async function storage(signal: AbortSignal) {
  const { startAzurite } = await import('./azurite.ts');
  return startAzurite({ signal });
}

async function broker(log: (line: string) => void, config: unknown, seed: number | undefined) {
  const { parseConfig, readConfig, startBroker } = await import('./broker/index.ts');
  const file = join(import.meta.dirname, 'Config.json');
  return startBroker({
    config: config === undefined ? readConfig(await readFile(file, 'utf8')) : parseConfig(config),
    log: (line) => log(`broker: ${line}`),
    ...(seed !== undefined && { chaos: { seed } }),
  });
}

async function startApp(options: {
  settings: Record<string, string>;
  keysFile: string;
  log: (line: string) => void;
  signal: AbortSignal;
}): Promise<AppProcess> {
  const { startApp: start } = await import('./appProcess.ts');
  return start({ root: ROOT, entry: 'functions/index.ts', ...options });
}

async function write(folder: string, name: string, content: unknown): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, JSON.stringify(content), { mode: 0o600 });
  return file;
}
