/**
 * `npm run drain -- <source>`
 *
 * Moves every letter that the office holds in a source's dead-letter queue out of it: back to its queue, or to the one
 * named. For leaving the office, or for getting at held letters without it. It tells first what it would do, with what a plan would
 * find, and does it only with `--yes`.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { DeadLetterQueue } from '../shared/brokers/broker.ts';
import { createServiceBus } from '../shared/brokers/serviceBus/index.ts';
import { readCatalog } from '../shared/catalog.ts';
import { targetOf } from '../shared/plan/preflight.ts';
import { Misused, runCommand } from './commandLine.ts';
import { type Drain, type Drained, drain, findHeld, textOf } from './drainQueue.ts';
import { loadSettings } from './settings.ts';
import { CHOICE_OPTIONS, CHOICE_USAGE, chosenBy, isBlocked, lookAtWayOut, tellWayOut } from './wayOut.ts';

type Say = (line: string) => void;
type Settings = Readonly<Record<string, string | undefined>>;

const USAGE = `usage: npm run drain -- <source> [--to <queue>] [--yes | --dry-run] [--on-duplicate skip|new-id]
                           [--message-id keep|new] [--time-to-live keep|drop|<duration>] [--over-limit]
                           [--catalog <file>]
  --to                                   another queue than the one the letters go back to
${CHOICE_USAGE}
  --catalog                              another catalog than catalog.json
  ends with 0 when all that was asked for is done, 1 when letters were left or may be doubled, 2 when nothing was sent`;
const DONE = 0;
const LEFT = 1;
const NOT_RUN = 2;
/** Numbers shown for each reason; the rest is counted. */
const SHOWN = 20;

/** Runs the command; gives the exit code. `env` is the environment; local.settings.json in `root` is read under it. */
export async function main(
  args: readonly string[],
  env: Settings,
  say: Say,
  root: URL = new URL('../', import.meta.url),
): Promise<number> {
  try {
    return await runCommand(USAGE, args, (own) => run(own, env, say, root), { say, complain: say });
  } catch (error) {
    say(textOf(error));
    return NOT_RUN;
  }
}

async function run(args: string[], env: Settings, say: Say, root: URL): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { to: { type: 'string' }, catalog: { type: 'string' }, ...CHOICE_OPTIONS },
  });
  const chosen = chosenBy(values);
  const settings = { ...env };
  await loadSettings(fileURLToPath(root), {}, settings);
  const file = values.catalog ?? settings.DLO_CATALOG;
  const catalog = readCatalog(file === undefined ? new URL('catalog.json', root) : pathToFileURL(file), settings);
  const { sources } = catalog;
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
  const clock = () => Date.now();
  const broker = createServiceBus({ settings, clock, log: say });
  try {
    const way = await lookAtWayOut(broker, catalog, source, to, chosen);
    const progress = (moved: number, of: number) => say(`moved ${moved} of ${of}`);
    const options = { broker, way, clock, random: randomBytes, wait: pause, progress };
    return await move(options, await broker.open(source), chosen.isTold, say);
  } finally {
    await broker.close();
  }
}

async function move(options: Drain, queue: DeadLetterQueue, isTold: boolean, say: Say): Promise<number> {
  const { way } = options;
  const { held, active, staying, findings } = await findHeld(options, queue);
  say(`${way.source.name}: ${held.length} held letters.`);
  if (active > 0) say(`${active} letters are not held: they stay, any tool can read them.`);
  for (const line of tellWayOut(way, findings)) say(line);
  if (isBlocked(findings)) {
    say('Nothing was sent: what is told as "block" has to be seen to first.');
    return NOT_RUN;
  }
  say(`To be moved to "${way.to}": ${held.length - staying}; to be left: ${staying}.`);
  if (!isTold) {
    say('Nothing was changed. With --yes this is done.');
    return DONE;
  }
  say('While the office runs it goes on holding letters: stop it first, or drain again afterwards.');
  const drained = await drain(options, queue, held);
  for (const line of report(drained)) say(line);
  return drained.left.size === 0 && drained.perhapsDoubled.length === 0 ? DONE : LEFT;
}

async function pause(ms: number): Promise<void> {
  await wait(ms);
}

function report({ planId, moved, renamed, gone, left, perhapsDoubled }: Drained): string[] {
  const lines = [`Moved ${moved.length} letters; they carry x-replay-id ${planId}.`];
  if (renamed > 0) lines.push(`${renamed} of them have a new message id, and the old one in x-original-message-id.`);
  if (gone.length > 0) lines.push(`${gone.length} were gone before their turn: ${some(gone)}`);
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
