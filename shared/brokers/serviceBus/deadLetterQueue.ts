/** The dead-letter queue of one source, behind the port. */

import type { Source } from '../../catalog.ts';
import { compareSequenceNumbers, type SequenceNumber, sequenceNumber } from '../../letter.ts';
import { inParallel } from '../../parallel.ts';
import type { DeadLetterQueue, LockedLetter, LockToken, ReadLetter } from '../broker.ts';
import { receiveOnBudget } from './budget.ts';
import { unavailable } from './errors.ts';
import { Look } from './look.ts';
import type { Management } from './management.ts';
import type { Line, Namespace } from './namespace.ts';
import { type Lock, lockActive } from './receive.ts';
import { seize } from './seize.ts';
import { settle } from './settle.ts';
import { take } from './take.ts';
import { uuidText } from './wireValues.ts';

/** What a new queue locks for, and the shortest the service suggests; used where neither broker nor catalog says. */
const DEFAULT_LOCK_MS = 30_000;

/** An empty front is believed after this long, ms. */
const SEIZE_WAIT_MS = 1_000;

/** Opens nothing yet: links are made, shared and renewed as the calls need them. */
export function openDeadLetterQueue(
  namespace: Namespace,
  source: Source,
  options: { clock: () => number; log: (line: string) => void },
): DeadLetterQueue {
  const path = `${source.path}/$DeadLetterQueue`;
  const look = new Look((line) => options.log(`${source.name}: ${line}`));
  const taking = (node: Management) => ({ node, look, isPartitioned: source.entity.partitioned, lockEnd });
  const lockEnd = () => options.clock() + (source.entity.lockDuration ?? DEFAULT_LOCK_MS);

  /** Every call is one stay on the line; trouble with it is `DLO_BROKER_UNAVAILABLE`. */
  function call<T>(doing: string, work: (node: Management, line: Line) => Promise<T>): Promise<T> {
    return namespace.use(doing, async (line) => {
      try {
        return await work(await line.management(path), line);
      } catch (error) {
        throw unavailable(`${doing} in the dead-letter queue of "${source.name}"`, error);
      }
    });
  }

  const lock = ({ connection, budget }: Line, max: number, waitMs: number) =>
    receiveOnBudget(budget, () => lockActive(connection, path, max, waitMs));

  return {
    peek: async (from, max) => (max < 1 ? [] : call('peek', (node) => look.page(node, from, max))),
    peekOne: (number) => call('peek', (node) => look.one(node, number)),
    scan: async (from, max) => (max < 1 ? [] : call('peek', (node) => look.scan(node, from, max))),
    receive: async (max, waitMs) => {
      if (max < 1) return [];
      return call('receive', async (node, line) => {
        const locks = await lock(line, max, waitMs);
        const letters = await readAll(node, look, [...locks.keys()]);
        return letters.flatMap((read) => withLock(read, locks.get(read.letter.sequenceNumber), lockEnd()));
      });
    },
    take: (numbers) => call('lock letters', (node) => take(taking(node), numbers)),
    seize: (numbers, depth) =>
      call('lock letters', (node, line) => {
        const context = {
          lock: (max: number) => lock(line, max, SEIZE_WAIT_MS),
          read: (some: readonly SequenceNumber[]) => readAll(node, look, some),
          join: (read: ReadLetter, lock: Lock | undefined) => withLock(read, lock, lockEnd()),
          release: (locks: readonly LockToken[]) => settle(node, locks, 'abandoned'),
          take: (some: readonly SequenceNumber[]) => take(taking(node), some),
        };
        return seize(context, numbers, depth);
      }),
    hold: (locks) => call('defer', (node) => settle(node, locks, 'defered')),
    complete: (locks) => call('complete', (node) => settle(node, locks, 'completed')),
    release: (locks) => call('abandon', (node) => settle(node, locks, 'abandoned')),
    // The links are the namespace's, which closes them when nobody uses them.
    close: () => Promise.resolve(),
  };
}

/**
 * The letters with these numbers, in ascending order; those that are gone are left out. Pages as long as they hold
 * wanted letters, as what was received lies close together; then the stragglers one by one.
 */
async function readAll(node: Management, look: Look, numbers: readonly SequenceNumber[]): Promise<ReadLetter[]> {
  const wanted = new Set(numbers.toSorted(compareSequenceNumbers));
  const found: ReadLetter[] = [];
  const [lowest] = wanted;
  let from = lowest;
  while (from !== undefined && wanted.size > 0) {
    const page = await look.page(node, from, wanted.size);
    const hits = page.filter(({ letter }) => wanted.delete(letter.sequenceNumber));
    found.push(...hits);
    const last = page.at(-1);
    from = last !== undefined && hits.length > page.length / 2 ? next(last.letter.sequenceNumber) : undefined;
  }
  const stragglers = await inParallel([...wanted], (number) => look.one(node, number));
  found.push(...stragglers.filter((read) => read !== undefined));
  return found.toSorted((a, b) => compareSequenceNumbers(a.letter.sequenceNumber, b.letter.sequenceNumber));
}

function next(number: SequenceNumber): SequenceNumber {
  return sequenceNumber(BigInt(number) + 1n);
}

/** Joins what was peeked with the lock on it, if both are of the same message: numbering may have begun anew. */
function withLock(read: ReadLetter, lock: Lock | undefined, otherwiseUntil: number): LockedLetter[] {
  if (lock === undefined || !isSameId(lock.messageId, read.letter.messageId)) return [];
  return [{ ...read, lock: lock.lock, lockedUntil: lock.until ?? otherwiseUntil }];
}

/** Compares an id as the library decodes it with its text in a letter. */
function isSameId(decoded: unknown, id: string | undefined): boolean {
  if (decoded === undefined || decoded === null) return id === undefined;
  if (!Buffer.isBuffer(decoded)) return String(decoded) === id;
  // The library gives uuid, binary and wide numbers alike as bytes.
  const forms = [decoded.toString('base64')];
  if (decoded.length === 16) forms.push(uuidText(decoded));
  if (decoded.length === 8) forms.push(decoded.readBigUInt64BE().toString());
  return id !== undefined && forms.includes(id);
}
