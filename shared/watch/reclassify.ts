/** Judging recorded letters anew, after rules or schemas of the catalog have changed. Locks and settles nothing. */
import type { DeadLetterQueue, ReadLetter } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import type { Category, Classification } from '../classify/evidence.ts';
import { errorText } from '../errors.ts';
import { recount } from '../groups/keep.ts';
import { compareSequenceNumbers, isSameMessage, type Letter, type SequenceNumber } from '../letter.ts';
import { shownOf } from '../mask.ts';
import type { Office } from '../office.ts';
import { isStoredAlike } from '../store/letterRow.ts';
import type { VersionedLetter } from '../store/letters.ts';
import { takeSnapshot } from './collect.ts';

/** What one slice has done. */
export interface Reclassified {
  /** Open letters whose records were looked at. */
  readonly lookedAt: number;
  /** Of these, the ones whose judgement or evidence is another now. */
  readonly changed: number;
  /** Of these, the ones whose message was peeked. */
  readonly peeked: number;
  /** Messages that had to be peeked and were not there; their records stay as they were. */
  readonly notThere: number;
  readonly unreadable: number;
  readonly before: Readonly<Partial<Record<Category, number>>>;
  readonly after: Readonly<Partial<Record<Category, number>>>;
  /** Where the next slice begins; `undefined` when all letters were looked at. */
  readonly continuation: SequenceNumber | undefined;
}

/** What a slice is asked to do. `deadline` is ms since 1970: no part is begun after it, but the first. */
export interface Slice {
  readonly from: SequenceNumber | undefined;
  /** Read every message again, not only where a rule or schema has to see it: after an update that reads more. */
  readonly reread: boolean;
  readonly deadline: number;
}

const PART = 100;

/**
 * Judges the open letters of a source anew, in ascending order, until `deadline`; the caller goes on from `continuation`. Nothing
 * of it is kept between slices, and no more than a part of the letters is in memory. First-seen times, fates and replays stay.
 * Throws `DLO_BROKER_UNAVAILABLE`, `DLO_STORE_UNAVAILABLE`; what was written by then is right, and doing it again is harmless.
 */
export async function reclassify(
  office: Office,
  source: Source,
  slice: Slice,
  operator: string,
): Promise<Reclassified> {
  const where = { key: source.key, name: source.name };
  const at = office.clock();
  const audit = await office.store.audit.open({ at, operator, operation: 'source.reclassify', source: where });
  try {
    const result = await work(office, source, slice);
    if (result.continuation === undefined) {
      await recount(office, source);
      await takeSnapshot(office, source);
    }
    const { lookedAt, changed, continuation } = result;
    const more = continuation === undefined ? '' : `, goes on at ${continuation}`;
    await office.store.audit.close(audit, `${changed} of ${lookedAt} letters changed${more}`, office.clock());
    return result;
  } catch (error) {
    await office.store.audit.close(audit, `failed: ${errorText(error, 200)}`, office.clock());
    throw error;
  }
}

async function work(office: Office, source: Source, slice: Slice): Promise<Reclassified> {
  const tally = { lookedAt: 0, changed: 0, peeked: 0, notThere: 0, unreadable: 0 };
  const before: Partial<Record<Category, number>> = {};
  const after: Partial<Record<Category, number>> = {};
  const looking = new Looking(office, source, slice.reread);
  const options = {
    onUnreadable: () => tally.unreadable++,
    ...(slice.from !== undefined && { from: slice.from }),
  };
  const finish = async (part: readonly VersionedLetter[]) => {
    const judged = await looking.judge(part);
    const changes = judged
      .map((one) => ({ ...one, shown: shownOf(source, one.letter, one.classification) }))
      .filter(({ record, classification, shown }) => !isStoredAlike(record, classification, shown.hidden));
    tally.changed += await office.store.letters.rejudge(changes);
    for (const { record, classification, isReread, isMissing } of judged) {
      tally.lookedAt++;
      if (isReread) tally.peeked++;
      if (isMissing) tally.notThere++;
      const { category } = record.classification;
      before[category] = (before[category] ?? 0) + 1;
      after[classification.category] = (after[classification.category] ?? 0) + 1;
    }
  };
  try {
    let part: VersionedLetter[] = [];
    for await (const version of office.store.letters.openVersions(source.key, options)) {
      if (part.length === PART) {
        await finish(part);
        part = [];
        if (office.clock() >= slice.deadline) {
          return { ...tally, before, after, continuation: version.record.letter.sequenceNumber };
        }
      }
      part.push(version);
    }
    await finish(part);
    return { ...tally, before, after, continuation: undefined };
  } finally {
    await looking.close();
  }
}

/** A record with its new judgement. */
interface Judged extends VersionedLetter {
  readonly classification: Classification;
  /** As it was read again, else as recorded. */
  readonly letter: Letter;
  /** Its message was read again. */
  readonly isReread: boolean;
  /** Its message had to be read again and is not there. */
  readonly isMissing: boolean;
}

/** Judges records, peeking where the record does not hold what is needed. The queue is opened when it is first wanted. */
class Looking {
  readonly #office: Office;
  readonly #source: Source;
  readonly #reread: boolean;
  #queue: DeadLetterQueue | undefined;

  constructor(office: Office, source: Source, reread: boolean) {
    this.#office = office;
    this.#source = source;
    this.#reread = reread;
  }

  async judge(versions: readonly VersionedLetter[]): Promise<Judged[]> {
    const { classifier, broker } = this.#office;
    // A bare record holds nothing to judge by.
    const wanted = versions.filter(
      ({ record }) => this.#reread || record.refused !== undefined || classifier.needsMessage(this.#source, record),
    );
    const numbers = new Set(wanted.map(({ record }) => record.letter.sequenceNumber));
    const read = await this.#peek(numbers);
    return versions.map(({ record, etag }): Judged => {
      const { letter, classification } = record;
      if (!numbers.has(letter.sequenceNumber)) {
        const again = classifier.judgeAgain(this.#source, letter, classification);
        return { record, etag, letter, classification: again, isReread: false, isMissing: false };
      }
      const found = read.get(letter.sequenceNumber);
      // A number that now belongs to another message is for the next survey to record.
      if (found === undefined || !isSameMessage(found.letter, letter)) {
        return { record, etag, letter, classification, isReread: false, isMissing: true };
      }
      const sections = () => broker.bodyOf(found.message);
      const anew = classifier.classify(this.#source, found.letter, sections);
      return { record, etag, letter: found.letter, classification: anew, isReread: true, isMissing: false };
    });
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }

  async #peek(numbers: ReadonlySet<SequenceNumber>): Promise<Map<SequenceNumber, ReadLetter>> {
    const found = new Map<SequenceNumber, ReadLetter>();
    const wanted = new Set(numbers);
    while (wanted.size > 0) {
      this.#queue ??= await this.#office.broker.open(this.#source);
      const first = [...wanted].reduce((a, b) => (compareSequenceNumbers(a, b) <= 0 ? a : b));
      for (const one of await this.#queue.peek(first, PART)) {
        if (wanted.delete(one.letter.sequenceNumber)) found.set(one.letter.sequenceNumber, one);
      }
      wanted.delete(first); // not there, if it was not in the page
    }
    return found;
  }
}
