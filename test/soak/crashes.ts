/** When the app is killed: at a chosen act of the broker, at a chosen write to the store, or just at some time. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FaultRule } from '../../local/broker/index.ts';
import type { Dice } from '../harness/dice.ts';
import type { World } from './world.ts';

/** The app is killed after this long even when the act it was to die at has not come, ms. */
const LONGEST_WAIT = 8000;

/** Kills the app `count` times, each time at a point that the dice choose. Ends early when the runs are over. */
export async function killAtRandom(
  world: World,
  dice: Dice,
  count: number,
  queues: readonly string[],
  over: AbortSignal,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    await delay(dice.int(0, 600));
    if (over.aborted) return;
    const point = choosePoint(world, dice, queues);
    const end = Date.now() + LONGEST_WAIT;
    while (!point.isHit() && Date.now() < end && !over.aborted) await delay(5);
    if (over.aborted) {
      point.letGo();
      return;
    }
    world.deaths.push(point.isHit() ? point.name : `waiting for ${point.name}`);
    await world.crash(dice, point.letGo);
  }
}

interface Point {
  readonly name: string;
  isHit(): boolean;
  /** What was held is done after all, if the broker still can; nothing more is held. */
  letGo(): void;
}

function choosePoint(world: World, dice: Dice, queues: readonly string[]): Point {
  const how = dice.pick(['hold', 'lose-answer'] as const);
  const kind = dice.pick(['store', 'store', 'store', 'send', 'send', 'send', 'complete', 'take', 'time'] as const);
  switch (kind) {
    case 'store':
      return atWrite(world, dice.int(0, 150), how === 'hold' ? 'before' : 'after');
    case 'send':
    case 'complete':
    case 'take': {
      const act = kind === 'complete' && world.pace.hasLookedAt ? 'finish' : kind;
      return atBroker(world, queues, { do: how, skip: dice.int(0, 2), times: 1_000 }, act);
    }
    case 'time':
      return atTime(dice.int(0, 3000));
  }
}

function atWrite(world: World, skip: number, when: 'before' | 'after'): Point {
  const stop = world.proxy.stopAt(skip, when);
  let isHit = false;
  void stop.hit.then(() => {
    isHit = true;
  });
  return { name: `${when} write ${skip}`, isHit: () => isHit, letGo: stop.remove };
}

/** Where in the broker an act of that kind is struck. */
const ACTS = {
  send: { at: 'send' },
  complete: { at: 'settle', operation: 'complete', via: 'management' },
  /** Also of letters that are not held. */
  finish: { at: 'settle', operation: 'complete' },
  take: { at: 'manage', operation: 'receive-by-sequence-number' },
} as const;

/** At the first such act that strikes, of whichever run. */
function atBroker(
  world: World,
  queues: readonly string[],
  rule: Pick<FaultRule, 'do' | 'skip' | 'times'>,
  act: keyof typeof ACTS,
): Point {
  const faults = queues.map((queue) => {
    const entity = act === 'send' ? queue : `${queue}/$DeadLetterQueue`;
    return world.office.broker.faults.add({ ...ACTS[act], ...rule, entity });
  });
  return {
    name: `${rule.do} ${act}`,
    isHit: () => faults.some(({ hits }) => hits > 0),
    letGo: () => {
      for (const fault of faults) fault.remove();
    },
  };
}

function atTime(afterMs: number): Point {
  const due = Date.now() + afterMs;
  return { name: 'any time', isHit: () => Date.now() >= due, letGo: () => {} };
}
