/** Looks into a dead-letter queue by peeking: nothing is locked, nothing is changed. */

import { compareSequenceNumbers, type SequenceNumber } from '../../letter.ts';
import type { ReadLetter, Sighting } from '../broker.ts';
import type { Management } from './management.ts';
import { NO_NUMBER, readLetter } from './readLetter.ts';

/** The broker gives at most about 250 messages a page, whatever is asked for. */
const MAX_PAGE = 250;
/** Bodies may be 256 KB, or 100 MB on Premium: a page is asked for by what the letters before it weighed. */
const PAGE_BYTES = 4 * 1024 * 1024;
const FIRST_GUESS_BYTES = 64 * 1024;

/** Peeks pages of bounded weight. One for each open dead-letter queue, as it learns how heavy letters are there. */
export class Look {
  readonly #log: (line: string) => void;
  #letterBytes = FIRST_GUESS_BYTES;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** One page of letters from `from` upwards, ascending; empty only at the end. */
  async page(node: Management, from: SequenceNumber, max: number): Promise<ReadLetter[]> {
    const fits = Math.max(1, Math.floor(PAGE_BYTES / this.#letterBytes));
    const messages = await node.peek(from, Math.min(max, MAX_PAGE, fits), true);
    if (messages.length > 0) {
      const mean = messages.reduce((sum, message) => sum + message.length, 0) / messages.length;
      // Quick to become careful, slow to become bold.
      this.#letterBytes = Math.max(1, mean, (this.#letterBytes + mean) / 2);
    }
    return this.#firstPartition(messages.map((message) => ({ letter: readLetter(message), message })));
  }

  /** What is there, read without bodies. */
  async scan(node: Management, from: SequenceNumber, max: number): Promise<Sighting[]> {
    const messages = await node.peek(from, Math.min(max, MAX_PAGE), false);
    const read = this.#firstPartition(messages.map((message) => ({ letter: readLetter(message), message })));
    return read.map(({ letter: { sequenceNumber, state, messageId, enqueuedAt } }) => ({
      sequenceNumber,
      state,
      messageId,
      enqueuedAt,
    }));
  }

  /** The letter with exactly this number; without body only its number and state are of use. */
  async one(node: Management, number: SequenceNumber, withBody = true): Promise<ReadLetter | undefined> {
    const [message] = await node.peek(number, 1, withBody);
    if (message === undefined) return undefined;
    const letter = readLetter(message);
    return letter.sequenceNumber === number ? { letter, message } : undefined;
  }

  /**
   * In a partitioned entity the upper 16 bits of a number are the partition. A page that holds several is cut to the
   * lowest: going on behind its last number would pass over what the page left out of the lower ones.
   */
  #firstPartition(read: readonly ReadLetter[]): ReadLetter[] {
    const numbered = read.filter(({ letter }) => letter.sequenceNumber !== NO_NUMBER);
    if (numbered.length < read.length) this.#log(`${read.length - numbered.length} peeked messages have no number`);
    if (numbered.length === 0 && read.length > 0) throw new Error('the peeked messages cannot be read');
    const sorted = numbered.toSorted((a, b) =>
      compareSequenceNumbers(a.letter.sequenceNumber, b.letter.sequenceNumber),
    );
    const lowest = sorted[0];
    if (lowest === undefined) return [];
    const partition = partitionOf(lowest.letter.sequenceNumber);
    return sorted.filter(({ letter }) => partitionOf(letter.sequenceNumber) === partition);
  }
}

/** The partition in which a number was given; 0 for entities that have none. */
export function partitionOf(number: SequenceNumber): number {
  return Number(BigInt(number) >> 48n);
}
