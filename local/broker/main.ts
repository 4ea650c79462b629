/**
 * `npm run broker -- --config local/Config.json --port 5672 [--admin-port 5300] [--host 127.0.0.1] [--keys keys.json]
 * [--chaos SEED]`
 *
 * The broker by itself, for any client of Service Bus. Prints the connection string and stays until it is stopped.
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Misused, runCommand } from '../../cli/commandLine.ts';
import { stopSignal } from '../signals.ts';
import { seedOf } from './chaos.ts';
import { parseKeys, type RunningBroker, readConfig, startBroker } from './index.ts';
import { readJsonText } from './jsonText.ts';

const USAGE = `usage: npm run broker -- --config <file> [--port <n>] [--admin-port <n>] [--host <address>] [--keys <file>]
                                  [--chaos <seed>] [--verbose]
  --config      queues and topics, in the format of the Service Bus emulator's Config.json
  --port        where clients connect; default 5672, 0 takes a free one
  --admin-port  where administration clients connect; default 5300 as the emulator, 0 takes a free one
  --host        the address to listen on; default 127.0.0.1
  --keys        a JSON file of shared access keys: [{"name", "key", "rights": ["Manage", "Send", "Listen"], "entity"?}];
                the first is the one that is printed; default: a new one at every start, with all rights
  --chaos       lets things go wrong at random, by this whole number: answers and locks are lost, connections dropped, ...
  --verbose     says when a connection ends in an error`;

const CLOSED = 0;
const FAILED = 1;

interface Options {
  readonly config: string;
  readonly port: number;
  readonly adminPort: number;
  readonly host: string;
  readonly keys: string | undefined;
  readonly seed: number | undefined;
  readonly verbose: boolean;
}

/** The options; throws what is wrong with them. */
function readOptions(args: string[]): Options {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args,
    options: {
      config: text,
      port: text,
      'admin-port': text,
      host: text,
      keys: text,
      chaos: text,
      verbose: { type: 'boolean' },
    },
  });
  const { config, host = '127.0.0.1', keys, verbose = false } = values;
  if (config === undefined) throw new Misused('--config is missing');
  const port = portOf('--port', values.port ?? '5672');
  const adminPort = portOf('--admin-port', values['admin-port'] ?? '5300');
  const seed = values.chaos === undefined ? undefined : seedOf(values.chaos);
  if (values.chaos !== undefined && seed === undefined) throw new Misused(`--chaos: '${values.chaos}' is no seed`);
  return { config, port, adminPort, host, keys, seed, verbose };
}

function portOf(option: string, text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new Misused(`${option}: '${text}' is no port`);
}

/** Reads a file; what goes wrong names it. */
async function readBy<T>(file: string, parse: (text: string) => T): Promise<T> {
  try {
    return parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file}: ${messageOf(error)}`, { cause: error });
  }
}

async function open(options: Options): Promise<RunningBroker> {
  const config = await readBy(options.config, readConfig);
  for (const note of config.notes) complain(`${options.config}: ${note}`);
  const keys =
    options.keys === undefined ? [] : await readBy(options.keys, (text) => parseKeys(readJsonText(text).value));
  const [first, ...sasKeys] = keys;
  const { port, adminPort, host, seed } = options;
  return startBroker({
    config,
    port,
    adminPort,
    host,
    sasKeys,
    ...(first && { sasKey: first }),
    ...(seed !== undefined && { chaos: { seed } }),
    ...(options.verbose && { log: complain }),
  });
}

async function main(args: string[]): Promise<number> {
  const options = readOptions(args);
  const signal = stopSignal();
  let broker: RunningBroker;
  try {
    broker = await open(options);
  } catch (error) {
    complain(messageOf(error));
    return FAILED;
  }
  print(`connection string: ${broker.connectionString}`);
  print(`administration:    ${broker.adminConnectionString}`);
  if (options.seed !== undefined) print(`chaos:             seed ${options.seed}, things go wrong at random`);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await broker.close();
  return CLOSED;
}

const print = (line: string) => void process.stdout.write(`${line}\n`);
const complain = (line: string) => void process.stderr.write(`${line}\n`);

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// A reader that goes away (`npm run broker | head`) is a wish to stop, too.
process.stdout.on('error', () => process.kill(process.pid, 'SIGTERM'));
process.exit(await runCommand(USAGE, process.argv.slice(2), main));
