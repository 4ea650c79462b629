/**
 * `npm run soak -- [--runs 200] [--seed 1] [--family single|contest]`, `npm run soak -- --large [--letters 100000]`
 *
 * Random runs over the whole office while the app is killed again and again; afterwards nothing may be lost, doubled
 * without a mark, hidden, or left locked. `single`: one plan over the letters of a source. `contest`: several over the same ones,
 * in sources that make it hard. Without `--family` every other office is of either kind. `--large` prepares a plan over very many recorded letters instead.
 * Ends with 0 when all is as it must be, else with 1 and the seed that shows it.
 */
import { parseArgs } from 'node:util';
import { Misused, runCommand } from '../../cli/commandLine.ts';
import { startAzurite } from '../../local/azurite.ts';
import { withHeap } from '../harness/heap.ts';
import { prepareLarge } from './large.ts';
import { CONTEST, HARD, type Result, ROUND, SINGLE, type SoakOptions, soak } from './soak.ts';

/** Runs in one office: every source of it costs the app a look now and then. */
const RUNS_AN_OFFICE = 20;
const FAILED = 1;

const USAGE = `usage: npm run soak -- [--runs <n>] [--seed <n>] [--family single|contest]
       npm run soak -- --large [--letters <n>]
  --runs     how many random runs; default 200
  --seed     the first seed; default 1
  --family   one plan over the letters of a source (single), or several over the same ones (contest); default: in turn
  --large    prepares a plan over very many recorded letters instead
  --letters  how many; default 100000`;

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      runs: { type: 'string' },
      seed: { type: 'string' },
      family: { type: 'string' },
      large: { type: 'boolean' },
      letters: { type: 'string' },
    },
  });
  if (values.large) return large(wholeNumber('letters', values.letters ?? '100000'));
  const runs = wholeNumber('runs', values.runs ?? '200');
  const first = wholeNumber('seed', values.seed ?? '1');
  const families = familiesOf(values.family);
  const azurite = await startAzurite({ accounts: Math.ceil(runs / RUNS_AN_OFFICE) + 1 });
  const failed: (Result & { family: FamilyName })[] = [];
  const began = Date.now();
  try {
    for (let i = 0; i < runs; i += RUNS_AN_OFFICE) {
      const seeds = Array.from({ length: Math.min(RUNS_AN_OFFICE, runs - i) }, (_, n) => first + i + n);
      const family = families[(i / RUNS_AN_OFFICE) % families.length] ?? 'single';
      const options: SoakOptions = {
        storage: azurite.takeAccount().connectionString,
        seeds,
        onResult: ({ line, problems }) => say([line, ...problems.map((problem) => `  ${problem}`)].join('\n')),
        onDeaths: (deaths) =>
          say(`  killed ${deaths.length} times${deaths.length > 0 ? `: ${deaths.join(', ')}` : ''}`),
        onLog: say,
      };
      const { results } = await (family === 'single' ? soak(SINGLE, options) : soak(CONTEST, { ...options, ...HARD }));
      failed.push(...results.filter(({ problems }) => problems.length > 0).map((result) => ({ ...result, family })));
    }
  } finally {
    await azurite.stop();
  }
  const minutes = ((Date.now() - began) / 60_000).toFixed(1);
  say(`${runs} runs in ${minutes} min, ${failed.length} failed`);
  for (const { seed, round, family } of failed) {
    say(`seed ${seed} failed; again with: npm run soak -- --family ${family} --seed ${round} --runs ${ROUND}`);
  }
  return failed.length === 0 ? 0 : FAILED;
}

type FamilyName = 'single' | 'contest';

function familiesOf(name: string | undefined): FamilyName[] {
  if (name === undefined) return ['single', 'contest'];
  if (name === 'single' || name === 'contest') return [name];
  throw new Error(`--family must be single or contest, not "${name}"`);
}

/** Heap of the storage, megabytes: it keeps everything in memory, several kilobytes a row. */
const STORAGE_HEAP = 8192;

async function large(letters: number): Promise<number> {
  const azurite = await withHeap(STORAGE_HEAP, () => startAzurite({ accounts: 1 }));
  try {
    const problems = await prepareLarge(azurite.takeAccount().connectionString, letters, say);
    for (const problem of problems) say(`  ${problem}`);
    return problems.length === 0 ? 0 : FAILED;
  } finally {
    await azurite.stop();
  }
}

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Misused(`--${name} must be a whole number, not "${text}"`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

process.exitCode = await runCommand(USAGE, process.argv.slice(2), main);
