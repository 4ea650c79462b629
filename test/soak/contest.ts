/** What a seeded contest is about: several plans over the same letters, in a source that makes it hard. */
import { Dice } from '../harness/dice.ts';
import { PLAIN } from '../harness/office.ts';

/** How far the office of a contest reaches into letters that are not held. */
export const REACH = 40;
/** Duplicate window of a target that has one. */
export const WINDOW = 'PT20S';

/**
 * `held`: an ordinary queue. `deep`: only looked at, with more letters than the office reaches. `detecting`: the target recognises
 * message ids. `reborn`: the queue is deleted and made anew in the midst of it.
 */
export const ARENAS = ['held', 'deep', 'detecting', 'reborn'] as const;
export type Arena = (typeof ARENAS)[number];

/** One of the plans. */
export interface Entrant {
  readonly action: 'replay' | 'discard';
  readonly onDuplicate: 'skip' | 'new-id';
  /** Letters a second; 0 is no limit. */
  readonly rate: number;
  /** At which shares of its letters it is paused, and whether it is cancelled instead. */
  readonly deeds: readonly { readonly at: number; readonly do: 'pause' | 'cancel' }[];
}

export interface Contest {
  readonly seed: number;
  readonly arena: Arena;
  readonly letters: number;
  /** Share of the letters whose message id is another one's, too. */
  readonly repeats: number;
  readonly entrants: readonly Entrant[];
  /** All are made first and started together; else each is made when the one before has ended or stands still. */
  readonly isAtOnce: boolean;
  /** So many sends in a row get no answer, after so many that do. */
  readonly losses: { readonly after: number; readonly count: number };
  /** So many completions in a row are refused: the letters are in the target and still here for a while. */
  readonly refusals: number;
  readonly isConsumed: boolean;
  /** Share of what the consumer takes that it rejects again. */
  readonly rejects: number;
  /** For all further throws of this run. */
  readonly dice: Dice;
}

export function contestOf(seed: number): Contest {
  const dice = new Dice(seed ^ 0xc0_7e57);
  const arena = dice.pick<Arena>(['held', 'held', 'deep', 'deep', 'detecting', 'detecting', 'reborn']);
  const entrants = Array.from({ length: dice.int(2, 3) }, (): Entrant => {
    const deeds: Entrant['deeds'][number][] = [];
    while (dice.chance(0.45)) deeds.push({ at: dice.next(), do: dice.chance(0.25) ? 'cancel' : 'pause' });
    return {
      action: dice.chance(0.2) ? 'discard' : 'replay',
      onDuplicate: dice.pick(['skip', 'new-id']),
      rate: dice.chance(0.7) ? dice.int(6, 60) : 0,
      deeds: deeds.toSorted((a, b) => a.at - b.at),
    };
  });
  return {
    seed,
    arena,
    letters: arena === 'deep' ? dice.int(REACH + 10, 150) : dice.int(15, 100),
    repeats: dice.chance(0.6) ? dice.next() * 0.4 : 0,
    entrants,
    isAtOnce: dice.chance(0.5),
    losses: { after: dice.int(0, 3), count: dice.chance(0.6) ? dice.int(1, 5) : 0 },
    refusals: dice.chance(arena === 'reborn' ? 0.7 : 0.3) ? dice.int(1, 10) : 0,
    // Who lets new letters die in a queue made anew needs them for himself.
    isConsumed: arena !== 'reborn' && dice.chance(0.4),
    rejects: dice.chance(0.5) ? dice.next() * 0.2 : 0,
    dice: dice.fork(),
  };
}

/** The catalog's entry for the source of a contest, and the properties of its queue. */
export function arenaOf(
  name: string,
  { arena }: Contest,
): { entry: Record<string, unknown>; queue: Record<string, unknown> } {
  const detects = arena === 'detecting';
  const entry = {
    name,
    trigger: false,
    replay: { maxReplays: 100 },
    entity: { ...PLAIN, duplicateDetection: detects ? WINDOW : false },
    ...(arena === 'deep' && { mode: 'observe' }),
  };
  const queue = detects
    ? { RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: WINDOW }
    : { DeadLetteringOnMessageExpiration: true };
  return { entry, queue };
}
