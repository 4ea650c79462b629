/** Text, numbers and times from strangers, cut before anything looks through them. */

/** Longest texts, in characters. */
export const LIMIT = {
  /** Names: types, consumers, ids. */
  name: 512,
  /** An exception's message. It can hold personal data, and no more of it is kept than a reader needs. */
  message: 1000,
  /** Reason and description; Service Bus allows no more. */
  reason: 4096,
  /** A stack trace, from which one frame is kept. Its top is what counts. */
  stack: 32_768,
} as const;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ALL_CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** `text` cut to `max` characters, without control characters (line feeds and tabs stay) and outer blanks; `undefined` if nothing is left. */
export function clean(text: string | undefined, max: number): string | undefined {
  if (text === undefined) return undefined;
  const cut = text.length > max ? text.slice(0, max) : text;
  const plain = CONTROLS.test(cut) ? cut.replaceAll('\r', '').replace(ALL_CONTROLS, ' ') : cut;
  return plain.trim() || undefined;
}

/** The text up to the first line end. */
export function firstLine(text: string): string {
  const end = text.indexOf('\n');
  return (end < 0 ? text : text.slice(0, end)).trimEnd();
}

/** A count: a whole number from 0 to 2^31 - 1, also as decimal text; `undefined` for everything else. */
export function countOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 && number < 2 ** 31 ? number : undefined;
}

/** End of the year 9999: the last time that a table can hold. */
const LAST_TIME = 253_402_300_799_999;

/** A number of ms since 1970, also as decimal text; `undefined` for everything else. */
export function unixMs(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number > 0 && number <= LAST_TIME
    ? number
    : undefined;
}

const ISO = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:?\d\d)$/;

/** ISO 8601 with its zone, in ms since 1970. Without a zone it would be a guess, and so is `undefined`. */
export function isoTime(value: unknown): number | undefined {
  return typeof value === 'string' && ISO.test(value) ? unixMs(Date.parse(value)) : undefined;
}

/** `Ns.Type` of an assembly-qualified .NET type name such as `Ns.Type, Assembly, Version=1.0.0.0`. */
export function typeName(qualified: string | undefined): string | undefined {
  if (qualified === undefined) return undefined;
  let depth = 0;
  for (let i = 0; i < qualified.length; i++) {
    const c = qualified[i];
    if (c === '[') depth++;
    else if (c === ']') depth--;
    else if ((c === ',' || c === ';') && depth <= 0) return qualified.slice(0, i).trim() || undefined;
  }
  return qualified.trim() || undefined;
}

/** Trace id of a W3C `traceparent`, or the root of an older hierarchical id (`|root.1.`); `undefined` for anything else. */
export function traceIdOf(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const w3c = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/i.exec(value)?.[1];
  if (w3c !== undefined) return /^0+$/.test(w3c) ? undefined : w3c.toLowerCase();
  return /^\|([\w-]{8,100})\./.exec(value)?.[1];
}

/** An object with the fields that have a value. */
export function present<const Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  const result: { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } = {};
  for (const name in fields) {
    if (fields[name] !== undefined) result[name] = fields[name] as Exclude<Fields[typeof name], undefined>;
  }
  return result;
}

/** A JSON object, or `undefined`: arrays and null are none. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/** An own field of a JSON object as clean text; `undefined` when it is no text. */
export function textIn(object: Readonly<Record<string, unknown>> | undefined, name: string, max: number = LIMIT.name) {
  const value = object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
  return typeof value === 'string' ? clean(value, max) : undefined;
}
