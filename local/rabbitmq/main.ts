/**
 * `npm run rabbitmq [-- <command> …]`
 *
 * Starts a RabbitMQ server of each version, installing what is missing, and stays until it is stopped; with a command, runs
 * that with `DLO_TEST_RABBITMQ` set, and ends when it does.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { Misused, runCommand } from '../../cli/commandLine.ts';
import { stopSignal } from '../signals.ts';
import { install, VERSIONS } from './install.ts';
import { type RabbitMqServer, startRabbitMq } from './server.ts';

const USAGE = `usage: npm run rabbitmq [-- <command> …]
  Starts a RabbitMQ server of each version that can be had here (${VERSIONS.join(', ')}) on free ports of 127.0.0.1, with data that is
  gone when it stops. What is missing is installed from Debian's packages, which needs root. Without a command it stays until
  it is stopped; a command is run with DLO_TEST_RABBITMQ set to the servers' addresses, and its exit code is given back.
  Example: npm run rabbitmq -- npm test`;

const FAILED = 1;

const print = (line: string) => void process.stdout.write(`${line}\n`);
const complain = (line: string) => void process.stderr.write(`${line}\n`);

/** Starts one server after the other; tells of those that cannot be had. */
async function startAll(signal: AbortSignal): Promise<RabbitMqServer[]> {
  const servers: RabbitMqServer[] = [];
  for (const version of VERSIONS) {
    if (signal.aborted) break;
    const installed = await install(version, (line) => complain(`RabbitMQ ${version}: ${line}`));
    if ('why' in installed) complain(`RabbitMQ ${version}: left out: ${installed.why}`);
    else servers.push(await startRabbitMq(installed));
  }
  return servers;
}

/** Runs a command with the servers' addresses and gives its exit code. */
async function runWith(
  servers: readonly RabbitMqServer[],
  [program = '', ...args]: readonly string[],
): Promise<number> {
  const env = {
    ...process.env,
    DLO_TEST_RABBITMQ: servers.map(({ url, managementUrl }) => `${url},${managementUrl}`).join(' '),
  };
  const child = spawn(program, args, { env, stdio: 'inherit' });
  const [code, name] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (name === null ? 0 : constants.signals[name]);
}

async function play(args: readonly string[]): Promise<number> {
  if (args[0]?.startsWith('-')) throw new Misused(`Unknown option '${args[0]}'`);
  const signal = stopSignal();
  const servers = await startAll(signal);
  try {
    if (servers.length === 0) return FAILED;
    for (const { version, url, managementUrl } of servers)
      print(`RabbitMQ ${version}: ${url} (management ${managementUrl})`);
    if (args.length > 0) return await runWith(servers, args);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return 0;
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

const given = process.argv.slice(2);
// What follows the first word belongs to the command that is run.
process.exit(await runCommand(USAGE, given.slice(0, 1), () => play(given)));
