/** Locks held letters by number, and finds out about those that cannot be locked. */

import type { SequenceNumber } from '../../letter.ts';
import { inParallel } from '../../parallel.ts';
import type { LockedLetter, Taken } from '../broker.ts';
import { isRefusal } from './errors.ts';
import { type Look, partitionOf } from './look.ts';
import type { Management } from './management.ts';
import { lockedUntilOf, readLetter } from './readLetter.ts';

/** Numbers in one request. The service's own limit is not documented; this is what a chunk holds. */
const MAX_REQUEST = 100;

/** What `take` works with. */
export interface TakeContext {
  readonly node: Management;
  readonly look: Look;
  readonly isPartitioned: boolean;
  /** When a lock made now ends, for a broker that does not say, ms since 1970. */
  lockEnd(): number;
}

/**
 * Locks `numbers`, as many as can be. The broker refuses a whole request for one number that is locked, absent or
 * not held, and does not say which: then each is peeked, and those that are there and held are asked for again,
 * together and at last one by one.
 */
export async function take(context: TakeContext, numbers: readonly SequenceNumber[]): Promise<Taken> {
  const locked = new Map<SequenceNumber, LockedLetter>();
  const missing = new Set(numbers);
  const tryLock = async (group: readonly SequenceNumber[]) => {
    for (const letter of await lock(context, group)) {
      locked.set(letter.letter.sequenceNumber, letter);
      missing.delete(letter.letter.sequenceNumber);
    }
  };

  for (const group of groups(context, numbers)) await tryLock(group);
  const first = await lookFor(context, missing);
  if (first.held.length > 0) {
    for (const group of groups(context, first.held)) await tryLock(group);
    await inParallel(
      first.held.filter((number) => missing.has(number)),
      (number) => tryLock([number]),
    );
  }
  for (const number of [...first.absent, ...first.active]) missing.delete(number);
  const last = await lookFor(context, missing);
  return {
    locked: numbers.flatMap((number) => locked.get(number) ?? []),
    absent: [...first.absent, ...last.absent],
    active: [...first.active, ...last.active],
    // There and held, and yet refused alone: somebody else has it.
    busy: last.held,
  };
}

/** One request; nothing when the broker refuses it because of the numbers in it. */
async function lock(context: TakeContext, numbers: readonly SequenceNumber[]): Promise<LockedLetter[]> {
  try {
    const answers = await context.node.receive(numbers);
    return answers.flatMap(({ message, lock: token }) => {
      if (token === undefined) return [];
      // It came by number, so it is held, whether or not the broker wrote that on it.
      const letter = { ...readLetter(message), state: 'held' as const };
      return [{ letter, message, lock: token, lockedUntil: lockedUntilOf(message) ?? context.lockEnd() }];
    });
  } catch (error) {
    if (isRefusal(error)) return [];
    throw error;
  }
}

async function lookFor(context: TakeContext, numbers: ReadonlySet<SequenceNumber>) {
  const found = { absent: [] as SequenceNumber[], active: [] as SequenceNumber[], held: [] as SequenceNumber[] };
  const letters = await inParallel([...numbers], async (number) => ({
    number,
    state: (await context.look.one(context.node, number, false))?.letter.state,
  }));
  for (const { number, state } of letters) found[state ?? 'absent'].push(number);
  return found;
}

/** Requests of limited size; of a partitioned entity, with numbers of one partition each: others are refused. */
function groups({ isPartitioned }: TakeContext, numbers: readonly SequenceNumber[]): SequenceNumber[][] {
  const byPartition = Map.groupBy(numbers, (number) => (isPartitioned ? partitionOf(number) : 0));
  return [...byPartition.values()].flatMap((group) => {
    const requests: SequenceNumber[][] = [];
    for (let i = 0; i < group.length; i += MAX_REQUEST) requests.push(group.slice(i, i + MAX_REQUEST));
    return requests;
  });
}
