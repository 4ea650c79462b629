/** All letters of a queue: collected and replayed by the office, held and moved by the bare client. */
import { MAX_CHUNK } from '../../../shared/plan/prepare.ts';
import { BATCH, hold, move, moveOneByOne } from './bare.ts';
import { type CpuTimes, cpuBetween } from './cpu.ts';
import type { BenchOffice, Stage } from './stage.ts';

/** Letters a second, in one round, and the CPU time of a chunk and of a batch of 100, ms. */
export interface Moved {
  readonly office: {
    readonly collect: number;
    readonly collectCpu: CpuTimes;
    readonly run: number;
    readonly cpu: CpuTimes;
  };
  readonly bare: {
    readonly hold: number;
    readonly holdCpu: CpuTimes;
    readonly move: number;
    readonly loop: number;
    readonly cpu: CpuTimes;
  };
}

/** Letters that warm an office up before it is measured. */
const WARM = 2000;

/** The queues that {@link moveRounds} works on: those of the office, and those of the bare client. */
export function queuesOf(rounds: number): { offices: string[]; bare: string[] } {
  const names = (name: string) => Array.from({ length: rounds }, (_, i) => `${name}-${i}`);
  return { offices: ['warm', ...names('office')], bare: ['bare-warm', ...names('bare')] };
}

/**
 * `rounds` times `letters` on each side, `looped` of them one by one; each round with an office and a store of its own. The bare
 * client works in two halves, one before and one after the office, so that a machine that grows busier meanwhile is the same
 * for both.
 */
export async function moveRounds(stage: Stage, rounds: number, letters: number, looped: number): Promise<Moved[]> {
  const all: Moved[] = [];
  for (let i = 0; i < rounds; i++) {
    const office = await stage.office();
    try {
      await round(stage, office, ['warm', 'bare-warm'], WARM, looped / 5);
      all.push(await round(stage, office, [`office-${i}`, `bare-${i}`], letters, looped));
    } finally {
      await office.close();
    }
  }
  return all;
}

async function round(
  stage: Stage,
  office: BenchOffice,
  [mine, bare]: readonly [string, string],
  count: number,
  loop: number,
): Promise<Moved> {
  await stage.fill([mine, bare], count);
  const half = count / 2;

  const cpuAtFirst = stage.cpu(office);
  const { result: first, ms: holdBefore } = await timed(() => hold(stage.client, bare, half));
  const cpuHeld = stage.cpu(office);
  const { ms: collect } = await timed(() => office.collectAll(mine, count));
  const cpuCollected = stage.cpu(office);
  const { result: second, ms: holdAfter } = await timed(() => hold(stage.client, bare, half));

  const plan = await office.plan(mine, {}, count);
  const [loopFirst, loopSecond] = [first.splice(0, loop / 2), second.splice(0, loop / 2)];
  const { ms: loopBefore } = await timed(() => moveOneByOne(stage.client, bare, loopFirst));
  const cpuBefore = stage.cpu(office);
  const { ms: moveBefore } = await timed(() => move(stage.client, bare, first));
  const cpuBetweenBoth = stage.cpu(office);
  const { ms: run } = await timed(() => office.run(plan));
  const cpuAfter = stage.cpu(office);
  const { ms: moveAfter } = await timed(() => move(stage.client, bare, second));
  const { ms: loopAfter } = await timed(() => moveOneByOne(stage.client, bare, loopSecond));

  await stage.empty(mine);
  await stage.empty(bare);
  const rate = (done: number, ms: number) => (done * 1000) / ms;
  return {
    office: {
      collect: rate(count, collect),
      collectCpu: cpuBetween(cpuHeld, cpuCollected, count / BATCH),
      run: rate(count, run),
      cpu: cpuBetween(cpuBetweenBoth, cpuAfter, count / MAX_CHUNK),
    },
    bare: {
      hold: rate(count, holdBefore + holdAfter),
      holdCpu: cpuBetween(cpuAtFirst, cpuHeld, half / BATCH),
      move: rate(count - loop, moveBefore + moveAfter),
      loop: rate(loop, loopBefore + loopAfter),
      cpu: cpuBetween(cpuBefore, cpuBetweenBoth, first.length / MAX_CHUNK),
    },
  };
}

/** Letters of the loop far away. */
const FAR_LOOPED = 100;

/**
 * `letters` with office and bare client `ms` away from the broker in each direction, and the office from its storage too: how it
 * is in a data centre, where a round trip costs more than the work at its end. Letters a second.
 */
export async function moveFar(
  stage: Stage,
  letters: number,
  ms: number,
): Promise<Record<'collect' | 'hold' | 'run' | 'move' | 'loop', number>> {
  const office = await stage.office(ms);
  const client = await stage.farClient(ms);
  try {
    await stage.fill(['far', 'bare-far'], letters);
    const { result: numbers, ms: holding } = await timed(() => hold(client, 'bare-far', letters));
    const { ms: collecting } = await timed(() => office.collectAll('far', letters));
    const looped = numbers.splice(0, FAR_LOOPED);
    const plan = await office.plan('far', {}, letters);
    const { ms: looping } = await timed(() => moveOneByOne(client, 'bare-far', looped));
    const { ms: moving } = await timed(() => move(client, 'bare-far', numbers));
    const { ms: running } = await timed(() => office.run(plan));
    const rate = (done: number, took: number) => (done * 1000) / took;
    return {
      collect: rate(letters, collecting),
      hold: rate(letters, holding),
      run: rate(letters, running),
      move: rate(numbers.length, moving),
      loop: rate(looped.length, looping),
    };
  } finally {
    await client.close();
    await office.close();
  }
}

/** How long `work` took, ms, and what it gave. */
export async function timed<Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> {
  const began = performance.now();
  const result = await work();
  return { result, ms: performance.now() - began };
}
