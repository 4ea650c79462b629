/** Looking at letters. Nothing here locks, settles or changes anything. */
import type { Source } from '../catalog.ts';
import { OfficeError } from '../errors.ts';
import { parseSequenceNumber, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import { matches, type Selection } from '../selection.ts';
import type { LetterRecord } from '../store/letterRow.ts';

/** Most records that one list call looks through; a sparse selection comes back with a continuation instead of late. */
const MAX_LOOKED_AT = 5000;
const MAX_LIVES = 20;

/** One page of open letters that fit, lowest number first, how many rows could not be read, and where the next page begins. */
export async function listLetters(
  office: Office,
  source: Source,
  selection: Selection,
  top: number,
  continuation: string | undefined,
): Promise<{ records: LetterRecord[]; unreadable: number; continuation: SequenceNumber | undefined }> {
  const from = continuation === undefined ? undefined : parseSequenceNumber(continuation);
  if (continuation !== undefined && from === undefined) {
    throw new OfficeError('DLO_BAD_REQUEST', 'query.continuation: is not one that a list has returned');
  }
  const records: LetterRecord[] = [];
  let lookedAt = 0;
  let unreadable = 0;
  const onUnreadable = () => unreadable++;
  const options = { onUnreadable, ...(from !== undefined && { from }) };
  for await (const record of office.store.letters.open(source.key, options)) {
    if (records.length >= top || lookedAt >= MAX_LOOKED_AT) {
      return { records, unreadable, continuation: record.letter.sequenceNumber };
    }
    lookedAt++;
    if (matches(record, selection)) records.push(record);
  }
  return { records, unreadable, continuation: undefined };
}

/** One record. Throws `DLO_LETTER_UNKNOWN`. */
export async function getLetter(office: Office, source: Source, number: SequenceNumber): Promise<LetterRecord> {
  const record = await office.store.letters.get(source.key, number);
  if (record !== undefined) return record;
  throw new OfficeError('DLO_LETTER_UNKNOWN', `no letter ${number} of "${source.name}" is recorded`);
}

/** The earlier lives of a letter that was sent back, latest first: each death it has had in this source. */
export async function earlierLives(office: Office, source: Source, record: LetterRecord): Promise<LetterRecord[]> {
  const lives: LetterRecord[] = [];
  const seen = new Set<SequenceNumber>([record.letter.sequenceNumber]);
  let of = record.letter.replay.of;
  // The link is a property of the message and so anybody's word: never followed twice, nor for ever.
  while (of !== undefined && !seen.has(of) && lives.length < MAX_LIVES) {
    seen.add(of);
    const life = await office.store.letters.get(source.key, of);
    if (life === undefined || life.letter.messageId !== record.letter.messageId) break;
    lives.push(life);
    of = life.letter.replay.of;
  }
  return lives;
}

/** Counts of open letters by one of their traits. */
export const SUMMARY_KEYS = [
  'reason',
  'category',
  'advice',
  'rule',
  'exceptionType',
  'causeType',
  'messageType',
  'source',
  'day',
] as const;
export type SummaryKey = (typeof SUMMARY_KEYS)[number];

export interface SummaryLine {
  readonly key: string | null;
  readonly count: number;
  /** ms since 1970. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** Counts the open letters of `sources`, most frequent first. */
export async function summarise(office: Office, sources: readonly Source[], by: SummaryKey): Promise<SummaryLine[]> {
  const lines = new Map<string | null, { key: string | null; count: number; firstSeen: number; lastSeen: number }>();
  for (const source of sources) {
    for await (const record of office.store.letters.open(source.key)) {
      const key = trait(source, record, by);
      const line = lines.get(key);
      const seen = record.firstSeen;
      if (line === undefined) lines.set(key, { key, count: 1, firstSeen: seen, lastSeen: seen });
      else {
        line.count++;
        line.firstSeen = Math.min(line.firstSeen, seen);
        line.lastSeen = Math.max(line.lastSeen, seen);
      }
    }
  }
  return [...lines.values()].sort((a, b) => b.count - a.count || String(a.key).localeCompare(String(b.key)));
}

function trait(source: Source, { classification, firstSeen }: LetterRecord, by: SummaryKey): string | null {
  switch (by) {
    case 'source':
      return source.name;
    case 'day':
      return new Date(firstSeen).toISOString().slice(0, 10);
    case 'category':
    case 'advice':
    case 'rule':
      return classification[by];
    default:
      return classification.evidence[by] ?? null;
  }
}
