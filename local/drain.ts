/**
 * `npm run drain -- <source> [--to <queue>] [--catalog <file>] [--dry-run]`
 *
 * Moves every letter that the office holds in a source's dead-letter queue out of it: back to its queue, or to the one
 * named. For leaving the office, or for getting at held letters without it. Ends with 0 when nothing was left.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { readCatalog, type Source } from '../shared/catalog.ts';
import { targetOf } from '../shared/plan/preflight.ts';
import { createServiceBus } from '../shared/serviceBus/index.ts';
import { Misused, runCommand } from './commandLine.ts';
import { type Drained, drain, findHeld, textOf } from './drainQueue.ts';
import { loadSettings } from './host/settings.ts';

const USAGE = `usage: npm run drain -- <source> [--to <queue>] [--catalog <file>] [--dry-run]`;
const DONE = 0;
const LEFT = 1;
const NOT_RUN = 2;
/** Numbers shown for each reason; the rest is counted. */
const SHOWN = 20;

/** Runs the command; gives the exit code. `env` is the environment; local.settings.json in `root` is read under it. */
export async function main(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  say: (line: string) => void,
  root: URL = new URL('../', import.meta.url),
): Promise<number> {
  try {
    return await runCommand(USAGE, args, (own) => run(own, env, say, root), { say, complain: say });
  } catch (error) {
    say(textOf(error));
    return NOT_RUN;
  }
}

async function run(
  args: string[],
  env: Readonly<Record<string, string | undefined>>,
  say: (line: string) => void,
  root: URL,
): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { to: { type: 'string' }, catalog: { type: 'string' }, 'dry-run': { type: 'boolean', default: false } },
  });
  const settings = { ...env };
  await loadSettings(fileURLToPath(root), {}, settings);
  const file = values.catalog ?? settings.DLO_CATALOG;
  const { sources } = readCatalog(file === undefined ? new URL('catalog.json', root) : pathToFileURL(file), settings);
  const source = sources.find(({ name }) => name === positionals[0]);
  if (source === undefined || positionals.length !== 1) {
    throw new Misused(`sources in the catalog: ${sources.map(({ name }) => name).join(', ') || 'none'}`);
  }
  const to = values.to ?? targetOf(source);
  if (to === undefined) {
    say(`"${source.name}" is a subscription: its topic would hand the letters to every other subscription, too.`);
    say('Name a queue with --to, or give the source a forwardQueue or replayQueue in the catalog.');
    return NOT_RUN;
  }
  return move(source, to, values['dry-run'], settings, say);
}

async function move(
  source: Source,
  to: string,
  isDryRun: boolean,
  settings: Readonly<Record<string, string | undefined>>,
  say: (line: string) => void,
): Promise<number> {
  const clock = () => Date.now();
  const broker = createServiceBus({ settings, clock, log: say });
  try {
    const queue = await broker.open(source);
    const { held, active } = await findHeld(queue);
    say(`${source.name}: ${held.length} held letters, to be moved to "${to}".`);
    if (active > 0) say(`${active} letters are not held: they stay, any tool can read them.`);
    if (isDryRun) {
      await (await broker.openTarget(source, to)).close();
      say('The target can be opened. Nothing was changed.');
      return DONE;
    }
    say('While the office runs it goes on holding letters: stop it first, or drain again afterwards.');
    const { partitioned, requiresSession } = source.entity;
    const isOwn = source.of.kind === 'queue' && source.of.queue.toLowerCase() === to.toLowerCase();
    const inBatches = isOwn && !partitioned && requiresSession !== true;
    const progress = (moved: number, of: number) => say(`moved ${moved} of ${of}`);
    const options = { broker, source, to, inBatches, clock, random: randomBytes, wait: pause, progress };
    const drained = await drain(options, queue, held);
    for (const line of report(drained)) say(line);
    return drained.left.size === 0 && drained.perhapsDoubled.length === 0 ? DONE : LEFT;
  } finally {
    await broker.close();
  }
}

async function pause(ms: number): Promise<void> {
  await wait(ms);
}

function report({ planId, moved, overLimit, left, perhapsDoubled }: Drained): string[] {
  const lines = [`Moved ${moved.length} letters; they carry x-replay-id ${planId}.`];
  if (overLimit > 0) lines.push(`${overLimit} of them had been sent back as often as the catalog allows, or more.`);
  for (const [reason, numbers] of left) lines.push(`Left ${numbers.length}, ${reason}: ${some(numbers)}`);
  if (perhapsDoubled.length > 0) {
    lines.push(
      `${perhapsDoubled.length} are still in the dead-letter queue, though the target may have them: ${some(perhapsDoubled)}`,
      'Look in the target before draining again: they would be sent a second time.',
    );
  }
  return lines;
}

function some(numbers: readonly string[]): string {
  const more = numbers.length - SHOWN;
  return `${numbers.slice(0, SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

if (import.meta.main) {
  process.exitCode = await main(process.argv.slice(2), process.env, (line) => process.stdout.write(`${line}\n`));
}
