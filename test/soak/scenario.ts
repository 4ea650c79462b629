/** What a seeded run is about. The same seed makes the same scenario; what the machine makes of it differs in time. */
import { Dice } from '../harness/dice.ts';
import { PLAIN } from '../harness/office.ts';

/** Kinds of sources. */
export const KINDS = ['held', 'watched', 'renamed', 'partitioned', 'sessions'] as const;
export type Kind = (typeof KINDS)[number];

/** What an operator does once that share of the letters has left `pending`. */
export interface Deed {
  readonly at: number;
  readonly do: 'pause' | 'cancel' | 'stop';
}

export interface Scenario {
  readonly seed: number;
  readonly kind: Kind;
  readonly letters: number;
  readonly action: 'replay' | 'discard';
  readonly bypass: boolean;
  /** Share of the letters that the selection leaves out. */
  readonly leftOut: number;
  /** Body of the call that starts it, without the confirmation. */
  readonly pace: {
    readonly rate?: number;
    readonly ramp: false | { steps: number[]; observe: string; haltAbove: number };
  };
  readonly deeds: readonly Deed[];
  /** Share of the letters that a consumer takes from the target; the others wait there. */
  readonly isConsumed: boolean;
  /** Share of what the consumer takes that it rejects again. */
  readonly rejects: number;
  /** How many letters somebody completes by hand while the run goes on. */
  readonly meddles: number;
  /** For all further throws of this run. */
  readonly dice: Dice;
}

/** Letters that go one by one cost a journal entry each. */
const MOST: Readonly<Record<Kind, number>> = { held: 400, watched: 250, renamed: 250, partitioned: 24, sessions: 24 };

export function scenarioOf(seed: number): Scenario {
  const dice = new Dice(seed);
  const kind = dice.pick<Kind>(['held', 'held', 'held', 'held', 'watched', 'renamed', 'partitioned', 'sessions']);
  const most = MOST[kind];
  const isLarge = dice.chance(0.5);
  const action = dice.chance(0.12) ? 'discard' : 'replay';
  const isRamped = action === 'replay' && kind !== 'sessions' && dice.chance(0.2);
  const deeds: Deed[] = [];
  if (dice.chance(0.4)) deeds.push({ at: dice.next(), do: dice.pick(['pause', 'pause', 'stop']) });
  if (dice.chance(0.15)) deeds.push({ at: 0.2 + dice.next() * 0.8, do: 'cancel' });
  return {
    seed,
    kind,
    letters: dice.int(Math.min(20, most), isLarge ? most : Math.min(most, 90)),
    action,
    bypass: dice.chance(0.3),
    leftOut: dice.chance(0.3) ? dice.next() * 0.5 : 0,
    pace: {
      ...(dice.chance(0.2) && { rate: dice.int(60, 400) }),
      ramp: isRamped && { steps: dice.pick([[1], [1], [2, 10]]), observe: 'PT0.3S', haltAbove: 0.3 },
    },
    deeds: deeds.toSorted((a, b) => a.at - b.at),
    isConsumed: kind !== 'sessions' && (isRamped || dice.chance(0.3)),
    rejects: dice.chance(0.5) ? dice.next() * 0.2 : 0,
    meddles: kind === 'held' && dice.chance(0.25) ? dice.int(1, 5) : 0,
    dice: dice.fork(),
  };
}

/** The catalog's entry for a source of that kind, and the properties of its queue. */
export function sourceOf(name: string, kind: Kind): { entry: Record<string, unknown>; queue: Record<string, unknown> } {
  const entry = { name, trigger: false, replay: { maxReplays: 100 } };
  switch (kind) {
    case 'held':
      return { entry: { ...entry, entity: PLAIN }, queue: {} };
    case 'watched':
      return { entry: { ...entry, mode: 'observe', entity: PLAIN }, queue: {} };
    case 'renamed':
      return {
        entry: { ...entry, entity: { ...PLAIN, duplicateDetection: 'PT10M' } },
        queue: { RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 'PT10M' },
      };
    case 'partitioned':
      return { entry: { ...entry, entity: { ...PLAIN, partitioned: true } }, queue: { EnablePartitioning: true } };
    case 'sessions':
      return {
        entry: { ...entry, mode: 'observe', entity: { ...PLAIN, requiresSession: true } },
        queue: { RequiresSession: true },
      };
  }
}
