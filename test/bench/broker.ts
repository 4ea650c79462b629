/**
 * What the local broker puts through, in a process of its own, for one client with bodies of 200 bytes; and what it needs for
 * that. Rates depend on the machine and on what else it does; the ratios come from one run each and depend on that less.
 */
import { BODY_LENGTH, Kit } from './broker/kit.ts';
import { brokersShare, SCENARIOS, type ScenarioName } from './broker/scenarios.ts';
import { atLeast, atMost, figure, median, type Row } from './row.ts';

const RUNS = 3;
/** How many messages are stored to see what one needs. */
const STORED = 20_000;

export async function bench(): Promise<Row[]> {
  const names = Object.keys(SCENARIOS) as ScenarioName[];
  const runs: Record<ScenarioName, number>[] = [];
  const shares: number[] = [];
  const kit = await Kit.open();
  try {
    // The first run warms both processes up.
    for (let run = 0; run <= RUNS; run++) {
      const rates = new Map<ScenarioName, number>();
      for (const name of names) rates.set(name, await SCENARIOS[name](kit));
      const share = await brokersShare(kit);
      if (run === 0) continue;
      runs.push(Object.fromEntries(rates) as Record<ScenarioName, number>);
      shares.push(share);
    }
    const ratio = (of: ScenarioName, to: ScenarioName) => median(runs.map((rates) => rates[of] / rates[to]));
    return [
      ...names.map((name) => figure(name, median(runs.map((rates) => rates[name])), 'messages/s')),
      atLeast(
        'send: arrays of 100 to one after the other',
        ratio('send, arrays of 100', 'send, one after the other'),
        'times',
        15,
      ),
      atLeast(
        'receive deferred: 100 a call to 1 a call',
        ratio('receive deferred, 100 a call', 'receive deferred, 1 a call'),
        'times',
        8,
      ),
      figure("the broker's share of CPU, arrays and streaming", median(shares) * 100, '%'),
      atMost('memory of a stored message beside its body', await memoryOfOne(), 'bytes', 1500),
    ];
  } finally {
    await kit.close();
  }
}

/** In a broker of its own: what others have left behind would go meanwhile. */
async function memoryOfOne(): Promise<number> {
  const kit = await Kit.open();
  try {
    await kit.fill(STORED / 10);
    const before = await kit.brokerMemory();
    await kit.add(STORED);
    return ((await kit.brokerMemory()) - before) / STORED - BODY_LENGTH;
  } finally {
    await kit.close();
  }
}
