import type { DeadLetterQueue, Sighting } from '../broker.ts';
import type { Source } from '../catalog.ts';
import { compareSequenceNumbers, isSameMessage, type Letter, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../store/letterRow.ts';
import { tellLeft } from '../telemetry/tell.ts';
import { recordLetters } from './record.ts';

/** What a survey found. */
export interface Survey {
  readonly present: number;
  readonly recorded: number;
  readonly gone: number;
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
  const records = office.store.letters.open(source.key)[Symbol.asyncIterator]();
  let record = await nextRecord(records);
  let present = 0;
  let recorded = 0;
  const doubtful: LetterRecord[] = [];
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
        doubtful.push(record);
        record = await nextRecord(records);
      }
      const known = record?.letter.sequenceNumber === sequenceNumber ? record.letter : undefined;
      if (known !== undefined) record = await nextRecord(records);
      // Entities are recreated and numbering restarts: a known number does not make it a known message.
      if (known === undefined || !isSighted(known, sighting)) unrecorded.add(sequenceNumber);
    }
    recorded += unrecorded.size;
    await readAndRecord(office, source, queue, unrecorded);
    from = after(page.map(({ sequenceNumber }) => sequenceNumber));
  }
  for (; record !== undefined; record = await nextRecord(records)) doubtful.push(record);
  const gone = await settleDoubts(office, source, queue, doubtful);
  return { present, recorded, gone };
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
): Promise<void> {
  while (wanted.size > 0) {
    const first = [...wanted].reduce((a, b) => (compareSequenceNumbers(a, b) <= 0 ? a : b));
    const page = await queue.peek(first, PEEK_PAGE);
    const found = page.filter(({ letter }) => wanted.has(letter.sequenceNumber));
    await recordLetters(office, source, found);
    wanted.delete(first); // gone since the scan, if it was not in the page
    for (const { letter } of found) wanted.delete(letter.sequenceNumber);
  }
}

async function settleDoubts(
  office: Office,
  source: Source,
  queue: DeadLetterQueue,
  doubtful: readonly LetterRecord[],
): Promise<number> {
  let gone = 0;
  for (const { letter } of doubtful) {
    const there = await queue.peekOne(letter.sequenceNumber);
    if (there === undefined) {
      if (await office.store.letters.markGone(source.key, letter.sequenceNumber, office.clock())) gone++;
    } else if (!isSameMessage(there.letter, letter)) {
      await recordLetters(office, source, [there]); // the entity was recreated: the number has a new owner
    }
  }
  tellLeft(office, source, 'gone', gone);
  return gone;
}
