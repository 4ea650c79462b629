/** Locks chosen active letters by receiving from the front of the queue, for sources whose letters are not held. */

import type { SequenceNumber } from '../../letter.ts';
import type { LockedLetter, LockToken, ReadLetter, Taken } from '../broker.ts';
import { partitionOf } from './look.ts';
import type { Lock } from './receive.ts';

/** Letters received at a time. */
const BATCH = 500;

/** What `seize` works with. */
export interface SeizeContext {
  /** Locks up to `max` active letters from the front. */
  lock(max: number): Promise<ReadonlyMap<SequenceNumber, Lock>>;
  read(numbers: readonly SequenceNumber[]): Promise<ReadLetter[]>;
  /** Joins a letter with its lock, if both are of one message. */
  join(read: ReadLetter, lock: Lock | undefined): LockedLetter[];
  release(locks: readonly LockToken[]): Promise<unknown>;
  /** Locks letters that are held after all, and tells of the others what they are. */
  take(numbers: readonly SequenceNumber[]): Promise<Taken>;
}

/**
 * Locks those of `numbers` that are among the first `depth` active letters; all others that had to be received are given
 * back. A dead-letter queue counts no deliveries, so this leaves no trace. A letter that lies deeper is `active`, one that
 * should have come and did not is `busy`. Every number is in exactly one list.
 */
export async function seize(context: SeizeContext, numbers: readonly SequenceNumber[], depth: number): Promise<Taken> {
  const wanted = new Set(numbers);
  const kept = new Map<SequenceNumber, Lock>();
  const spared: LockToken[] = [];
  const front = new Front();
  let isExhausted = false;
  try {
    while (wanted.size > 0 && !isExhausted && kept.size + spared.length < depth) {
      const locks = await context.lock(Math.min(BATCH, depth - kept.size - spared.length));
      isExhausted = locks.size === 0;
      for (const [number, lock] of locks) {
        front.came(number);
        if (wanted.delete(number)) kept.set(number, lock);
        else spared.push(lock.lock);
      }
    }
  } finally {
    await context.release(spared);
  }
  const locked = (await context.read([...kept.keys()])).flatMap((read) =>
    context.join(read, kept.get(read.letter.sequenceNumber)),
  );
  for (const { letter } of locked) kept.delete(letter.sequenceNumber);
  // Locked as one message and read as another, or not found: numbering began anew in between.
  await context.release([...kept.values()].map(({ lock }) => lock));
  const others = [...wanted, ...kept.keys()];
  if (others.length === 0) return { locked, absent: [], busy: [], active: [] };
  const rest = await context.take(others);
  const isBusy = (number: SequenceNumber) => isExhausted || front.hasPassed(number);
  return {
    locked: [...locked, ...rest.locked],
    absent: rest.absent,
    // What lies before a letter that came, and did not come itself, has been locked by somebody else.
    busy: [...rest.busy, ...rest.active.filter(isBusy)],
    active: rest.active.filter((number) => !isBusy(number)),
  };
}

/** How far into the queue was received. Letters come in the order of their numbers, each partition's by themselves. */
class Front {
  readonly #last = new Map<number, bigint>();

  came(number: SequenceNumber): void {
    const partition = partitionOf(number);
    const last = this.#last.get(partition);
    if (last === undefined || last < BigInt(number)) this.#last.set(partition, BigInt(number));
  }

  hasPassed(number: SequenceNumber): boolean {
    return BigInt(number) <= (this.#last.get(partitionOf(number)) ?? -1n);
  }
}
