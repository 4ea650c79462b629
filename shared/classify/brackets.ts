/** Objects and lists in a message. */
import { errorInJson, type Wording } from './errorJson.ts';
import { isMeaning, isName } from './meaning.ts';
import { SPOTS } from './spots.ts';

/**
 * Objects and lists that are told in a message (`{"id": 7}`, `Order{id=7}`, `[1, 2]`) are values, whatever is in them; but not an
 * error told as JSON, nor one that is told in brackets.
 */
export function markBrackets(text: string, wording: Wording): string {
  let result = '';
  let at = 0;
  while (at < text.length) {
    const open = text[at] as string;
    const isOpen = (open === '{' || open === '[') && !isQuotedMark(text, at);
    const end = isOpen ? closingOf(text, at) : -1;
    const inside = end < 0 ? '' : text.slice(at + 1, end);
    if (end >= 0 && (open === '{' ? /[:=,"]/ : ERROR_LIST.test(inside) ? NEVER : /,/).test(inside)) {
      const error = errorIn(text.slice(Math.max(0, at - AROUND), at), text.slice(at, end + 1), wording);
      result += error ?? SPOTS.value + kindsIn(inside, wording);
      at = end + 1;
    } else {
      result += open;
      at++;
    }
  }
  return result;
}

/** `'{'` in a parser's message is no object. */
function isQuotedMark(text: string, at: number): boolean {
  return /["'`“{[]/.test(text[at - 1] ?? '') && /["'`”{[]/.test(text[at + 1] ?? '');
}

const NEVER = /(?!)/;
/** `[ERROR: duplicate key …]` is what a database said, not a list. */
const ERROR_LIST = /^\s?(?:ERROR|FATAL|Error|[\w.]{1,200}(?:Exception|Error))\b/;

/** How much in front of a bracket is looked at, characters. */
const AROUND = 30;
/** What a program prints of an error of its own: Go `*Error{Condition: …}`, Rust `Os { kind: … }`, Node `{ errno: -111, code: … }`. */
const ERROR_OBJECT = /(?:Error|Exception|Fault|Failure|Err|Os)\s?$/;
const FIELD =
  /(?:^|[,{\s])["']?(code|kind|condition|errno|status|statusCode|errorCode|type|message|msg|description|detail)["']?\s?[:=]\s?("[^"]{0,300}"|'[^']{0,300}'|[^,{}]{1,200})/gi;

function errorIn(before: string, object: string, wording: Wording): string | undefined {
  // A message beside it, or it is somebody's data.
  const isJson = /"(?:message|msg|title|detail|error_?(?:message|description)?)"\s{0,3}:/i.test(object);
  const json = isJson ? errorInJson(object, wording) : undefined;
  if (json !== undefined) return json;
  const inside = object.slice(1, object.endsWith('}') ? -1 : undefined);
  if (!ERROR_OBJECT.test(before) && !/(?:^|[,\s])(?:errno|syscall)\s?:/.test(inside)) return undefined;
  const told = [...inside.matchAll(FIELD)].flatMap(([, name = '', value = '']) => {
    const plain = value.trim().replace(/^(["'])(.*)\1$/, '$2');
    if (/^(?:message|msg|description|detail)$/i.test(name)) return wording.text(plain);
    return isMeaning(plain) || isName(plain) || /^-?\d{1,6}$/.test(plain) ? wording.word(plain) : [];
  });
  return told.length === 0 ? undefined : `{${told.join(', ')}}`;
}

/** `[type=missing, input_value=…]`: what kind of mistake it was. */
function kindsIn(inside: string, wording: Wording): string {
  const kind = /(?:^|[,\s])type=([a-z_]{3,60})\b/.exec(inside)?.[1];
  return kind === undefined ? '' : ` ${wording.word(kind)}`;
}

/** Where a bracket is closed; the end of the text if it is cut before that. Looks at most a bounded way ahead. */
function closingOf(text: string, from: number): number {
  const limit = Math.min(text.length, from + 500);
  let depth = 0;
  for (let at = from; at < limit; at++) {
    const char = text[at];
    if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') depth--;
    if (depth === 0) return at;
  }
  return limit === text.length ? limit : -1;
}
