/** Rows of letters as counts and groups see them: few columns, and what has to be right in them. */
import { z } from 'zod';
import { ADVICES, CATEGORIES } from '../classify/evidence.ts';
import { type Fingerprint, isCurrent } from '../classify/fingerprint.ts';
import type { SequenceNumber } from '../letter.ts';
import { MASKED } from '../maskedText.ts';
import type { Sighting } from '../records/group.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import { hiddenCell, sequenceNumber } from './letterRow.ts';
import { fingerprintCell, time } from './rows.ts';

/** Stands for rows of before there were groups, and for those that another version has put into theirs. */
export const UNGROUPED = '' as Fingerprint;

/** Columns that are counted. */
export const tallyRow = z.object({ category: z.enum(CATEGORIES), firstSeen: time });
/** What has to be right for a letter to be in a group. Tally and recount must agree on it, or passes would recount for ever. */
export const groupedRow = tallyRow.extend({
  sequenceNumber,
  advice: z.enum(ADVICES),
  fate: z.string(),
  fingerprint: fingerprintCell.optional().catch(undefined),
});
/** The columns that groups need. */
export const sightingRow = groupedRow.extend({
  cause: z.string().optional().catch(undefined),
  formerly: fingerprintCell.optional().catch(undefined),
  messageType: z.string().optional().catch(undefined),
  hidden: hiddenCell.optional(),
  returnedAt: time.optional().catch(undefined),
});
export type SightingRow = z.infer<typeof sightingRow>;

/** A letter as groups see it, in the group given. */
export function toSighting(
  { sequenceNumber, category, advice, fate, firstSeen, messageType, hidden, returnedAt }: SightingRow,
  {
    fingerprint,
    cause,
    formerly,
  }: Pick<LetterRecord, 'fingerprint' | 'cause'> & { formerly?: Fingerprint | undefined },
): Sighting {
  const group = { fingerprint, cause, formerly };
  const type = hidden?.includes('messageType') ? MASKED : messageType;
  const what = { category, advice, messageType: type || undefined };
  const replay = { sent: fate === 'replayed', returnedAt };
  return { ...group, ...what, ...replay, number: sequenceNumber, at: firstSeen, open: fate === 'open' };
}

/** The columns that holds need. */
export const memberRow = z.object({
  sequenceNumber,
  fingerprint: fingerprintCell,
  formerly: fingerprintCell.optional(),
});

/** A letter and its groups, as its row names them. */
export function toGrouped({ sequenceNumber, fingerprint, formerly }: z.infer<typeof memberRow>): Grouped {
  return { number: sequenceNumber, fingerprint: fingerprint ?? UNGROUPED, formerly };
}

/** A fingerprint of this version. */
export function currentOf(fingerprint: Fingerprint | undefined): Fingerprint | undefined {
  return fingerprint !== undefined && isCurrent(fingerprint) ? fingerprint : undefined;
}

/** An open letter and its groups. */
export interface Grouped {
  readonly number: SequenceNumber;
  readonly fingerprint: Fingerprint;
  readonly formerly: Fingerprint | undefined;
}

/** A record as groups see it. */
export function sightingOf(record: LetterRecord, returnedAt: number): Sighting {
  const { letter, classification, fingerprint, cause, firstSeen, closed, hidden = [] } = record;
  return {
    number: letter.sequenceNumber,
    fingerprint,
    cause,
    formerly: record.formerly,
    category: classification.category,
    advice: classification.advice,
    messageType: hidden.includes('messageType') ? MASKED : classification.evidence.messageType,
    at: firstSeen,
    open: closed === undefined,
    returnedAt,
  };
}
