/** Single words of a message that vary from letter to letter: numbers, ids, hosts. */
import { isName, isRandom, withoutIndexes } from './meaning.ts';
import { type Kept, SPOTS } from './spots.ts';

/** Words with digits that are words all the same. */
const KNOWN_WORDS =
  /^(?:u?int(?:8|16|32|64|128)|float(?:16|32|64)|utf-?(?:8|16|32)|base(?:32|58|64)(?:url)?|sha-?\d{1,3}|md5|oauth2?|http\/?[123](?:\.\d)?|h2|s3|ec2|x\.?509|ipv[46]|log4j|iso-?8601|rfc-?\d{3,4}|v\d{1,2}|tls(?:v?1(?:\.\d)?)?|win32|db2|json5|[a-z]+`\d)$/i;
const HOST =
  /^(?!(?:com|org|net|io|dev|de|eu)\.)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,8}\.(?:com|net|org|io|dev|app|eu|de|uk|us|cloud|internal|local|localhost|svc|cluster|lan|corp|home|test|example|invalid)\.?$/;

/** The text with placeholders for words that vary. */
export function markTokens(text: string, kept: Kept): string {
  return text.replace(/[^\s,;:()[\]{}<>|=!?"'#@…]+/g, (token) => {
    const word = token.replace(/^[-._/+*&]+|[-._/+*&]+$/g, '');
    const spot =
      word === '' ? undefined : PLACE.test(word) && isName(word) ? kept.keep(withoutIndexes(word)) : spotOf(word);
    return spot === undefined ? token : token.replace(word, () => spot);
  });
}

/** What a word stands for, or `undefined` when it is a word. */
function spotOf(word: string): string | undefined {
  if (/[\uE000-\uF8FF]/.test(word)) return undefined;
  if (word === 'localhost' || (word.includes('.') && HOST.test(word) && !/^(?:javax?|System|Microsoft)\./.test(word)))
    return SPOTS.host;
  if (!/\p{N}/u.test(word)) return isRandom(word) ? SPOTS.id : undefined;
  if (KNOWN_WORDS.test(word) || isTypeName(word)) return undefined;
  return /^[+-]?[$€£¥]?\p{N}[\p{N}.,'_]*(?:%|\p{L}{1,3}|[€£¥$])?$/u.test(word) ? SPOTS.number : SPOTS.id;
}

/** `Shop.Contracts.V2.OrderPlaced`: a digit in a known segment does not make it an id. */
function isTypeName(word: string): boolean {
  const segments = word.split(/[.\\]/);
  return (
    segments.length > 1 &&
    segments.every((one) => /^[A-Za-z_]\w*$/.test(one) && (!/\d/.test(one) || KNOWN_WORDS.test(one)))
  );
}

/** `lines.0.sku`: where in a message something was wrong; which of the lines it was varies. */
const PLACE =
  /^[A-Za-z_][A-Za-z_-]{0,60}(?:[./](?:[A-Za-z_][A-Za-z_-]{0,60}|\d{1,4})){0,10}[./]\d{1,4}(?:[./][A-Za-z_][A-Za-z_-]{0,60}){1,10}$/;
