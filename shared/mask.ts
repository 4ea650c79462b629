/**
 * What is never shown: values of properties with telling names and of what the catalog masks, by name and by value: a text that
 * was read from such a place, or quotes it, is hidden wherever it stands. Values only.
 */
import type { Source } from './catalog.ts';
import type { Classification, Evidence } from './classify/evidence.ts';
import type { Letter, LetterProperty } from './letter.ts';
import type { LetterRecord } from './records/letterRecord.ts';

/** Properties whose values are never shown, whatever the catalog says. */
const SECRETS = /authorization|cookie|password|passwd|secret|token|api-?key|access-?key|signature|e-?mail|phone|iban/i;
export const MASKED = '***';

/** Shorter values are not looked for in texts: a `1` would be found everywhere. */
const MIN_REPEATED = 4;
/** The end of a cut text is compared with the beginning of a value from this length on. */
const MIN_CUT = 8;

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
  const masks = masksOf(source, letter, classification, [], (field) => hidden.add(field));
  return { letter: masks.letter(), classification: masks.classification(classification), hidden: [...hidden] };
}

/** A letter as it may be shown, where nothing but it is at hand. */
export function shownLetter(source: Masking, letter: Letter): Letter {
  const nothing = { evidence: {}, layers: [] } as const;
  return masksOf(source, letter, nothing, [], () => {}).letter();
}

/** A record as it may be shown. What its row says was hidden when it was written stays hidden: values may be cut there. */
export function shownRecord(source: Masking, record: LetterRecord): ShownRecord {
  const { letter, classification, hidden = [] } = record;
  const masks = masksOf(source, letter, classification, hidden, () => {});
  const all = { ...record, letter: masks.letter(), classification: masks.classification(classification) };
  return { ...all, cause: masks.text('cause', record.cause) } as ShownRecord;
}

function masksOf(
  source: Masking,
  letter: Letter,
  found: Pick<Classification, 'evidence' | 'layers'>,
  known: readonly string[],
  onHidden: (field: string) => void,
) {
  const hide = textMasker(valuesOf(source, letter, found));
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
    const value =
      typeof one.value === 'string' ? hide(one.value) : hide(String(one.value)) === MASKED ? MASKED : one.value;
    return { ...one, value };
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
): string[] {
  const values: string[] = [];
  const add = (value: unknown, min: number) => {
    const text = String(value ?? '').trim();
    if (text.length >= min) values.push(text);
  };
  for (const { name, type, value } of letter.properties) {
    // A short value of a name that only looks like a secret is too likely to be a count.
    if (isMasked(source, name)) add(value, type === 'boolean' ? MIN_REPEATED + 2 : 1);
    else if (isHidden(source, name)) add(value, MIN_REPEATED);
  }
  if (source.mask.length === 0) return values;
  for (const field of TEXT_FIELDS) if (isMasked(source, field)) add(letter[field], 1);
  for (const found of [evidence, ...layers.map((layer) => layer.evidence)]) {
    for (const [field, value] of Object.entries(found)) {
      if (typeof value === 'string' && field !== 'mechanism' && isMasked(source, field)) add(value, 1);
    }
  }
  return values;
}

/** Hides `values` in texts: a text that is one of them, or was read from one, wholly. */
function textMasker(values: readonly string[]): (text: string) => string {
  if (values.length === 0) return (text) => text;
  const long = [...new Set(values)].filter(({ length }) => length >= MIN_REPEATED).sort((a, b) => b.length - a.length);
  const folded = long.map(fold);
  return (text) => {
    const whole = text.trim();
    if (whole === '' || whole === MASKED) return text;
    if (values.includes(whole)) return MASKED;
    // Dialects take a name out of a longer value, and write it in their own way.
    const own = fold(whole);
    if (own.length >= MIN_REPEATED && folded.some((value) => value.includes(own))) return MASKED;
    return long.reduce((told, value) => withoutCutEnd(told.replaceAll(value, MASKED), value), text);
  };
}

/** Letters and digits alone. */
function fold(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
}

/** A text may have been cut in the middle of the value. */
function withoutCutEnd(text: string, value: string): string {
  for (let length = Math.min(value.length, text.length) - 1; length >= MIN_CUT; length--) {
    if (text.endsWith(value.slice(0, length))) return `${text.slice(0, -length)}${MASKED}`;
  }
  return text;
}
