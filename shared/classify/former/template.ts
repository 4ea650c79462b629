/**
 * The fixed part of an error text. What varies from letter to letter (ids, numbers, times, quoted values, hosts, paths, addresses)
 * becomes a placeholder, so that texts of one cause are alike, and so that no personal data gets into a group.
 *
 * As it was for fingerprints of version 1; see fingerprint.ts beside it.
 */

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

/** Placeholders while a text is worked on: private-use characters, which are taken out of the text first. */
const SPOTS = {
  number: '\uE000',
  id: '\uE001',
  time: '\uE002',
  value: '\uE003',
  host: '\uE004',
  path: '\uE005',
  url: '\uE006',
  address: '\uE007',
};
const SPOT = /[\uE000-\uE007]/g;
const NAMES = new Map(Object.entries(SPOTS).map(([name, spot]) => [spot, `<${name}>`]));
/** Digits that mean something (a status, a vendor's error code) wait here until numbers have been replaced. */
const KEPT = 0xe010;
const KEPT_DIGIT = /[\uE010-\uE019]/g;

/** The template of a text. Linear in its length, which is cut first; never throws. */
export function templateOf(text: string): Template {
  const marked = markTokens(keepCodes(markSpans(withoutStack(text))));
  return { key: keyOf(marked), words: wordsOf(marked) };
}

/** The message without the stack below it. Python tells the message last. */
function withoutStack(text: string): string {
  const isTraceback = /^\s{0,20}Traceback \(most recent/.test(text);
  const part = isTraceback ? lastLine(text.slice(-MAX_TEXT)) : text.slice(0, MAX_TEXT);
  const stack = part.search(/[\r\n]\s{0,20}(?:at |--- End of|Traceback |#0 |File ")/);
  return (stack < 0 ? part : part.slice(0, stack)).replace(/[\p{C}\s]+/gu, ' ').trim();
}

function lastLine(text: string): string {
  return (
    text
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1) ?? ''
  );
}

const DAY = '(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\\.?';
const DIGIT = /\d/;
/**
 * What varies and spans separators, in the order it is looked for, and without which a text has none of it. Every repetition is
 * bounded: no text makes these slow.
 */
const SPANS: readonly (readonly [needs: RegExp, pattern: RegExp, spot: string])[] = [
  [/:\/\//, /\b[a-z][a-z0-9+.:-]{1,30}:\/\/[^\s"'<>\uE000-\uE007]{1,1000}/gi, SPOTS.url],
  [/'/, /(?<![\p{L}\p{N}])'(?:[^']|(?<=\p{L})'(?=\p{L})){0,300}'(?![\p{L}\p{N}])/gu, SPOTS.value],
  [/"/, /"[^"]{0,300}"/g, SPOTS.value],
  [/`/, /`[^`]{0,300}`/g, SPOTS.value],
  [/[“„«‘]/, /[“„«‘][^”“»’]{0,300}[”“»’]/g, SPOTS.value],
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

function markSpans(text: string): string {
  // Private-use characters are taken for ours from here on; `withoutStack` has replaced those of the sender.
  let marked = markBrackets(text);
  for (const [needs, pattern, spot] of SPANS) if (needs.test(marked)) marked = marked.replace(pattern, spot);
  return marked;
}

/** Objects and lists that are told in a message (`{"id": 7}`, `Order{id=7}`, `[1, 2]`) are values, whatever is in them. */
function markBrackets(text: string): string {
  let result = '';
  let at = 0;
  while (at < text.length) {
    const open = text[at] as string;
    const end = open === '{' || open === '[' ? closingOf(text, at) : -1;
    const inside = end < 0 ? '' : text.slice(at + 1, end);
    if (end >= 0 && (open === '{' ? /[:=,"]/ : /,/).test(inside)) {
      result += SPOTS.value;
      at = end + 1;
    } else {
      result += open;
      at++;
    }
  }
  return result;
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

/** A status of HTTP, an error number of a database or an operating system: these say what went wrong. */
const CODES: readonly RegExp[] = [
  /\b(?:status(?:[ _-]?code)?|HTTP(?:\/\d(?:\.\d)?)?)[\s:=#("'-]{0,3}(?:code[\s:=]{0,2}|is |was |of |does not indicate success: ){0,2}([1-5]\d\d)\b/gi,
  /\b(?:errno|error (?:code|number|no\.?)|errorcode)[\s:=#("'-]{0,3}(\d{1,6})\b/gi,
  /\bSQLSTATE[\s:=#(["'-]{0,3}([0-9A-Z]{5})\b/g,
  /\b((?:ORA|TNS|PLS)-\d{3,5}|SQL\d{4,5}[NCW]|AADSTS\d{4,7}|E11000)\b/g,
];

function keepCodes(text: string): string {
  const keep = (match: string, code: string) => {
    const at = match.lastIndexOf(code);
    const kept = code.replace(/\d/g, (digit) => String.fromCharCode(KEPT + Number(digit)));
    return match.slice(0, at) + kept + match.slice(at + code.length);
  };
  const kept = CODES.reduce((result, pattern) => result.replace(pattern, keep), text);
  // What stands behind `=`, or behind a colon after a name for somebody or something, is a value.
  return kept
    .replace(
      /([\p{L}_][\p{L}\p{N}_.-]{0,60} ?= ?)([^\s=,;&)\]}>\uE000-\uE019][^\s,;&)\]}]{0,200})/gu,
      `$1${SPOTS.value}`,
    )
    .replace(
      /\b((?:\w{0,30}id|name|user|username|login|customer|account|tenant|token) ?: ?)([^\s,;&)\]}\uE000-\uE019]{1,200})/gi,
      `$1${SPOTS.value}`,
    );
}

/** Words with digits that are words all the same. */
const KNOWN_WORDS =
  /^(?:u?int(?:8|16|32|64|128)|float(?:16|32|64)|utf-?(?:8|16|32)|base(?:32|58|64)(?:url)?|sha-?\d{1,3}|md5|oauth2?|http\/?[123](?:\.\d)?|h2|s3|ec2|x\.?509|ipv[46]|log4j|iso-?8601|rfc-?\d{3,4}|v\d{1,2}|tls(?:v?1(?:\.\d)?)?|win32|json5|[a-z]+`\d)$/i;
const HOST =
  /^(?!(?:com|org|net|io|dev|de|eu)\.)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,8}\.(?:com|net|org|io|dev|app|eu|de|uk|us|cloud|internal|local|localhost|svc|cluster|lan|corp|home|test|example|invalid)\.?$/;

function markTokens(text: string): string {
  return text.replace(/[^\s,;:()[\]{}<>|=!?"'#@…]+/g, (token) => {
    const word = token.replace(/^[-._/+*&]+|[-._/+*&]+$/g, '');
    const spot = word === '' ? undefined : spotOf(word);
    return spot === undefined ? token : token.replace(word, () => spot);
  });
}

/** What a word stands for, or `undefined` when it is a word. */
function spotOf(word: string): string | undefined {
  if (/[\uE000-\uE019]/.test(word)) return undefined;
  if (word === 'localhost' || (word.includes('.') && HOST.test(word))) return SPOTS.host;
  if (!/\p{N}/u.test(word)) return isRandom(word) ? SPOTS.id : undefined;
  if (KNOWN_WORDS.test(word) || isTypeName(word)) return undefined;
  return /^[+-]?[$€£¥]?\p{N}[\p{N}.,'_]*(?:%|\p{L}{1,3}|[€£¥$])?$/u.test(word) ? SPOTS.number : SPOTS.id;
}

/** Letters only, and yet no word: hex digits, or upper and lower case in turn as in encoded bytes. */
function isRandom(word: string): boolean {
  if (/^[a-f]{8,}$/i.test(word)) return true;
  if (word.length < 16 || !/^[\w+/-]+$/.test(word)) return false;
  const parts = word.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? [];
  return word.length / parts.length < 3; // words put together are longer
}

/** `Shop.Contracts.V2.OrderPlaced`: a digit in a known segment does not make it an id. */
function isTypeName(word: string): boolean {
  const segments = word.split(/[.\\]/);
  return (
    segments.length > 1 &&
    segments.every((one) => /^[A-Za-z_]\w*$/.test(one) && (!/\d/.test(one) || KNOWN_WORDS.test(one)))
  );
}

/** Words that belong to the number before or behind them: its unit or currency. */
const UNITS = new Set(
  (
    'ms msec millisecond milliseconds s sec secs second seconds m min mins minute minutes h hr hrs hour hours day days week weeks ' +
    'b byte bytes kb mb gb tb kib mib gib percent am pm utc gmt cet cest eur usd gbp chf jpy sek nok dkk pln czk huf cad aud nzd cny inr brl ' +
    'mxn zar try krw sgd hkd'
  ).split(' '),
);

function keyOf(marked: string): string {
  const words =
    restored(marked.replace(SPOT, ' * '))
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

function wordsOf(marked: string): string {
  const named = restored(marked.replace(/([\uE000-\uE007])(?:[\s,;:.-]{0,3}\1){1,200}/g, '$1')).replace(
    SPOT,
    (spot) => NAMES.get(spot) ?? '',
  );
  return named.length <= MAX_WORDS ? named : `${named.slice(0, MAX_WORDS - 1).trimEnd()}…`;
}

function restored(text: string): string {
  return text.replace(KEPT_DIGIT, (kept) => String(kept.charCodeAt(0) - KEPT));
}
