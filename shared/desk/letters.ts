/** Looking at letters. Nothing here locks, settles or changes anything. */
import type { Source } from '../catalog.ts';
import { OfficeError } from '../errors.ts';
import { parseSequenceNumber, type SequenceNumber } from '../letter.ts';
import { type ShownRecord, shownRecord } from '../mask.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import { matches, refuseMasked, type Selection } from '../selection.ts';

/** Most records that one list call looks through; a sparse selection comes back with a continuation instead of late. */
const MAX_LOOKED_AT = 5000;

/** One page of open letters that fit, lowest number first, how many rows could not be read, and where the next page begins. */
export async function listLetters(
  office: Office,
  source: Source,
  selection: Selection,
  top: number,
  continuation: string | undefined,
): Promise<{ records: ShownRecord[]; unreadable: number; continuation: SequenceNumber | undefined }> {
  const from = continuation === undefined ? undefined : parseSequenceNumber(continuation);
  if (continuation !== undefined && from === undefined) {
    throw new OfficeError('DLO_BAD_REQUEST', 'query.continuation: is not one that a list has returned');
  }
  refuseMasked(source, selection);
  const records: ShownRecord[] = [];
  let lookedAt = 0;
  let unreadable = 0;
  const onUnreadable = () => unreadable++;
  const options = { onUnreadable, ...(from !== undefined && { from }) };
  for await (const record of office.store.letters.open(source.key, options)) {
    if (records.length >= top || lookedAt >= MAX_LOOKED_AT) {
      return { records, unreadable, continuation: record.letter.sequenceNumber };
    }
    lookedAt++;
    const shown = shownRecord(source, record);
    if (matches(shown, selection)) records.push(shown);
  }
  return { records, unreadable, continuation: undefined };
}

/** One record. Throws `DLO_LETTER_UNKNOWN`. */
export async function getLetter(office: Office, source: Source, number: SequenceNumber): Promise<LetterRecord> {
  const record = await office.store.letters.get(source.key, number);
  if (record !== undefined) return record;
  throw new OfficeError('DLO_LETTER_UNKNOWN', `no letter ${number} of "${source.name}" is recorded`);
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
  'fingerprint',
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
      const key = trait(source, shownRecord(source, record), by);
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

function trait(source: Source, { classification, firstSeen, fingerprint }: ShownRecord, by: SummaryKey): string | null {
  switch (by) {
    case 'source':
      return source.name;
    case 'day':
      return new Date(firstSeen).toISOString().slice(0, 10);
    case 'fingerprint':
      return fingerprint;
    case 'category':
    case 'advice':
    case 'rule':
      return classification[by];
    default:
      return classification.evidence[by] ?? null;
  }
}
