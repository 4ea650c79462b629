/** What is never shown: values of properties with telling names and of those the catalog masks, wherever they come up again. */
import type { Source } from '../catalog.ts';
import type { Letter, LetterProperty } from '../letter.ts';

/** Properties whose values are never shown, whatever the catalog says. */
const SECRETS = /authorization|cookie|password|passwd|secret|token|api-?key|access-?key|signature|e-?mail|phone|iban/i;
export const MASKED = '***';

/** Shorter values are not looked for in texts: a `1` would be found everywhere. */
const MIN_REPEATED = 4;

/** Whether the catalog masks a name. */
export function isMasked(source: Source, name: string): boolean {
  return source.mask.some((masked) => masked.toLowerCase() === name.toLowerCase());
}

function isHidden(source: Source, name: string): boolean {
  return SECRETS.test(name) || isMasked(source, name);
}

/** The property as it may be shown. */
export function maskedProperty(source: Source, property: LetterProperty): LetterProperty {
  return isHidden(source, property.name) && property.value !== null ? { ...property, value: MASKED } : property;
}

/**
 * Makes texts that were read from a letter fit to be shown: an exception's message may quote a masked property, or be one.
 */
export function textMasker(source: Source, letter: Letter): (text: string) => string {
  const values = letter.properties
    .filter(({ name }) => isHidden(source, name))
    .flatMap(({ value }) => (value === null ? [] : [String(value).trim()]))
    .filter(({ length }) => length >= MIN_REPEATED);
  if (values.length === 0) return (text) => text;
  return (text) => {
    // The text may have been cut from the value.
    if (text.length >= MIN_REPEATED && values.some((value) => value.includes(text))) return MASKED;
    return values.reduce((shown, value) => shown.replaceAll(value, MASKED), text);
  };
}
