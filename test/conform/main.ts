/**
 * `npm run conform -- ["<connection string>"] [--name "Azure Standard, westeurope"] [--entities entities.json] [--only B07] [--dry-run]`
 *
 * Tests what the office believes of Service Bus and writes `docs/conformance.md`. Without a connection string it takes
 * the local broker. Ends with 0 when nothing failed.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { MISUSED, Misused, runCommand } from '../../cli/commandLine.ts';
import type { Belief } from './belief.ts';
import { BELIEFS } from './beliefs/index.ts';
import { configOf } from './emulatorConfig.ts';
import { pageOf } from './page.ts';
import { readResults, withRun, writeResults } from './record.ts';
import { type Outcome, runBeliefs } from './run.ts';
import { SHAPES, type ShapeName } from './shapes.ts';
import type { Target } from './target.ts';
import { localTarget } from './targets/local.ts';
import { readNamed } from './targets/named.ts';
import { remoteTarget } from './targets/remote.ts';

const USAGE = `usage: npm run conform -- ["<connection string>"] [--name <text>] [--entities <file>] [--only <ids>] [--admin-port <n>] [--dry-run]
       npm run conform -- --emulator-config`;
const DOCS = new URL('../../docs/', import.meta.url);
const FAILED = 1;
/** What Microsoft's emulator has no setting for. */
const NOT_ON_EMULATOR: readonly ShapeName[] = ['partitioned', 'sendDisabled'];

async function main(args: readonly string[]): Promise<number> {
  const text = { type: 'string' } as const;
  const options = {
    name: text,
    entities: text,
    only: text,
    'admin-port': text,
    'dry-run': { type: 'boolean' },
    'emulator-config': { type: 'boolean' },
  } as const;
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options });
  if (values['emulator-config']) {
    const shapes = (Object.keys(SHAPES) as ShapeName[]).filter((shape) => !NOT_ON_EMULATOR.includes(shape));
    say(JSON.stringify(configOf(shapes), undefined, 2));
    return 0;
  }
  const beliefs = chosen(values.only);
  const [connectionString] = positionals;
  if (beliefs.length === 0) throw new Misused(`--only: no belief is called ${values.only}`);
  if (positionals.length > 1) throw new Misused('only one connection string is possible');
  const target =
    connectionString === undefined
      ? localTarget()
      : await remoteTarget({
          connectionString,
          name: values.name,
          named: values.entities === undefined ? undefined : await readNamed(values.entities),
          adminPort: values['admin-port'] === undefined ? undefined : Number(values['admin-port']),
          say,
        });
  const outcomes = await runBeliefs(target, beliefs, tell);
  await target.close();
  const written = values['dry-run'] ? 'nothing written' : 'written to docs/conformance.md';
  if (!values['dry-run'])
    await write(target, new Map([...outcomes].map(([id, outcome]) => [id, withoutSecrets(outcome, connectionString)])));
  const failed = [...outcomes.values()].filter(({ outcome }) => outcome === 'failed').length;
  say(`${outcomes.size} beliefs, ${failed} failed; ${written}`);
  return failed > 0 ? FAILED : 0;
}

function chosen(only: string | undefined): readonly Belief[] {
  if (only === undefined) return BELIEFS;
  const ids = only.toUpperCase().split(',');
  return BELIEFS.filter(({ id }) => ids.includes(id));
}

function tell({ id, belief }: Belief, outcome: Outcome, ms: number): void {
  const more = 'seen' in outcome ? `\n    ${outcome.seen}` : 'why' in outcome ? `\n    ${outcome.why}` : '';
  const word = { passed: 'passed', failed: 'FAILED', 'not-checkable': 'not checkable here' }[outcome.outcome];
  say(`${id} ${word} (${(ms / 1000).toFixed(1)} s) ${belief}${more}`);
}

async function write(target: Target, outcomes: ReadonlyMap<string, Outcome>): Promise<void> {
  const file = new URL('conformance.json', DOCS);
  const { version } = JSON.parse(await readFile(new URL('../package.json', DOCS), 'utf8')) as { version: string };
  const run = { on: new Date().toISOString().slice(0, 10), target: target.name, version };
  const results = withRun(await readResults(file), target.column, outcomes, run);
  await writeResults(file, results);
  await writeFile(new URL('conformance.md', DOCS), pageOf(BELIEFS, results));
}

/** What the broker said, without the namespace's name and the ids of one request: the page is public. */
function withoutSecrets(outcome: Outcome, connectionString: string | undefined): Outcome {
  const host = /Endpoint=sb:\/\/([^/;:]+)/.exec(connectionString ?? '')?.[1];
  const clean = (text: string) =>
    text
      .replaceAll(host ?? '\u0000', '<namespace>')
      .replaceAll(/(Reference|TrackingId|SystemTracker|Timestamp)\s*:\s*[^,\s']+,?\s*/g, '')
      .replaceAll(/SharedAccessKey=[^;\s]+/g, 'SharedAccessKey=…');
  if ('seen' in outcome) return { ...outcome, seen: clean(outcome.seen) };
  if ('why' in outcome) return { ...outcome, why: clean(outcome.why) };
  return outcome;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

try {
  process.exitCode = await runCommand(USAGE, process.argv.slice(2), main);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = MISUSED;
}
