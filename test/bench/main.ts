/**
 * `npm run bench -- <name> [--json]`: measures one thing and tells it beside its goal. A bench is a file `test/bench/<name>.ts`
 * that exports `bench`, a function answering its rows; nothing else has to know of it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { Misused, runCommand } from '../../cli/commandLine.ts';
import type { Row } from './row.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const OTHERS = ['main', 'row'];
const packageSchema = z.object({ version: z.string() });

/** What the figures were measured on. */
function machine() {
  const memory = `${Math.round(totalmem() / 1_073_741_824)} GiB`;
  return { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, memory };
}

/** Versions of what was measured and of what it ran on. */
function versions() {
  const versionOf = (path: string) => packageSchema.parse(JSON.parse(readFileSync(join(ROOT, path), 'utf8'))).version;
  return {
    office: versionOf('package.json'),
    node: process.version.slice(1),
    '@azure/service-bus': versionOf('node_modules/@azure/service-bus/package.json'),
    azurite: versionOf('node_modules/azurite/package.json'),
  };
}

function names(): string[] {
  const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts'));
  return files.map((file) => basename(file, '.ts')).filter((name) => !OTHERS.includes(name));
}

function readArguments(args: string[]): { name: string; json: boolean } {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { json: { type: 'boolean' } } });
  const [name, ...more] = positionals;
  if (name === undefined || more.length > 0) throw new Misused('one name is needed');
  if (!names().includes(name)) throw new Misused(`there is no bench '${name}'`);
  return { name, json: values.json === true };
}

function table(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.map(({ name, value, unit, goal, met }) => {
    const judged = goal === null ? '' : `goal ${goal} ${unit}: ${met ? 'met' : 'NOT MET'}`;
    return `${name.padEnd(width)}  ${`${value} ${unit}`.padEnd(16)}${judged}`.trimEnd();
  });
  return lines.join('\n');
}

async function main(args: string[]): Promise<number> {
  const { name, json } = readArguments(args);
  const { bench } = (await import(`./${name}.ts`)) as { bench: () => Promise<Row[]> };
  const rows = await bench();
  if (json) console.log(JSON.stringify({ machine: machine(), versions: versions(), rows }, null, 2));
  else {
    const { cpu, cores, memory } = machine();
    const parts = Object.entries(versions()).map(([part, version]) => `${part} ${version}`);
    console.log(`${table(rows)}\non ${cpu}, ${cores} cores, ${memory}; ${parts.join(', ')}`);
  }
  return 0;
}

const USAGE = `usage: npm run bench -- <name> [--json]
  names: ${names().join(', ')}`;

process.exitCode = await runCommand(USAGE, process.argv.slice(2), main);
