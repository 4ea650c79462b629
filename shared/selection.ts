/** Which letters: the choice an operator makes, in JSON and as a query string, and whether a record fits it. */
import { z } from 'zod';
import type { Source } from './catalog.ts';
import { ADVICES, CATEGORIES } from './classify/evidence.ts';
import { type Fingerprint, parseFingerprint } from './classify/fingerprint.ts';
import { OfficeError } from './errors.ts';
import { parseSequenceNumber, type SequenceNumber } from './letter.ts';
import { isHidden, isMasked, type ShownRecord } from './mask.ts';

const text = z.string().min(1).max(4096);
const texts = z.array(text).min(1).max(100);

/** What Azure Tables can hold and compare with: from the year 1601 to the end of 9999. */
const FIRST_TIME = Date.UTC(1601, 0, 1);
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A point in time at the door, ISO 8601 with its zone; ms since 1970 after parsing. */
export const instant = z.iso
  .datetime({ offset: true })
  .transform((iso) => Date.parse(iso))
  .refine((ms) => ms >= FIRST_TIME && ms <= LAST_TIME, 'must be between the years 1601 and 9999 (UTC)');

/** A sequence number at the door: a decimal string, because JSON numbers lose digits above 2^53. */
export const sequenceNumberSchema = z.string().transform((value, context): SequenceNumber => {
  const number = parseSequenceNumber(value);
  if (number !== undefined) return number;
  context.addIssue({
    code: 'custom',
    message: 'must be a decimal sequence number between 0 and 2^63 - 1, as a string',
  });
  return z.NEVER;
});

/** A fingerprint at the door. */
export const fingerprintSchema = z.string().transform((text, context): Fingerprint => {
  const fingerprint = parseFingerprint(text);
  if (fingerprint !== undefined) return fingerprint;
  context.addIssue({ code: 'custom', message: 'must be a fingerprint such as f2-Em64n7F0qPnVf_khsfbCJo' });
  return z.NEVER;
});

/** Traits by which letters are chosen from a list of values. */
const lists = {
  reason: texts.optional(),
  category: z.array(z.enum(CATEGORIES)).min(1).optional(),
  advice: z.array(z.enum(ADVICES)).min(1).optional(),
  exceptionType: texts.optional(),
  causeType: texts.optional(),
  rule: texts.optional(),
  messageType: texts.optional(),
  messageId: texts.optional(),
  sequenceNumber: z.array(sequenceNumberSchema).min(1).max(1000).optional(),
  fingerprint: z.array(fingerprintSchema).min(1).max(100).optional(),
};
export type ListTrait = keyof typeof lists;
export const LIST_TRAITS = Object.keys(lists) as ListTrait[];
/** Traits with one value a letter; a cause has two names. */
type PlainTrait = Exclude<ListTrait, 'fingerprint'>;
const PLAIN_TRAITS = LIST_TRAITS.filter((trait): trait is PlainTrait => trait !== 'fingerprint');

/** All conditions given must hold; in a list, any one. Without conditions it is every open letter. */
export const selectionSchema = z.strictObject({
  ...lists,
  /** Letters to leave out: any value of any of these lists. */
  not: z.strictObject(lists).optional(),
  /** When the office first saw the letter. */
  seenFrom: instant.optional(),
  seenTo: instant.optional(),
  /** When the broker first accepted the message. */
  enqueuedFrom: instant.optional(),
  enqueuedTo: instant.optional(),
  /** An application property and the value it must have, compared as text. */
  property: z.strictObject({ name: z.string().min(1).max(256), equals: z.string().max(4096) }).optional(),
  minReplayCount: z.number().int().min(0).max(1_000_000).optional(),
  maxReplayCount: z.number().int().min(0).max(1_000_000).optional(),
});

/** A checked selection. Times are ms since 1970. */
export type Selection = z.infer<typeof selectionSchema>;

/** The selection as it was given: times are ISO 8601 again. */
export function selectionToJson(selection: Selection): Record<string, unknown> {
  const times = ['seenFrom', 'seenTo', 'enqueuedFrom', 'enqueuedTo'] as const;
  const json: Record<string, unknown> = { ...selection };
  for (const name of times) {
    if (selection[name] !== undefined) json[name] = new Date(selection[name]).toISOString();
  }
  return json;
}

/**
 * Throws `DLO_FILTER_MASKED` when a selection asks for what the source masks: whether a guess is right would tell the value.
 * The other filters see only what is shown.
 */
export function refuseMasked(source: Source, selection: Selection): void {
  const { property, not } = selection;
  const trait = LIST_TRAITS.find(
    (one) => isMasked(source, one) && (selection[one] !== undefined || not?.[one] !== undefined),
  );
  const isProperty = property !== undefined && isHidden(source, property.name);
  if (trait === undefined && !isProperty) return;
  const what = isProperty ? 'a property' : `"${trait}"`;
  throw new OfficeError(
    'DLO_FILTER_MASKED',
    `the selection asks for ${what} whose values are masked in "${source.name}"`,
  );
}

/** Whether a recorded letter fits, by what is shown of it. Values are compared exactly, reasons without regard to case and outer blanks. */
export function matches(record: ShownRecord, selection: Selection): boolean {
  const { letter } = record;
  return (
    PLAIN_TRAITS.every((trait) => fitsLists(trait, traitOf(record, trait), selection)) &&
    fitsCause(record, selection) &&
    within(record.firstSeen, selection.seenFrom, selection.seenTo) &&
    within(letter.enqueuedAt, selection.enqueuedFrom, selection.enqueuedTo) &&
    within(letter.replay.count, selection.minReplayCount, selection.maxReplayCount) &&
    (selection.property === undefined || hasProperty(record, selection.property))
  );
}

/** A cause may be named by the fingerprint that an earlier version gave it: runbooks and scripts do. */
function fitsCause({ fingerprint, formerly }: ShownRecord, { fingerprint: wanted, not }: Selection): boolean {
  const isIn = (list: readonly Fingerprint[]) =>
    list.includes(fingerprint) || (formerly !== undefined && list.includes(formerly));
  return (wanted === undefined || isIn(wanted)) && (not?.fingerprint === undefined || !isIn(not.fingerprint));
}

function fitsLists(trait: PlainTrait, value: string | undefined, selection: Selection): boolean {
  const wanted: readonly string[] | undefined = selection[trait];
  const unwanted: readonly string[] | undefined = selection.not?.[trait];
  const fold = trait === 'reason' ? (text: string) => text.trim().toLowerCase() : (text: string) => text;
  const isIn = (list: readonly string[]) => value !== undefined && list.some((one) => fold(one) === fold(value));
  return (wanted === undefined || isIn(wanted)) && (unwanted === undefined || !isIn(unwanted));
}

function traitOf({ classification, letter }: ShownRecord, trait: PlainTrait): string | undefined {
  switch (trait) {
    case 'category':
    case 'advice':
    case 'rule':
      return classification[trait];
    case 'messageId':
    case 'sequenceNumber':
      return letter[trait];
    default:
      return classification.evidence[trait];
  }
}

/** From inclusive, to inclusive. */
function within(value: number, from: number | undefined, to: number | undefined): boolean {
  return (from === undefined || value >= from) && (to === undefined || value <= to);
}

function hasProperty(record: ShownRecord, wanted: { name: string; equals: string }): boolean {
  return record.letter.properties.some(({ name, value }) => name === wanted.name && String(value) === wanted.equals);
}
