/**
 * Seeded runs over the whole office, a few at a time, while the app is killed and started again; each is judged when it has
 * ended. The kills of a round follow from its first seed, everything else of a run from its own.
 */
import { troubleBroker } from '../harness/brokerTrouble.ts';
import { Dice } from '../harness/dice.ts';
import { openTestOffice } from '../harness/office.ts';
import { openStoreProxy, type Trouble } from '../harness/storeProxy.ts';
import { killAtRandom } from './crashes.ts';
import { judge } from './judge.ts';
import { operate, prepare, settleDown } from './operate.ts';
import { type Scenario, scenarioOf, sourceOf } from './scenario.ts';
import { World } from './world.ts';

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

/** Runs all seeds in one office. */
export async function soak(options: SoakOptions): Promise<{ results: Result[]; harm: Harm }> {
  const { storage, seeds, together = ROUND, onResult, onDeaths, onLog } = options;
  const scenarios = seeds.map(scenarioOf);
  const sources = scenarios.map((run) => sourceOf(nameOf(run), run.kind));
  const proxy = await openStoreProxy(storage, seeds[0] ?? 0);
  const office = await openTestOffice({
    storage: proxy.connectionString,
    sources: sources.map(({ entry }) => entry),
    queues: Object.fromEntries(sources.map(({ entry, queue }) => [String(entry.name), queue])),
    settings: { DLO_RETRY_SECONDS: '0.5', DLO_SEND_TIMEOUT_SECONDS: '3' },
  });
  const world = new World(office, proxy, storage);
  const results: Result[] = [];
  let broker = 0;
  try {
    for (let i = 0; i < scenarios.length; i += together) {
      const round: Result[] = [];
      const before = world.deaths.length;
      broker += await runRound(world, scenarios.slice(i, i + together), options, (result) => {
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
  }
}

async function runRound(
  world: World,
  scenarios: readonly Scenario[],
  { fewestKills = 0, mostKills = 4, storeFailures = 0, brokerTroubles = 0 }: SoakOptions,
  onResult: (result: Result) => void,
): Promise<number> {
  const round = scenarios[0]?.seed ?? 0;
  const dice = new Dice(round ^ 0x5eed);
  const kills = dice.int(fewestKills, mostKills);
  const names = scenarios.map(nameOf);
  const prepared = await Promise.all(scenarios.map((run, i) => prepare(world, names[i] ?? '', run)));
  world.proxy.fail(storeFailures);
  const trouble = troubleBroker(world.office.broker, dice, names, brokerTroubles);
  const over = new AbortController();
  const killing = killAtRandom(world, dice, kills, names, over.signal);
  const ending = brokerTroubles > 0 ? world.endLocks(over.signal) : undefined;
  const began = Date.now();
  const ends = scenarios.map(async (run, i) => {
    const name = names[i] ?? '';
    const parts = prepared[i];
    if (parts === undefined) throw new Error('every run is prepared');
    try {
      const ended = await operate(world, name, run, parts);
      const ms = Date.now() - began;
      return { run, name, ended, ms };
    } catch (error) {
      return { run, name, error, ms: Date.now() - began };
    }
  });
  const ended = await Promise.all(ends);
  over.abort();
  await Promise.all([killing, ending]);
  world.proxy.fail(0);
  trouble.remove();
  await settleDown(world, names);
  for (const { run, name, ms, ...one } of ended) {
    const told = { seed: run.seed, round };
    let result: Result;
    if (one.ended === undefined) {
      const text = String((one.error as Error).stack);
      result = { ...told, problems: [text], line: `${describe(run)}: ${String(one.error)}` };
    } else {
      const { problems, copies, marked, strikes } = await judge(world, one.ended);
      const { state, counts } = one.ended.plan;
      const { planned, done, skipped, failed, left } = counts;
      const fates = `${planned} = ${done} done, ${skipped} skipped, ${failed} failed, ${left} left`;
      const line = `${describe(run)}: ${state} in ${(ms / 1000).toFixed(1)} s, ${strikes} strikes; ${fates}; ${copies} copies, ${marked} marked`;
      result = { ...told, problems, line };
    }
    onResult(result);
  }
  return trouble.hits;
}

function nameOf({ seed }: Scenario): string {
  return `run-${seed}`;
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
