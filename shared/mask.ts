/**
 * What is never shown: values of properties with telling names and of what the catalog masks, by name and by value: a text that
 * was read from such a place, or quotes it, is hidden wherever it stands. Values only.
 */
import type { Source } from './catalog.ts';
import type { Classification, Evidence } from './classify/evidence.ts';
import type { Letter, LetterProperty } from './letter.ts';
import { type HiddenValue, MASKED, textMasker } from './maskedText.ts';
import type { LetterRecord } from './records/letterRecord.ts';

/** Properties whose values are never shown, whatever the catalog says. */
const SECRETS = /authorization|cookie|password|passwd|secret|token|api-?key|access-?key|signature|e-?mail|phone|iban/i;

/** A shorter value of a name that only looks like a secret is too likely to be a count. */
const MIN_SECRET = 4;
/** A longer text of evidence may be the beginning of what was there, see `LIMIT` of shared/classify/text.ts. */
const MAX_WHOLE = 500;

/** What `hidden` of a record calls the values of properties. */
const PROPERTIES = 'properties';

/** What of a source decides over masking. */
export type Masking = Pick<Source, 'mask'>;

declare const shown: unique symbol;
/** A record as it may be shown, listed, counted and filtered. */
export type ShownRecord = LetterRecord & { readonly [shown]: true };

/** What was found, fit to be shown, and the names of the fields in which something had to be hidden. */
export interface Shown {
  readonly classification: Classification;
  readonly hidden: readonly string[];
}

/** Fields of a letter that hold a sender's text. */
const TEXT_FIELDS = [
  'messageId',
  'correlationId',
  'subject',
  'contentType',
  'sessionId',
  'partitionKey',
  'to',
  'replyTo',
  'deadLetterSource',
  'reason',
  'description',
] as const;

/** Whether the catalog masks a name. */
export function isMasked({ mask }: Masking, name: string): boolean {
  return mask.some((masked) => masked.toLowerCase() === name.toLowerCase());
}

/** Whether values of properties of this name are hidden. */
export function isHidden(source: Masking, name: string): boolean {
  return SECRETS.test(name) || isMasked(source, name);
}

/** A letter and its judgement as they may be shown, when all of the letter is at hand. */
export function shownOf(source: Masking, letter: Letter, classification: Classification): Shown & { letter: Letter } {
  const hidden = new Set<string>();
  const masks = masksOf(source, letter, classification, {}, (field) => hidden.add(field));
  return { letter: masks.letter(), classification: masks.classification(classification), hidden: [...hidden] };
}

/** A letter as it may be shown, where nothing but it is at hand. */
export function shownLetter(source: Masking, letter: Letter): Letter {
  const nothing = { evidence: {}, layers: [] } as const;
  return masksOf(source, letter, nothing, {}, () => {}).letter();
}

/** A record as it may be shown. What its row says was hidden when it was written stays hidden: values may be cut there. */
export function shownRecord(source: Masking, record: LetterRecord): ShownRecord {
  const { letter, classification } = record;
  const masks = masksOf(source, letter, classification, record, () => {});
  const all = { ...record, letter: masks.letter(), classification: masks.classification(classification) };
  return { ...all, cause: masks.text('cause', record.cause) } as ShownRecord;
}

function masksOf(
  source: Masking,
  letter: Letter,
  found: Pick<Classification, 'evidence' | 'layers'>,
  { hidden: known = [], cut = [] }: Partial<Pick<LetterRecord, 'hidden' | 'cut'>>,
  onHidden: (field: string) => void,
) {
  const hide = textMasker(valuesOf(source, letter, found, cut));
  const text = (field: string, value: string): string => {
    const told = isMasked(source, field) ? MASKED : hide(value);
    if (told !== value) onHidden(field);
    return told === value && known.includes(field) ? MASKED : told;
  };
  const shownEvidence = (evidence: Evidence): Evidence =>
    Object.fromEntries(
      Object.entries(evidence).flatMap(([field, value]: [string, unknown]) => {
        // The office's own word for how it died, and numbers: hidden by name only, and then not there.
        if (field === 'mechanism' || typeof value !== 'string') return isMasked(source, field) ? [] : [[field, value]];
        return [[field, text(field, value)]];
      }),
    );
  const property = (one: LetterProperty): LetterProperty => {
    if (one.value === null) return one;
    if (isHidden(source, one.name)) return { ...one, value: MASKED };
    const told = hide(String(one.value));
    if (told !== String(one.value)) {
      onHidden(PROPERTIES);
      return { ...one, value: typeof one.value === 'string' ? told : MASKED };
    }
    // The property that is quoted here may have had no room on the record.
    const isDoubtful = typeof one.value === 'string' && known.includes(PROPERTIES) && cut.includes(PROPERTIES);
    return isDoubtful ? { ...one, value: MASKED } : one;
  };
  return {
    text,
    letter: (): Letter => {
      const texts = TEXT_FIELDS.map((field) => [field, letter[field] && text(field, letter[field])]);
      return { ...letter, ...Object.fromEntries(texts), properties: letter.properties.map(property) };
    },
    classification: (classification: Classification): Classification => ({
      ...classification,
      evidence: shownEvidence(classification.evidence),
      layers: classification.layers.map((layer) => ({ ...layer, evidence: shownEvidence(layer.evidence) })),
      ...(classification.error !== undefined && { error: text('error', classification.error) }),
    }),
  };
}

/** What must not be told: of hidden properties, and of what the letter and its evidence have under masked names. */
function valuesOf(
  source: Masking,
  letter: Letter,
  { evidence, layers }: Pick<Classification, 'evidence' | 'layers'>,
  cut: readonly string[],
): HiddenValue[] {
  const values: HiddenValue[] = [];
  const add = (value: unknown, min: number, isCut: boolean) => {
    const text = String(value ?? '').trim();
    if (text.length < min) return;
    values.push({ text, isCut });
    for (const part of partsOf(text)) values.push({ text: part, isCut: false });
  };
  for (const { name, type, value } of letter.properties) {
    const isCut = cut.includes(`${PROPERTIES}.${name}`);
    if (isMasked(source, name)) add(value, type === 'boolean' ? Number.POSITIVE_INFINITY : 1, isCut);
    else if (isHidden(source, name)) add(value, MIN_SECRET, isCut);
  }
  if (source.mask.length === 0) return values;
  for (const field of TEXT_FIELDS) if (isMasked(source, field)) add(letter[field], 1, cut.includes(field));
  const isFoundCut = cut.some((name) => /^(?:evidence|layers)\b/.test(name));
  for (const found of [evidence, ...layers.map((layer) => layer.evidence)]) {
    for (const [field, value] of Object.entries(found)) {
      if (typeof value !== 'string' || field === 'mechanism' || !isMasked(source, field)) continue;
      add(value, 1, isFoundCut || value.length > MAX_WHOLE);
    }
  }
  return values;
}

/** Texts and numbers in a value that is JSON: others quote one of them. One that is nested too deep for the parser has none. */
function partsOf(text: string): string[] {
  if (!/^[[{]/.test(text)) return [];
  const parts: string[] = [];
  try {
    JSON.parse(text, (_name, value: unknown) => {
      if (typeof value === 'string' || typeof value === 'number') parts.push(String(value));
      return value;
    });
  } catch {
    return [];
  }
  return parts.filter(({ length }) => length >= MIN_SECRET);
}
