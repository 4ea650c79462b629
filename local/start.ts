/** `npm start`: opens the whole office on this machine, plays the story on it, and stays open. */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Misused, runCommand } from '../cli/commandLine.ts';
import { seedOf } from './broker/chaos.ts';
import { runToEnd } from './ending.ts';
import type { LocalOffice } from './office.ts';
import { aborted, Stopped } from './signals.ts';

const USAGE = `usage: npm start -- [--once | --no-story | --chaos <seed>] [--verbose]
  --once      ends after the story: 0 when all was as told
  --no-story  only opens the office
  --chaos     opens it on a broker in which things go wrong at random, by this whole number; tells no story
  --verbose   shows the log of host, app and broker`;

interface Options {
  readonly once: boolean;
  readonly story: boolean;
  /** Seed of what goes wrong in the broker. */
  readonly chaos: number | undefined;
  readonly verbose: boolean;
}

/** Throws for options that are not known, or that do not go together. */
function readOptions(args: string[]): Options {
  const flag = { type: 'boolean' } as const;
  const options = { once: flag, 'no-story': flag, chaos: { type: 'string' }, verbose: flag } as const;
  const { values } = parseArgs({ args, options });
  const chaos = values.chaos === undefined ? undefined : seedOf(values.chaos);
  if (values.chaos !== undefined && chaos === undefined) throw new Misused(`--chaos: '${values.chaos}' is no seed`);
  // The story says what happens; under chaos nobody can. Without it, --once would have nothing to wait for.
  const story = values['no-story'] !== true && chaos === undefined;
  if (values.once && !story) throw new Misused('--once ends after the story, and with the other options none is told');
  return { once: values.once === true, story, chaos, verbose: values.verbose === true };
}

const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Opens the office, tells the story, waits for the end. Throws what went wrong, or the signal's reason. */
async function run(options: Options, signal: AbortSignal, log: (line: string) => void): Promise<void> {
  const { openLocalOffice } = await import('./office.ts');
  const { withShortRetention } = await import('./story/retention.ts');
  const catalog: unknown = JSON.parse(await readFile(new URL('../catalog.json', import.meta.url), 'utf8'));
  const { story, chaos } = options;
  const office = await openLocalOffice({ catalog: story ? withShortRetention(catalog) : catalog, chaos, log, signal });
  try {
    print(`the office is open: ${office.url} (after ${(performance.now() / 1000).toFixed(1)} s)`);
    if (chaos !== undefined) {
      print(
        `Its broker runs under chaos, seed ${chaos}: some sends are refused or throttled, answers and locks are lost,`,
      );
      print('connections drop, deliveries pause. No story is told, as nobody knows how it would go.');
    }
    const ended = Promise.race([appEnded(office), aborted(signal)]);
    if (story) {
      const { tellStory } = await import('./story.ts');
      await Promise.race([tellStory(office, print), ended]);
      print('\nAll of this was checked while it was told.');
    }
    if (options.once) return;
    const { farewell } = await import('./story/farewell.ts');
    for (const line of farewell(office)) print(line);
    await ended.catch((error: unknown) => {
      if (!(error instanceof Stopped)) throw error; // being stopped is how an open office ends
    });
    if (chaos !== undefined) print(`Under chaos, seed ${chaos}, something went wrong ${office.faults()} times.`);
  } finally {
    await office.close();
  }
}

async function appEnded(office: LocalOffice): Promise<never> {
  await office.ended;
  throw new Error('the app ended by itself');
}

async function main(args: string[]): Promise<number> {
  const options = readOptions(args);
  return runToEnd((signal, log) => run(options, signal, log), options.verbose);
}

process.exit(await runCommand(USAGE, process.argv.slice(2), main));
