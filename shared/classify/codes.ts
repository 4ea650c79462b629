/** Codes, statuses and `name=value` pairs in a message: some say what went wrong, the others are values. */
import { isName, meaningOfPair } from './meaning.ts';
import { type Kept, SPOTS } from './spots.ts';

const PHRASES =
  'Service Unavailable|Bad Gateway|Gateway Time-?out|Internal Server|Too Many Requests|Not Found|Bad Request|Unauthorized|Forbidden|Conflict|' +
  'Unprocessable|Request Time-?out|Method Not Allowed|Gone|Precondition|Payload Too|Client Error|Server Error|Not Implemented|Payment Required';
/** A status of HTTP, an error number of a database or an operating system: these say what went wrong. */
const CODES: readonly RegExp[] = [
  /\b(?:status(?:[ _-]?code)?|HTTP(?:\/\d(?:\.\d)?)?|respon(?:se|ded)(?: code| with)?)[\s:=#("'-]{0,3}(?:code[\s:=]{0,2}|is |was |of |does not indicate success: ){0,2}([1-5]\d\d)\b/gi,
  new RegExp(`(?<![\\w.-])([45]\\d\\d)\\)?:? (?:${PHRASES})`, 'gi'),
  /\b(?:errno|os error|error (?:code|number|no\.?)|(?:error|reason|result|return|response|fault|exit)[ _-]?code|exit status|Msg)[\s:=#("'-]{0,3}(-?\d{1,6}|[A-Z]{1,12}[-_]?\d{1,6})\b/gi,
  /\b(?:substatus|cURL error)[\s:=(]{1,3}(\d{1,5})\b/gi,
  /\bSQLSTATE\[[0-9A-Z]{5}\](?:: [\w ]{1,60}:)? \[?(\d{4})\b/g,
  /\bTooManyRequests \((429)\)/g,
  /\bexited with (?:code |status )?(-?\d{1,3})\b/gi,
  /(?<![a-z] |\w)code[\s:=]{1,3}([1-5]\d\d)\b/gi,
  /\bSQL(?:STATE|CODE)[\s:=#(["'-]{0,3}([0-9A-Z]{5}|-?\d{1,5})\b/g,
  /^((?:0[0-9AB]|2[0-8BDF]|3[4589BD]|4[0-2]|5[3-8]|72|F0|HV|P0|XX)[0-9A-Z]{3}): /g,
  /\bError (\d{4}) \([0-9A-Z]{5}\)/g,
  /\b((?:ORA|TNS|PLS)-\d{3,5}|SQL\d{4,5}[NCW]|AADSTS\d{4,7}|E11000|IDX\d{5}|P[12]0\d\d|HHH\d{6}|AMQ\d{6}|WFLY[A-Z]{2,10}\d{4}|0x8[0-9A-Fa-f]{7})\b/g,
];

/** `table orders_2`, `index: email_1`: names with digits where only names stand. */
const NAMED =
  /\b(?:tables?|collection|index|column|constraint|relation|queue|topic)(?: name)?:? ([A-Za-z_][\w.-]{0,120})(?![\w.@-])/g;

/** The text with its codes kept, and with placeholders for the values of pairs. */
export function keepCodes(text: string, kept: Kept): string {
  const keep = (match: string, code: string) => {
    const at = match.lastIndexOf(code);
    return match.slice(0, at) + kept.keep(code) + match.slice(at + code.length);
  };
  let marked = text;
  // Without a digit there is no code in a text, and without `=` no pair: most texts are done sooner.
  if (/\d/.test(text)) {
    for (const pattern of CODES) marked = marked.replace(pattern, keep);
    marked = marked.replace(NAMED, (match, name: string) =>
      /\d/.test(name) && isName(name) ? keep(match, name) : match,
    );
  }
  return text.includes('=') || text.includes(':') ? markPairs(marked, kept) : marked;
}

/** What stands behind `=`, or behind a colon after a name for somebody or something, is a value. */
function markPairs(text: string, kept: Kept): string {
  return text
    .replace(
      /([\p{L}_][\p{L}\p{N}_.-]{0,60})( ?= ?)(?![^\p{L}\p{N}]{0,2}[\uE000-\uF8FF])([^\s=,;&)\]}>][^\s,;&)\]}]{0,200})/gu,
      (match, name: string, sign: string, value: string) => {
        const meaning = meaningOfPair(name, value);
        if (meaning === 'text') return match;
        return `${name}${sign}${meaning === 'keep' ? kept.keep(value) : SPOTS.value}`;
      },
    )
    .replace(
      /\b((?:\w{0,30}id|name|user|username|login|customer|account|tenant|token) ?: ?)([^\s,;&)\]}\uE000-\uF8FF]{1,200})/gi,
      `$1${SPOTS.value}`,
    );
}
