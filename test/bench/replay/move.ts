/** All letters of a queue: collected and replayed by the office, held and moved by the bare client. */
import { hold, move, moveOneByOne } from './bare.ts';
import type { Stage } from './stage.ts';

/** Letters a second, in one round. */
export interface Moved {
  readonly office: { readonly collect: number; readonly run: number };
  readonly bare: { readonly hold: number; readonly move: number; readonly loop: number };
}

/**
 * `rounds` times `letters` on each side, `looped` of them one by one. The bare client works in two halves, one before and one
 * after the office, so that a machine that grows busier meanwhile is the same for both. A round before warms everything up.
 */
export async function moveRounds(stage: Stage, rounds: number, letters: number, looped: number): Promise<Moved[]> {
  const office = await stage.office();
  try {
    await round(0, Math.ceil(letters / 5), looped / 5);
    const all: Moved[] = [];
    for (let i = 0; i < rounds; i++) all.push(await round(i, letters, looped));
    return all;
  } finally {
    await office.close();
  }

  async function round(i: number, count: number, loop: number): Promise<Moved> {
    const [mine, bare] = [`office-${i}`, `bare-${i}`];
    await stage.fill([mine, bare], count);
    const half = count / 2;

    const { result: first, ms: holdBefore } = await timed(() => hold(stage.client, bare, half));
    const { ms: collect } = await timed(() => office.collectAll(mine, count));
    const { result: second, ms: holdAfter } = await timed(() => hold(stage.client, bare, half));

    const plan = await office.plan(mine, {}, count);
    const [loopFirst, loopSecond] = [first.splice(0, loop / 2), second.splice(0, loop / 2)];
    const { ms: loopBefore } = await timed(() => moveOneByOne(stage.client, bare, loopFirst));
    const { ms: moveBefore } = await timed(() => move(stage.client, bare, first));
    const { ms: run } = await timed(() => office.run(plan));
    const { ms: moveAfter } = await timed(() => move(stage.client, bare, second));
    const { ms: loopAfter } = await timed(() => moveOneByOne(stage.client, bare, loopSecond));

    await stage.empty(mine);
    await stage.empty(bare);
    const rate = (done: number, ms: number) => (done * 1000) / ms;
    return {
      office: { collect: rate(count, collect), run: rate(count, run) },
      bare: {
        hold: rate(count, holdBefore + holdAfter),
        move: rate(count - loop, moveBefore + moveAfter),
        loop: rate(loop, loopBefore + loopAfter),
      },
    };
  }
}

/** How long `work` took, ms, and what it gave. */
export async function timed<Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> {
  const began = performance.now();
  const result = await work();
  return { result, ms: performance.now() - began };
}
