/**
 * Seeded runs over the whole office, a few at a time, while the app is killed and started again; each is judged when it has
 * ended. The kills of a round follow from its first seed, everything else of a run from its own.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { troubleBroker } from '../harness/brokerTrouble.ts';
import { Dice } from '../harness/dice.ts';
import { openTestOffice } from '../harness/office.ts';
import { openStoreProxy, type Trouble } from '../harness/storeProxy.ts';
import { account } from './account.ts';
import { Arena, compete } from './compete.ts';
import { arenaOf, type Contest, contestOf, REACH } from './contest.ts';
import { killAtRandom } from './crashes.ts';
import { judge } from './judge.ts';
import { operate, prepare, settleDown } from './operate.ts';
import { type Scenario, scenarioOf, sourceOf } from './scenario.ts';
import { type Pace, World } from './world.ts';

/** Runs at the same time in a round, which ends when all of them have. */
export const ROUND = 5;

/** How one run went. */
export interface Result {
  readonly seed: number;
  /** First seed of its round: with it and as many runs as a round has it comes again. */
  readonly round: number;
  readonly problems: readonly string[];
  /** In one line. */
  readonly line: string;
}

export interface SoakOptions {
  /** Connection string of an empty storage account. */
  readonly storage: string;
  /** Seeds of consecutive rounds. */
  readonly seeds: readonly number[];
  /** Told of each run as it ends. */
  readonly onResult?: (result: Result) => void;
  /** Told where the app was killed in a round. */
  readonly onDeaths?: (deaths: readonly string[]) => void;
  /** Told the log of the app when a run has a problem. */
  readonly onLog?: (log: string) => void;
  /** Runs at the same time. Default {@link ROUND}. */
  readonly together?: number;
  /** Kills a round, from the fewest to the most. Default 0 to 4. */
  readonly fewestKills?: number;
  readonly mostKills?: number;
  /** Share of the calls to the store that fail while the runs go on. Default none. */
  readonly storeFailures?: number;
  /** How often the broker strikes each run. Default never. */
  readonly brokerTroubles?: number;
}

/** What went wrong beside the kills. */
export interface Harm {
  readonly store: Readonly<Record<Trouble, number>>;
  readonly broker: number;
  /** Answers of the app that said so. */
  readonly serverErrors: number;
}

/** Judges a run after all have settled; `ms` is how long it took. */
type Judge = (ms: number) => Promise<{ readonly problems: readonly string[]; readonly line: string }>;

/** A kind of runs: how one is thrown, prepared, carried out and judged. */
export interface Family<Run extends { readonly seed: number }> {
  /** Entry of the app; default that of every test. */
  readonly entry?: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** Default: locks end soon. */
  readonly pace?: Pace;
  runOf(seed: number): Run;
  describe(run: Run): string;
  sourceOf(name: string, run: Run): { entry: Record<string, unknown>; queue: Record<string, unknown> };
  /** Makes the letters of a round; gives for each run how it is carried out. */
  prepare(world: World, runs: readonly { name: string; run: Run }[], dice: Dice): Promise<(() => Promise<Judge>)[]>;
}

/** One plan over the letters of a source, whatever happens to it: judged to the last letter and byte. */
export const SINGLE: Family<Scenario> = {
  runOf: scenarioOf,
  describe,
  sourceOf: (name, { kind }) => sourceOf(name, kind),
  prepare: (world, runs) =>
    Promise.all(
      runs.map(async ({ name, run }) => {
        const parts = await prepare(world, name, run);
        return async () => {
          const ended = await operate(world, name, run, parts);
          return async (ms: number) => {
            const { problems, copies, marked, strikes } = await judge(world, ended);
            const { state, counts } = ended.plan;
            const { planned, done, skipped, failed, left } = counts;
            const fates = `${planned} = ${done} done, ${skipped} skipped, ${failed} failed, ${left} left`;
            const line = `${describe(run)}: ${state} in ${seconds(ms)}, ${strikes} strikes; ${fates}; ${copies} copies, ${marked} marked`;
            return { problems, line };
          };
        };
      }),
    ),
};

/** Several plans over the same letters, in sources that make it hard: judged by what is in the target and the dead-letter queue. */
export const CONTEST: Family<Contest> = {
  entry: 'test/soak/office.ts',
  settings: { SOAK_REACH: String(REACH) },
  // So long that the next process meets the locks of the one before.
  pace: { afterDeath: [0, 1500, 6000], locksEnd: 12_000, hasLookedAt: true },
  runOf: contestOf,
  describe: ({ seed, arena, letters, repeats, entrants, isAtOnce, losses, isConsumed }) => {
    const plans = entrants.map(({ action, deeds }) => [action, ...deeds.map((deed) => deed.do)].join('+'));
    const words = [
      `${letters} ${arena}`,
      repeats > 0 && 'repeated ids',
      `${plans.join(', ')} ${isAtOnce ? 'at once' : 'one after the other'}`,
      losses.count > 0 && `${losses.count} answers lost`,
      isConsumed && 'consumed',
    ];
    return `contest ${seed} (${words.filter(Boolean).join('; ')})`;
  },
  sourceOf: arenaOf,
  async prepare(world, runs, dice) {
    const plays: (() => Promise<Judge>)[] = [];
    // One by one: each moves the broker's clock, which would end the locks of the others.
    for (const { name, run } of runs) {
      const arena = new Arena(world, name, run);
      await arena.kill();
      plays.push(async () => {
        const ended = await compete(world, name, run, arena);
        return async (ms) => {
          const problems = await account(world, ended);
          const plans = ended.plans.map(
            ({ plan: { state, counts } }) => `${state} ${counts.done} of ${counts.planned}`,
          );
          return { problems, line: `${CONTEST.describe(run)}: ${plans.join(', ')} in ${seconds(ms)}` };
        };
      });
    }
    await world.setClocks(dice.int(0, 2000));
    return plays;
  },
};

/** How often the app is killed in a round of contests, and how often the broker strikes each of them. */
export const HARD = { fewestKills: 2, mostKills: 5, brokerTroubles: 3 };

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** Runs all seeds in one office. */
export async function soak<Run extends { readonly seed: number }>(
  family: Family<Run>,
  options: SoakOptions,
): Promise<{ results: Result[]; harm: Harm }> {
  const { storage, seeds, together = ROUND, onResult, onDeaths, onLog } = options;
  const runs = seeds.map((seed) => ({ name: `run-${seed}`, run: family.runOf(seed) }));
  const sources = runs.map(({ name, run }) => family.sourceOf(name, run));
  const proxy = await openStoreProxy(storage, seeds[0] ?? 0);
  const folder = await mkdtemp(join(tmpdir(), 'soak-'));
  const clockFile = join(folder, 'ahead');
  await writeFile(clockFile, '0');
  const office = await openTestOffice({
    storage: proxy.connectionString,
    ...(family.entry !== undefined && { entry: family.entry }),
    sources: sources.map(({ entry }) => entry),
    queues: Object.fromEntries(sources.map(({ entry, queue }) => [String(entry.name), queue])),
    settings: { DLO_RETRY_SECONDS: '0.5', DLO_SEND_TIMEOUT_SECONDS: '3', SOAK_CLOCK: clockFile, ...family.settings },
  });
  const world = new World(office, proxy, storage, family.pace, family.entry === undefined ? undefined : clockFile);
  const results: Result[] = [];
  let broker = 0;
  try {
    for (let i = 0; i < runs.length; i += together) {
      const round: Result[] = [];
      const before = world.deaths.length;
      broker += await runRound(family, world, runs.slice(i, i + together), options, (result) => {
        round.push(result);
        onResult?.(result);
      });
      results.push(...round);
      onDeaths?.(world.deaths.slice(before));
      if (round.some(({ problems }) => problems.length > 0)) onLog?.(world.log);
    }
    return { results, harm: { store: proxy.troubles, broker, serverErrors: world.serverErrors } };
  } finally {
    await world.close();
    await office.close();
    await proxy.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function runRound<Run extends { readonly seed: number }>(
  family: Family<Run>,
  world: World,
  runs: readonly { name: string; run: Run }[],
  { fewestKills = 0, mostKills = 4, storeFailures = 0, brokerTroubles = 0 }: SoakOptions,
  onResult: (result: Result) => void,
): Promise<number> {
  const round = runs[0]?.run.seed ?? 0;
  const dice = new Dice(round ^ 0x5eed);
  const kills = dice.int(fewestKills, mostKills);
  const names = runs.map(({ name }) => name);
  const plays = await family.prepare(world, runs, new Dice(round ^ 0xc10c));
  world.proxy.fail(storeFailures);
  const trouble = troubleBroker(world.office.broker, dice, names, brokerTroubles);
  const over = new AbortController();
  const killing = killAtRandom(world, dice, kills, names, over.signal);
  const ending = brokerTroubles > 0 ? world.endLocks(over.signal) : undefined;
  const began = Date.now();
  const ends = plays.map(async (play) => {
    try {
      return { judge: await play(), ms: Date.now() - began };
    } catch (error) {
      return { error, ms: Date.now() - began };
    }
  });
  const ended = await Promise.all(ends);
  over.abort();
  await Promise.all([killing, ending]);
  world.proxy.fail(0);
  trouble.remove();
  await settleDown(world, names);
  for (const [i, { run }] of runs.entries()) {
    const { judge: verdict, error, ms = 0 } = ended[i] ?? {};
    const judged =
      verdict === undefined
        ? { problems: [String((error as Error).stack)], line: `${family.describe(run)}: ${String(error)}` }
        : await verdict(ms);
    onResult({ seed: run.seed, round, ...judged });
  }
  return trouble.hits;
}

function describe({ seed, kind, letters, action, pace, deeds, isConsumed, meddles }: Scenario): string {
  const words = [
    `${letters} ${kind}`,
    action === 'discard' && 'discarded',
    pace.ramp !== false && 'ramp',
    pace.rate !== undefined && `${pace.rate}/s`,
    ...deeds.map((deed) => deed.do),
    isConsumed && 'consumed',
    meddles > 0 && 'meddled',
  ];
  return `seed ${seed} (${words.filter(Boolean).join(', ')})`;
}
