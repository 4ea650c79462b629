/**
 * The head of a printed exception: its type and what it said, wherever in a line it stands. Every look goes over a line once;
 * what is matched by pattern is of bounded length.
 */
import { isKnownName } from './families.ts';
import { clean, LIMIT } from './text.ts';

/** Type and message of one exception. */
export interface Head {
  readonly type: string;
  readonly message: string | undefined;
  /** Node's code behind the type: `AggregateError [ECONNREFUSED]`. */
  readonly code?: string | undefined;
}

const NAME = /^[A-Za-z_](?:[\w.+$`\\]|::){0,250}$/;
const EXCEPTION_WORD = /(?:Exception|Error|Fault|Failure|Timeout|Interrupt|DoesNotExist|ExceptionGroup)(?:`\d)?$/;
const QUALIFIED = /\w(?:\.|::|\\|\$|\+)\w/;

/** Whether a name is that of an exception: qualified or not, of any runtime. `TTLExpiredException` is the broker's reason code. */
export function isExceptionName(name: string): boolean {
  if (!NAME.test(name) || /^TTLExpiredException$/i.test(name)) return false;
  return EXCEPTION_WORD.test(name) || (QUALIFIED.test(name) && /[.:\\$+][A-Z]\w*$/.test(name) && isKnownName(name));
}

/** Any name: for places in which only an exception can stand. */
export function anyName(name: string): boolean {
  return NAME.test(name);
}

/** Names that nobody writes by chance in the middle of a sentence: `TypeError`, `shop.orders.Timeout`, and not `Error`. */
function isPlainName(name: string): boolean {
  return isExceptionName(name) && (QUALIFIED.test(name) || /^[A-Z]\w*[a-z]\w*(?:Exception|Error)$/.test(name));
}

/** Longest type in front of a message, characters. */
export const MAX_HEAD = 300;
/** Most lines of one message. */
const MAX_LINES = 8;

/** Words that stand in front of an exception and are none of it. */
const LEAD =
  /^(?:(?:PHP )?Fatal error: {1,3}|Uncaught (?:\(in promise\) )?|Unhandled (?:promise )?rejection:? |Unhandled [Ee]xception[.:] |Exception in thread "[^"\n]{0,200}" |Result: Failure\s{1,4}|(?:Exception|Error): (?=[A-Za-z_][\w.$\\+]{0,250}(?:Exception|Error)\b))/;

/** Where in `text` the exception begins, behind words such as `Uncaught`. */
export function behindLead(text: string): number {
  let at = 0;
  for (let i = 0; i < 4; i++) {
    const lead = LEAD.exec(text.slice(at, at + MAX_HEAD * 2))?.[0];
    if (lead === undefined) break;
    at += lead.length;
  }
  return at;
}

/**
 * The head that begins at `at`: `Type: message`, `Type (0x80131904): message`, `Error [CODE]: message`, Ruby's `message (Type)`, or
 * `Type` alone on its line; `undefined` for anything else.
 */
export function headAt(
  text: string,
  at: number,
  isName: (name: string) => boolean = isExceptionName,
): Head | undefined {
  const line = lineAt(text, at);
  const start = line.slice(0, MAX_HEAD);
  const blank = start.length - start.trimStart().length;
  const dash = DASHED.exec(start.slice(blank))?.[1];
  if (dash !== undefined && isPlainName(dash))
    return { type: dash, message: messageAt(text, at + blank + dash.length + 3) };
  const colon = colonIn(start, blank);
  if (colon < 0) {
    const type = line.trim();
    if (line.length > MAX_HEAD || !isName(type)) return wrappedHead(line);
    const label = LABEL.exec(text.slice(at + line.length, at + line.length + 60))?.[0];
    return { type, message: label === undefined ? undefined : messageAt(text, at + line.length + label.length) };
  }
  const told = start.slice(blank, colon).replace(/^\[([^\]]{1,250})\]$/, '$1');
  const suffix = / [([]([\w.-]{1,40})[)\]]$/.exec(told);
  const type = suffix === null ? told : told.slice(0, suffix.index);
  if (!isName(type)) return wrappedHead(line);
  const code = told.endsWith(']') ? suffix?.[1] : undefined;
  return { type, message: messageAt(text, at + colon + 1), ...(code !== undefined && { code }) };
}

/** `Type - message`. */
const DASHED = /^([\w.+$`\\:]{1,250}) - \S/;
/** In the line below a type: `Message: …`. */
const LABEL = /^\r?\n\s{0,8}(?:Exception |Error )?Message ?: ?/i;

/** The colon that ends a type: one with a blank or the line's end behind it. */
function colonIn(start: string, from: number): number {
  const at = start.indexOf(': ', from);
  if (at >= 0) return at;
  const last = start.trimEnd().length - 1;
  return start[last] === ':' ? last : -1;
}

const WRAPPED =
  /^(?:[^\s:]{1,300}:\d{1,7}:in [`'][^'\n]{1,200}': )?(.{0,900}?) \(([A-Za-z]\w{0,100}(?:(?:::|\.)\w{1,100}){0,12})\)$/;

/** `message (Type)`; Ruby writes its place in front: `app.rb:3:in 'charge': message (Type)`. */
function wrappedHead(line: string): Head | undefined {
  if (!line.endsWith(')') || line.length > MAX_HEAD + LIMIT.message) return undefined;
  const open = line.lastIndexOf(' (');
  if (open < 0 || !isPlainName(line.slice(open + 2, -1))) return undefined;
  const [, message, type] = WRAPPED.exec(line) ?? [];
  return type === undefined ? undefined : { type, message: clean(message, LIMIT.message) };
}

/** Whether a line has Ruby's form, with its place in front. */
export function isRubyLine(line: string): boolean {
  return /^[^\s:]{1,300}:\d{1,7}:in [`']/.test(line.slice(0, 320));
}

/** Where in a line a head begins that nobody writes by chance; -1 if there is none. Its `message` may end in the next lines. */
export function findHead(line: string, isFollowedByStack: boolean): number {
  const lead = behindLead(line);
  if (headAt(line, lead) !== undefined) return lead;
  const end = Math.min(line.length, 2000);
  let from = lead;
  while (from < end) {
    const colon = line.indexOf(':', from);
    if (colon < 0 || colon >= end) break;
    from = colon + 1;
    if (line[colon + 1] !== ' ' && colon + 1 !== line.trimEnd().length) continue;
    const begin = nameBefore(line, colon);
    if (begin >= 0) return begin;
  }
  const whole = line.trimEnd();
  if (!isFollowedByStack || whole.length > 2000) return -1;
  const begin = nameStart(whole, whole.length);
  const name = whole.slice(begin);
  return QUALIFIED.test(name) && isPlainName(name) ? begin : -1;
}

/** Where the name begins that ends at a colon, perhaps with a code behind it; -1 when it is no exception's. */
function nameBefore(line: string, colon: number): number {
  let end = colon;
  if (line[end - 1] === ']') {
    const begin = nameStart(line, end - 1);
    if (line[begin - 1] === '[' && isPlainName(line.slice(begin, end - 1))) return begin - 1;
  }
  if (line[end - 1] === ')' || line[end - 1] === ']') {
    const suffix = / [([][\w.-]{1,40}[)\]]$/.exec(line.slice(Math.max(0, end - 44), end));
    if (suffix === null) return -1;
    end -= suffix[0].length;
  }
  const begin = nameStart(line, end);
  const name = line.slice(begin, end);
  if (begin < end && isPlainName(name)) return begin;
  return /^(?:Error|Exception)$/.test(name) && line.slice(begin - 2, begin) === ': ' ? begin : -1;
}

function nameStart(line: string, end: number): number {
  let begin = end;
  while (begin > 0 && end - begin <= 250 && /[\w.+$`\\:]/.test(line[begin - 1] ?? ' ')) begin--;
  return begin;
}

/** Lines that end a message: of a stack, of the next exception, or of what a runtime prints around them. */
const NO_MESSAGE =
  /^\s{0,40}(?:at |File "|--- |---> |\.\.\. \d|#\d|from |in <|Stack|Caused by|Suppressed|Wrapped by|Next |Traceback|Exception Group|The above exception|During handling|goroutine |\[(?:cause|errors|signal|stack)|thrown in|note: run with|[|+][ -]|End of |<--- )/;
/** A frame of .NET in the machine's own language, or of Go: a word, and a name with its arguments. */
const OTHER_FRAME = /^\s{1,8}\S{1,8} [\w.<>`+|[\],]{1,300}\(|^\t\S{1,300}\.go:\d|^\S{1,300}\(0x/;
/** Lines that vary from one dump of a cause to the next, or say where to read on. */
const NOISE =
  /^(?:DETAIL|HINT|CONTEXT|LINE \d|Request-?Id|Time|Date|ActivityId|ClientConnectionId|For further|Learn more|\[SQL|\[parameters|\(Background on)/i;

/**
 * A message from there on. It may go on over several lines (what a validation has found, a status); a blank line or a stack ends it.
 */
export function messageAt(text: string, from: number): string | undefined {
  const window = text.slice(from, from + LIMIT.message * 2);
  const kept: string[] = [];
  let at = 0;
  for (let i = 0; i < MAX_LINES && at < window.length; i++) {
    const end = window.indexOf('\n', at);
    const line = (end < 0 ? window.slice(at) : window.slice(at, end)).trimEnd();
    if (i > 0 && (line === '' || NO_MESSAGE.test(line) || OTHER_FRAME.test(line))) break;
    if (i > 0 && !/^\s/.test(line) && (isRubyLine(line) || findHead(line, false) >= 0)) break;
    if (i === 0 || !NOISE.test(line)) kept.push(line);
    if (end < 0 || line.includes(' ---> ')) break;
    at = end + 1;
  }
  const message = beforeArrow(kept.join('\n'));
  // Python's drivers print number and text as a pair.
  const pair = PAIR.exec(message.slice(0, LIMIT.message * 2));
  return clean(pair === null ? message : `${pair[2]} (error code ${pair[1]})`, LIMIT.message);
}

const PAIR = /^ ?\((\d{1,6}), [bu]?["'](.{1,900})["']\)$/;

/** What stands in front of .NET's arrow to an inner exception. */
export function beforeArrow(text: string): string {
  const arrow = text.indexOf(' ---> ');
  return arrow < 0 ? text : text.slice(0, arrow);
}

/** The line from there on, as much of it as can be type and message; up to an inner exception. */
export function lineAt(text: string, from: number): string {
  const window = text.slice(from, from + MAX_HEAD + LIMIT.message);
  const end = window.indexOf('\n');
  return beforeArrow(end < 0 ? window : window.slice(0, end)).trimEnd();
}

/** Lines of `text`, at most `max` of them. */
export function* linesOf(text: string, max = 1000): Generator<string> {
  for (const { line } of placedLines(text, max)) yield line;
}

/** The same with where each begins. */
export function* placedLines(text: string, max = 1000): Generator<{ readonly line: string; readonly at: number }> {
  let from = 0;
  for (let i = 0; i < max && from <= text.length; i++) {
    const end = text.indexOf('\n', from);
    yield { line: end < 0 ? text.slice(from) : text.slice(from, end), at: from };
    if (end < 0) return;
    from = end + 1;
  }
}
