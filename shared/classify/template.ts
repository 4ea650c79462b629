/**
 * The fixed part of an error text. What varies from letter to letter (ids, numbers, times, quoted values, hosts, paths, addresses)
 * becomes a placeholder, so that texts of one cause are alike, and so that no personal data gets into a group. What says what went
 * wrong stays: codes, statuses, names of types and columns; an error told as JSON is read.
 *
 * What is decided here and in what it imports decides fingerprints of version 2: a change that is not a new version tears groups apart.
 */

import { markBrackets } from './brackets.ts';
import { keepCodes } from './codes.ts';
import { errorInJson, type Wording } from './errorJson.ts';
import { isMeaning, isName, isSentence, meaningOf, withoutIndexes } from './meaning.ts';
import { Kept, SPOT, SPOTS } from './spots.ts';
import { markTokens } from './varying.ts';

/** A text without its varying parts. */
export interface Template {
  /** Lower case words with `*` for what varies; compared. */
  readonly key: string;
  /** The same for people: `The request to <url> timed out after <number>`. */
  readonly words: string;
}

/** Longest text that is looked at, characters. What comes behind tells no more of the cause, and a sender could make it any length. */
const MAX_TEXT = 2000;
const MAX_KEY_WORDS = 48;
const MAX_WORDS = 200;

const NAMES = new Map(Object.entries(SPOTS).map(([name, spot]) => [spot, `<${name}>`]));

/** The template of a text. Linear in its length, which is cut first; never throws. */
export function templateOf(text: string): Template {
  const kept = new Kept();
  const marked = markText(text, kept, 0);
  return { key: keyOf(marked, kept), words: wordsOf(marked, kept) };
}

/** Texts in JSON in texts: followed so far. */
const MAX_DEPTH = 3;
/** Longest JSON that is read, characters; a description of Service Bus has no more than half of it. */
const MAX_JSON = 8000;

function markText(text: string, kept: Kept, depth: number): string {
  if (depth > MAX_DEPTH) return SPOTS.value;
  const json = errorInJson(text.slice(0, MAX_JSON), wordingOf(kept, depth));
  if (json !== undefined) return json;
  const plain = withoutStack(text);
  const inner = unquoted(plain);
  if (inner === undefined) return markTokens(keepCodes(markSpans(plain, kept, depth), kept), kept);
  if (isName(inner) && (isMeaning(inner) || !/^\p{Lu}\p{Ll}*$/u.test(inner))) return kept.keep(inner);
  return /^[[{]/.test(inner) || isSentence(inner) ? markText(inner, kept, depth + 1) : SPOTS.value;
}

function wordingOf(kept: Kept, depth: number): Wording {
  return {
    word: (word) => kept.keep(word),
    text: (told) => markText(told, kept, depth + 1),
    plain: (told) => kept.restore(told),
  };
}

/** What is in a text that is in quotes as a whole: as JSON writes a text, and Python the key that was not there. */
function unquoted(text: string): string | undefined {
  const inner = /^(["'`])(.+)\1[.!]?$/.exec(text)?.[2] ?? /^[“„«»‘](.+)[”“»«’][.!]?$/.exec(text)?.[1];
  if (inner === undefined) return undefined;
  if (!text.startsWith('"')) return /["'`“”«»]/.test(inner) ? undefined : inner.trim();
  return /(?<!\\)"/.test(inner) ? undefined : inner.replace(/\\(["\\/])/g, '$1').trim();
}

/** The message without the stack below it. Python tells the message last. */
function withoutStack(text: string): string {
  const isTraceback = /^\s{0,20}Traceback \(most recent/.test(text);
  const part = isTraceback ? lastMessage(text.slice(-MAX_TEXT)) : text.slice(0, MAX_TEXT);
  const stack = part.search(
    /[\r\n]\s{0,20}(?:at |--- |Traceback |#0 |File "|goroutine \d)|[\r\n]\s{2,20}\S{1,10} [\w.<>`$+[\],/]{3,300}\(/,
  );
  return (stack < 0 ? part : part.slice(0, stack)).replace(/[\p{C}\s]+/gu, ' ').trim();
}

/** The last line that is not indented: an indented one is code, and then the end of the traceback was cut off. */
function lastMessage(text: string): string {
  const lines = text.trimEnd().split(/[\r\n]+/);
  return (
    lines.slice(1).findLast((line) => /^[^\s^~]/.test(line) && !line.startsWith('Traceback ')) ?? 'Traceback, cut off'
  );
}

const DAY = '(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\\.?';
const DIGIT = /\d/;
/** Instead of a placeholder: what is in quotes is a value or not, by what stands around it. */
const QUOTED = '';
/**
 * What varies and spans separators, in the order it is looked for, and without which a text has none of it. Every repetition is
 * bounded: no text makes these slow.
 */
const SPANS: readonly (readonly [needs: RegExp, pattern: RegExp, spot: string])[] = [
  [/:\/\//, /\b[a-z][a-z0-9+.:-]{1,30}:\/\/[^\s"'<>\uE000-\uE007]{1,1000}/gi, SPOTS.url],
  [/'/, /(?<![\p{L}\p{N}])'(?:[^']|(?<=\p{L})'(?=\p{L})){0,300}'(?![\p{L}\p{N}])/gu, QUOTED],
  [/"/, /"[^"]{0,300}"/g, QUOTED],
  [/`/, /`[^`]{0,300}`/g, QUOTED],
  [/[“„«‘]/, /[“„«‘][^”“»’]{0,300}[”“»’]/g, QUOTED],
  [/»/, /»[^«]{0,300}«/g, QUOTED],
  [/=\(/, /(?<==)\([^)]{1,300}\)/g, SPOTS.value],
  [/@/, /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g, SPOTS.address],
  [DIGIT, /\b(?:\d{1,3}\.){3}\d{1,3}\b/g, SPOTS.host],
  [
    DIGIT,
    /\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,:]\d{1,9})?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?/g,
    SPOTS.time,
  ],
  [DIGIT, new RegExp(`\\b${DAY}\\d{1,2}[ -]${MONTH}[ -]\\d{2,4}\\b`, 'g'), SPOTS.time],
  [DIGIT, new RegExp(`\\b${DAY}${MONTH} \\d{1,2}(?:, ?\\d{4})?\\b`, 'g'), SPOTS.time],
  [DIGIT, /\b\d{1,4}[/.]\d{1,2}[/.]\d{2,4}\b(?![.\d])/g, SPOTS.time],
  [DIGIT, /\b(?:\d{1,5}\.)?\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AP]M\b)?(?![\d:])/g, SPOTS.time],
  [DIGIT, /\bP(?=[\dT])(?:\d{1,9}[YMWD]){0,4}(?:T(?:\d{1,9}(?:\.\d{1,9})?[HMS]){1,3})?(?!\w)/g, SPOTS.time],
  [/:.{0,4}:/, /(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])/gi, SPOTS.host],
  [/\\/, /(?:\b[A-Za-z]:\\|\\\\)[^\s"'<>|,;()]{1,300}/g, SPOTS.path],
  [/\//, /(?<![\w.:<\uE000-\uE007])[~.]{0,2}\/[^\s"'<>:;,()\]]{1,300}/g, SPOTS.path],
];

function markSpans(text: string, kept: Kept, depth: number): string {
  // Private-use characters are taken for ours from here on; `withoutStack` has replaced those of the sender.
  let marked = markBrackets(text, wordingOf(kept, depth));
  for (const [needs, pattern, spot] of SPANS) {
    if (!needs.test(marked)) continue;
    marked =
      spot === QUOTED
        ? marked.replace(pattern, (match, offset: number, whole: string) => markQuoted(match, offset, whole, kept))
        : marked.replace(pattern, spot);
  }
  return marked;
}

/** How much around a quoted part is looked at, characters. */
const AROUND = 60;

function markQuoted(match: string, offset: number, whole: string, kept: Kept): string {
  const end = offset + match.length;
  const quoted = match.slice(1, -1);
  const meaning = meaningOf(whole.slice(Math.max(0, offset - AROUND), offset), quoted, whole.slice(end, end + AROUND));
  if (meaning === undefined) return SPOTS.value;
  return meaning === 'text' ? match : `${match[0]}${kept.keep(withoutIndexes(quoted))}${match.at(-1)}`;
}

/** Words that belong to the number before or behind them: its unit or currency. */
const UNITS = new Set(
  (
    'ms msec millisecond milliseconds s sec secs second seconds m min mins minute minutes h hr hrs hour hours day days week weeks ' +
    'b byte bytes kb mb gb tb kib mib gib percent am pm utc gmt cet cest eur usd gbp chf jpy sek nok dkk pln czk huf cad aud nzd cny inr brl ' +
    'mxn zar try krw sgd hkd'
  ).split(' '),
);

function keyOf(marked: string, kept: Kept): string {
  const words =
    kept
      .restore(marked.replace(SPOT, ' * '))
      .toLowerCase()
      .match(/\*|[\p{L}\p{N}_.$-]*[\p{L}\p{N}]/gu) ?? [];
  const key: string[] = [];
  for (const word of words) {
    const last = key.at(-1);
    if (word === '*') {
      // One value or a list of them, with a unit before them or not: all the same.
      if (last !== undefined && UNITS.has(last) && last.length === 3) key.pop();
      if ((key.at(-1) === 'and' || key.at(-1) === 'or') && key.at(-2) === '*') key.pop();
      if (key.at(-1) !== '*') key.push(word);
    } else if (last !== '*') key.push(word);
    else if (!UNITS.has(word)) key.push(word.length > 3 ? word.replace(/s$/, '') : word); // 1 item, 2 items
    if (key.length > MAX_KEY_WORDS) break;
  }
  return key.slice(0, MAX_KEY_WORDS).join(' ');
}

function wordsOf(marked: string, kept: Kept): string {
  const named = kept
    .restore(marked.replace(/([\uE000-\uE007])(?:[\s,;:.-]{0,3}\1){1,200}/g, '$1'))
    .replace(SPOT, (spot) => NAMES.get(spot) ?? '');
  return named.length <= MAX_WORDS ? named : `${named.slice(0, MAX_WORDS - 1).trimEnd()}…`;
}
