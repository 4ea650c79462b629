/**
 * Errors that are told as JSON: what a client's library, a web framework or a validator wrote into a description. Of the many shapes there
 * are, the fields are read by their names: what it was, what it said, its codes, and what was wrong at which path.
 */
import { isMeaning, isName, withoutIndexes } from './meaning.ts';
import { objectOf } from './text.ts';

type Fields = ReadonlyMap<string, unknown>;

/** How the parts of an error become words: `word` is a name, a code or a path, `text` something told; `plain` makes both readable. */
export interface Wording {
  word(word: string): string;
  text(text: string): string;
  plain(told: string): string;
}

const MAX_DEPTH = 6;
const MAX_ITEMS = 50;
const MAX_TOLD = 5;

const TYPE = ['type', 'errortype', 'exceptiontype', 'exception', 'classname', 'name'];
const TEXT = [
  'title',
  'message',
  'msg',
  'errormessage',
  'exceptionmessage',
  'error',
  'errordescription',
  'detail',
  'details',
  'faultstring',
];
const CODE = ['code', 'errorcode', 'sqlstate', 'faultcode', 'keyword'];
const STATUS = ['status', 'statuscode', 'httpstatus', 'httpstatuscode'];
const INNER = ['innerexception', 'cause', 'error', 'err', 'exception', 'fault'];
const LIST = [
  'errors',
  'issues',
  'violations',
  'validationerrors',
  'fielderrors',
  'invalidparams',
  'failures',
  'details',
  'detail',
  'innererrors',
];
const PATH = [
  'path',
  'propertypath',
  'field',
  'property',
  'propertyname',
  'param',
  'loc',
  'instancepath',
  'datapath',
  'pointer',
];

/** A text that is JSON of an error, in words; `undefined` where it is not JSON or tells of no error. */
export function errorInJson(text: string, wording: Wording): string | undefined {
  const value = parsed(text);
  if (value === undefined) return undefined;
  return toldOf(value, wording, 0) || undefined;
}

/** JSON of an object or a list, also where its end was cut off. */
function parsed(text: string): unknown {
  const start = text.slice(0, 20).trimStart();
  if (!/^(?:\{\s*["}]|\[\s*[[{"])/.test(start)) return undefined;
  return parse(text) ?? parse(closed(text));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON that was cut, up to its last whole field, with what is open closed. */
function closed(text: string): string {
  let open = '';
  let inString = false;
  let end = { at: 0, open: '' };
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') open += char === '{' ? '}' : ']';
    else if (char === '}' || char === ']') open = open.slice(0, -1);
    else if (char === ',') end = { at, open };
    if (open.length > MAX_DEPTH * 4) break;
  }
  return text.slice(0, end.at) + [...end.open].reverse().join('');
}

function toldOf(value: unknown, wording: Wording, depth: number): string {
  if (depth > MAX_DEPTH) return '';
  if (Array.isArray(value)) return listed(value as unknown[], wording, depth);
  const object = objectOf(value);
  return object === undefined ? '' : objectTold(fieldsOf(object), wording, depth);
}

/** By lower-case names without `_`, `-`, `.` and `$`: every language writes them in its own way. */
function fieldsOf(object: Readonly<Record<string, unknown>>): Fields {
  const entries = Object.entries(object).slice(0, 200);
  return new Map(entries.map(([name, value]) => [name.toLowerCase().replace(/[_\-.$@]/g, ''), value]));
}

function objectTold(fields: Fields, wording: Wording, depth: number): string {
  const inner = INNER.map((name) => toldOf(objectOf(fields.get(name)), wording, depth + 1)).find((told) => told !== '');
  const codes = [...codesOf(fields, CODE), ...codesOf(fields, STATUS)];
  if (inner !== undefined) return inner;
  const type = typeOf(fields);
  const texts = [...new Set(TEXT.flatMap((name) => textIn(fields, name)))]
    .slice(0, 3)
    .map((text) => wording.text(text));
  const path = pathOf(fields);
  const lists = [
    ...new Set(LIST.map((name) => listIn(fields.get(name), wording, depth)).filter((told) => told !== '')),
  ];
  if (type === undefined && texts.length === 0 && lists.length === 0 && codesOf(fields, CODE).length === 0) return '';
  const said = [...texts, ...lists].join('; ');
  const where = path === undefined ? '' : ` at ${wording.word(path)}`;
  const told = codes.map((code) => wording.word(code)).join(', ');
  const name = type === undefined ? '' : wording.word(type);
  const what = `${[name, said].filter((part) => part !== '').join(': ')}${where}`.trimStart();
  return what === '' || told === '' ? `${what}${told}` : `${what} (${told})`;
}

function textIn(fields: Fields, name: string): string[] {
  const value = fields.get(name);
  return typeof value === 'string' && value.trim() !== '' ? [value] : [];
}

/** An exception's class, or the end of the address that names a kind of problem (RFC 9457). */
function typeOf(fields: Fields): string | undefined {
  for (const name of TYPE) {
    const value = fields.get(name);
    if (typeof value !== 'string' || value.length > 300) continue;
    const isAddress = value.includes('/');
    const word = isAddress ? (value.split(/[/#]/).at(-1) ?? '') : value;
    const isKind = name === 'name' || name === 'exception' || name === 'classname' ? isMeaning(word) : isName(word);
    if (isKind && (!isAddress || /^[a-z][a-z-]{2,60}$/i.test(word)) && word !== 'about:blank') return word;
  }
  return undefined;
}

function codesOf(fields: Fields, names: readonly string[]): string[] {
  const codes = names
    .map((name) => fields.get(name))
    .filter((value) => typeof value === 'string' || typeof value === 'number');
  return [...new Set(codes.map(String))].filter(
    (code) => /^-?\d{1,6}$/.test(code) || /^[\dA-Z]{5}$/.test(code) || isCode(code),
  );
}

/** `P2002`, `card_declined`, `ERR_BAD_RESPONSE`, `urn.of.a.code`. */
function isCode(code: string): boolean {
  return isName(code) || /^[A-Z]{1,10}[-_]?\d{1,6}$/.test(code);
}

/** Steps to the value that is wrong, without positions in lists; what may be data itself as `*`. */
function pathOf(fields: Fields): string | undefined {
  const source = objectOf(fields.get('source'));
  for (const value of [...PATH.map((name) => fields.get(name)), source?.pointer]) {
    if (typeof value !== 'string' && !Array.isArray(value)) continue;
    const path = pathText(typeof value === 'string' ? value : (value as unknown[]).map(String).join('.'));
    if (path !== '') return path;
  }
  return undefined;
}

function pathText(path: string): string {
  const steps = withoutIndexes(path.slice(0, 300)).split(/[./[\]#]+/);
  return steps
    .filter((step) => step !== '' && step !== '$' && !/^\d{1,9}$/.test(step))
    .map((step) => (/^[\p{L}_][\p{L}\p{N}_-]{0,60}$/u.test(step) && isName(step) ? step : '*'))
    .join('.');
}

/** `[{path, message}]`, `["text"]`, or `{"path": ["text"]}`. */
function listIn(value: unknown, wording: Wording, depth: number): string {
  if (Array.isArray(value)) return listed(value as unknown[], wording, depth);
  const object = objectOf(value);
  if (object === undefined) return '';
  const items = Object.entries(object).slice(0, MAX_ITEMS);
  return joined(
    wording,
    items.map(([path, texts]) => {
      const all = Array.isArray(texts) ? (texts as unknown[]).slice(0, MAX_TOLD) : [texts];
      const told = all.filter((text) => typeof text === 'string');
      if (told.length === 0) return '';
      return `${told.map((text) => wording.text(text)).join(' ')} at ${wording.word(pathText(path) || '*')}`;
    }),
  );
}

function listed(items: readonly unknown[], wording: Wording, depth: number): string {
  return joined(
    wording,
    items
      .slice(0, MAX_ITEMS)
      .map((item) =>
        typeof item === 'string' && /\s/.test(item) ? wording.text(item) : toldOf(item, wording, depth + 1),
      ),
  );
}

/** Several items wrong in one way are told once, and in one order: how many there are varies with the letter. */
function joined(wording: Wording, told: readonly string[]): string {
  const several = new Map(told.filter((one) => one !== '').map((one) => [wording.plain(one), one]));
  return [...several]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MAX_TOLD)
    .map(([, one]) => one)
    .join('; ');
}
