/**
 * `npm run test:interop`: lets the official .NET client judge the local broker, and a .NET consumer judge what the office
 * sends back. Needs `dotnet`; without it, it says so and ends with 0. Not part of `npm test`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand } from '../../cli/commandLine.ts';
import { type RunningBroker, readConfig, startBroker } from '../../local/broker/index.ts';
import { BODIES, data, fullMessage, messageOf, PROPERTY_VALUES, types } from '../harness/typedMessage.ts';
import { replayAll, sendRaw } from './replay.ts';

const USAGE = `usage: npm run test:interop
  lets the official .NET client judge the local broker; ends with 0 when dotnet is not here`;
const PROJECT = join(import.meta.dirname, 'judge');
const QUEUE = 'letters';
const MATRIX = 'matrix';
/** Telemetry and first-run texts of the tool are none of anybody's business here. */
const ENV = {
  ...process.env,
  DOTNET_NOLOGO: '1',
  DOTNET_CLI_TELEMETRY_OPTOUT: '1',
  DOTNET_SKIP_FIRST_TIME_EXPERIENCE: '1',
};

interface Counts {
  passed: number;
  failed: number;
}

/** Runs `dotnet` and answers its exit code and what it printed; `undefined` when there is no `dotnet`. */
async function dotnet(args: readonly string[]): Promise<{ code: number | null; output: string } | undefined> {
  const child = spawn('dotnet', args, { env: ENV, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, output };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Builds the judge and answers the path of its program. */
async function build(): Promise<string> {
  const out = join(PROJECT, 'bin', 'interop');
  const built = await dotnet(['build', PROJECT, '--nologo', '-v', 'quiet', '-c', 'Release', '-o', out]);
  if (built?.code !== 0) throw new Error(`the judge could not be built:\n${built?.output}`);
  return join(out, 'Judge.dll');
}

/** Runs one mode of the judge, prints its lines and adds up its counts. */
async function judge(program: string, args: readonly string[], counts: Counts): Promise<void> {
  const result = await dotnet([program, ...args]);
  const lines = (result?.output ?? '').trimEnd().split('\n');
  const [, passed, failed] = /^(\d+) passed, (\d+) failed$/.exec(lines.at(-1) ?? '') ?? [];
  for (const line of passed === undefined ? lines : lines.slice(0, -1)) print(line);
  counts.passed += Number(passed ?? 0);
  counts.failed += Number(failed ?? 0);
  // A judge that gave no verdict, or another one than its exit code, has failed as well.
  if (passed === undefined || (result?.code === 0) !== (Number(failed) === 0)) {
    print(`FAILED the judge ended with ${result?.code} and no verdict (${args[0]})`);
    counts.failed++;
  }
}

/** The way of a letter: .NET sends, .NET dead-letters, the office sends back, .NET casts every property. */
async function letter(program: string, broker: RunningBroker, counts: Counts): Promise<void> {
  const { connectionString } = broker;
  await judge(program, ['send', connectionString, QUEUE], counts);
  await judge(program, ['dead-letter', connectionString, QUEUE], counts);
  await check('the office sends it back', counts, () => replayAll(connectionString, QUEUE, 1));
  await judge(program, ['consume', connectionString, QUEUE], counts);
}

/**
 * Every property type and every body shape of AMQP, also those that no .NET client sends: what .NET decodes of the original is
 * what it decodes of the copy. A message for each property, so that one which .NET cannot read hides no other.
 */
async function matrix(program: string, broker: RunningBroker, counts: Counts): Promise<void> {
  const { connectionString } = broker;
  // Two that the client cannot read whatever their value (Azure.Messaging.ServiceBus 7.21: the message never comes), and a
  // character that fits its 16 bits. Judged by decoders of ours they are among the others.
  const { decimal32: _32, decimal64: _64, ...readable } = PROPERTY_VALUES;
  const values = { ...readable, char: types.CharUTF32(0xe9) };
  const properties = Object.entries(values).map(([name, value]) =>
    messageOf({
      properties: [types.Str8(`property ${name}`)],
      applicationProperties: [[name, value]],
      body: [data('body')],
    }),
  );
  const bodies = Object.entries(BODIES).map(([name, body]) => fullMessage(`body: ${name}`, body, values));
  const messages = [...properties, ...bodies];
  const folder = await mkdtemp(join(tmpdir(), 'interop-'));
  try {
    const file = join(folder, 'originals.json');
    const all = [connectionString, MATRIX, String(messages.length), file];
    await check('messages of every type and shape are sent', counts, () => sendRaw(connectionString, MATRIX, messages));
    await judge(program, ['record', ...all], counts);
    await check('the office sends them back', counts, () => replayAll(connectionString, MATRIX, messages.length));
    await judge(program, ['compare', ...all], counts);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function check(what: string, counts: Counts, work: () => Promise<void>): Promise<void> {
  try {
    await work();
    print(`ok ${what}`);
    counts.passed++;
  } catch (error) {
    print(`FAILED ${what}: ${error instanceof Error ? error.stack : String(error)}`);
    counts.failed++;
  }
}

async function main(args: string[]): Promise<number> {
  parseArgs({ args, options: {} });
  const version = await dotnet(['--version']);
  if (version?.code !== 0) {
    print('dotnet is not here: nothing was judged.');
    return 0;
  }
  print(`dotnet ${version.output.trim()}`);
  const program = await build();
  const config = readConfig(await readFile(join(import.meta.dirname, 'Config.json'), 'utf8'));
  const listener = { name: 'listener', key: 'bGlzdGVu', rights: ['Listen'] } as const;
  const broker = await startBroker({ config, sasKeys: [listener] });
  const counts = { passed: 0, failed: 0 };
  try {
    const { connectionString, adminConnectionString } = broker;
    const checks = ['checks', connectionString, adminConnectionString, broker.connectionStringWith(listener.name)];
    await judge(program, checks, counts);
    await letter(program, broker, counts);
    await matrix(program, broker, counts);
  } finally {
    await broker.close();
  }
  print(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = await runCommand(USAGE, process.argv.slice(2), main);
