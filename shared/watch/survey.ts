import type { DeadLetterQueue, Sighting } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { compareSequenceNumbers, isSameMessage, type Letter, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import { tellLeft } from '../telemetry/tell.ts';
import { recordLetters } from './record.ts';
import { reopen } from './reopen.ts';

/** What a survey found. */
export interface Survey {
  readonly present: number;
  readonly recorded: number;
  /** Letters that were recorded as having left. */
  readonly reopened: number;
  readonly gone: number;
}

/** An open record whose letter was not met; one that cannot be read tells no letter. */
interface Doubt {
  readonly number: SequenceNumber;
  readonly letter: Letter | undefined;
}

const SCAN_PAGE = 250;
const PEEK_PAGE = 100;

/**
 * Compares the whole dead-letter queue with the records: what is not recorded is recorded, and an open record without
 * its letter is marked gone, but only after a peek of exactly that number. Locks and settles nothing.
 *
 * The scan always starts at the beginning: letters do not die in the order of their numbers, so no "highest seen" would do.
 */
export async function survey(office: Office, source: Source, queue: DeadLetterQueue): Promise<Survey> {
  // Rows that cannot be read: those whose letters are met are written anew.
  const unreadable = new Set<SequenceNumber>();
  const onUnreadable = (number: SequenceNumber | undefined) => number !== undefined && unreadable.add(number);
  const records = office.store.letters.open(source.key, { onUnreadable })[Symbol.asyncIterator]();
  let record = await nextRecord(records);
  let present = 0;
  let recorded = 0;
  const closed: SequenceNumber[] = [];
  const met = new Set<SequenceNumber>();
  const doubtful: Doubt[] = [];
  let from = '0' as SequenceNumber;
  for (;;) {
    const page = await queue.scan(from, SCAN_PAGE);
    if (page.length === 0) break;
    present += page.length;
    const unrecorded = new Set<SequenceNumber>();
    for (const sighting of page) {
      const { sequenceNumber } = sighting;
      // Records that the scan has passed. Partitioned entities are not scanned in order: then this only means more peeks.
      while (record !== undefined && compareSequenceNumbers(record.letter.sequenceNumber, sequenceNumber) < 0) {
        doubtful.push({ number: record.letter.sequenceNumber, letter: record.letter });
        record = await nextRecord(records);
      }
      const known = record?.letter.sequenceNumber === sequenceNumber ? record.letter : undefined;
      if (known !== undefined) record = await nextRecord(records);
      // Entities are recreated and numbering restarts: a known number does not make it a known message.
      if (known === undefined || !isSighted(known, sighting)) unrecorded.add(sequenceNumber);
    }
    recorded += unrecorded.size;
    for (const number of unrecorded) met.add(number);
    closed.push(...(await readAndRecord(office, source, queue, unrecorded)));
    from = after(page.map(({ sequenceNumber }) => sequenceNumber));
  }
  for (; record !== undefined; record = await nextRecord(records)) {
    doubtful.push({ number: record.letter.sequenceNumber, letter: record.letter });
  }
  for (const number of unreadable) if (!met.has(number)) doubtful.push({ number, letter: undefined });
  const gone = await settleDoubts(office, source, queue, doubtful);
  const reopened = await reopen(office, source, queue, closed);
  return { present, recorded, reopened, gone };
}

async function nextRecord(records: AsyncIterator<LetterRecord>): Promise<LetterRecord | undefined> {
  const next = await records.next();
  return next.done ? undefined : next.value;
}

function isSighted(letter: Letter, { messageId, enqueuedAt }: Sighting): boolean {
  return letter.messageId === messageId && letter.enqueuedAt === enqueuedAt;
}

function after(numbers: readonly SequenceNumber[]): SequenceNumber {
  const highest = numbers.reduce((a, b) => (compareSequenceNumbers(a, b) >= 0 ? a : b));
  return String(BigInt(highest) + 1n) as SequenceNumber;
}

async function readAndRecord(
  office: Office,
  source: Source,
  queue: DeadLetterQueue,
  wanted: Set<SequenceNumber>,
): Promise<SequenceNumber[]> {
  const closed: SequenceNumber[] = [];
  while (wanted.size > 0) {
    const first = [...wanted].reduce((a, b) => (compareSequenceNumbers(a, b) <= 0 ? a : b));
    const page = await queue.peek(first, PEEK_PAGE);
    const found = page.filter(({ letter }) => wanted.has(letter.sequenceNumber));
    closed.push(...(await recordLetters(office, source, found)));
    wanted.delete(first); // gone since the scan, if it was not in the page
    for (const { letter } of found) wanted.delete(letter.sequenceNumber);
  }
  return closed;
}

async function settleDoubts(
  office: Office,
  source: Source,
  queue: DeadLetterQueue,
  doubtful: readonly Doubt[],
): Promise<number> {
  let gone = 0;
  for (const { number, letter } of doubtful) {
    const there = await queue.peekOne(number);
    if (there === undefined) {
      if (await office.store.letters.markGone(source.key, number, office.clock())) gone++;
    } else if (letter === undefined || !isSameMessage(there.letter, letter)) {
      await recordLetters(office, source, [there]); // the entity was recreated: the number has a new owner
    }
  }
  tellLeft(office, source, 'gone', gone);
  return gone;
}
