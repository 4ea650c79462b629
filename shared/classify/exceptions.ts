/**
 * Exceptions in free text, as runtimes print them: which it was, what it said, and which one was innermost. Every look goes
 * through the text once; how a head is told from other words is in heads.ts.
 */
import { familyOf } from './families.ts';
import {
  anyName,
  behindLead,
  findHead,
  type Head,
  headAt,
  isExceptionName,
  isRubyLine,
  lineAt,
  messageAt,
  placedLines,
} from './heads.ts';
import { clean, LIMIT, present } from './text.ts';
import { groupSections, TRACEBACK, withoutContext } from './tracebacks.ts';

/** What a printed exception tells. */
export interface Printed {
  readonly exceptionType?: string;
  readonly exceptionMessage?: string;
  /** The innermost one, where it is another than the outermost. Without a type: several that are not of one kind. */
  readonly causeType?: string;
  readonly causeMessage?: string;
}

/** The cause that a printed exception tells of, where its type is known from elsewhere; nothing where it is the same exception again. */
export function causeBehind(type: string, printed: Printed): Pick<Printed, 'causeType' | 'causeMessage'> {
  const { exceptionType, exceptionMessage, causeType, causeMessage } = printed;
  if (causeType !== undefined || causeMessage !== undefined) return present({ causeType, causeMessage });
  if (exceptionType === undefined || isSameType(exceptionType, type)) return {};
  return present({ causeType: exceptionType, causeMessage: exceptionMessage });
}

/** Whether two names are of one type: one place tells its namespace, and another does not. */
export function isSameType(one: string, other: string): boolean {
  const [short = '', long = ''] = one.length < other.length ? [one, other] : [other, one];
  return long === short || (long.endsWith(short) && /[.:+$\\]/.test(long[long.length - short.length - 1] ?? ''));
}

/** What stands for the message where a trace ends before its exception. */
export const CUT_TRACE = 'the trace is cut before its exception is told';
/** What stands for the message where a text tells of several exceptions of different kinds. */
export const SEVERAL = 'several exceptions of different kinds';

/** Deepest chain of exceptions that is followed. What repeats the mark of one more often is no chain. */
const MAX_CHAIN = 32;

/** Exceptions that were raised one around the other, the outermost first. */
type Chain = readonly Head[];

/** Reads a printed exception of any runtime; nothing where the text does not begin like one. */
export function readException(text: string | undefined): Printed {
  if (text === undefined) return {};
  const cut = text.length > LIMIT.stack ? text.slice(0, LIMIT.stack) : text;
  const special = readSpecial(cut);
  if (special !== undefined) return special;
  const at = behindLead(cut);
  return headAt(cut, at) === undefined ? {} : readFrom(cut, at);
}

/**
 * The first exception anywhere in free text, such as `Attempt 3 of 3 failed: Ns.Oops: message`. An indented line is a part of a
 * stack or of a program, and never the place where one begins.
 */
export function findException(text: string | undefined): Printed {
  if (text === undefined) return {};
  const cut = text.length > LIMIT.stack ? text.slice(0, LIMIT.stack) : text;
  const special = readSpecial(cut) ?? readLabelled(cut);
  if (special !== undefined) return special;
  // As a whole in quotes.
  const told = /^"[^"\n]{1,4000}"$/.test(cut) ? cut.slice(1, -1) : cut;
  const place = firstHead(told, 0);
  return place < 0 ? {} : readFrom(told, place);
}

const CONDITION = /\bError\{Condition: ([\w:.-]{1,80}), Description: ([^\n]{0,900}?), Info: /;
const LABELLED =
  /\b(?:exception|error)(?: ?type)? ?[:=] ?"?([A-Za-z_][\w.+$]{2,200})"?[,;] ?(?:exception |error )?message ?[:=] ?"?([^\n"]{1,900})/i;

/** Errors of Go's clients for AMQP, whose condition says what it was; and type and message with their names in front. */
function readLabelled(text: string): Printed | undefined {
  const condition = text.includes('Error{Condition: ') ? CONDITION.exec(text.slice(0, 4000)) : null;
  if (condition !== null) return { exceptionMessage: `${condition[1]}: ${condition[2]}` };
  const [, type = '', message] = /message ?[:=]/i.test(text.slice(0, 1000))
    ? (LABELLED.exec(text.slice(0, 2000)) ?? [])
    : [];
  return isExceptionName(type)
    ? present({ exceptionType: type, exceptionMessage: clean(message, LIMIT.message) })
    : undefined;
}

/** Most lines in which the beginning of an exception is looked for. */
const MAX_LOOKED = 50;

function firstHead(text: string, from: number): number {
  for (const { line, at } of placedLines(text.slice(from), MAX_LOOKED)) {
    if (/^\s/.test(line)) continue;
    const found = findHead(line, hasStackBelow(text, from + at + line.length));
    if (found >= 0) return from + at + found;
  }
  return -1;
}

function hasStackBelow(text: string, end: number): boolean {
  return /^\r?\n\s{1,8}(?:at|from|bei|à|в|en|em|w|v|in|vid|bij|在|於|場所|위치:) /.test(text.slice(end, end + 20));
}

/** Forms that tell of an exception otherwise than by a head at their beginning. */
function readSpecial(text: string): Printed | undefined {
  const worker = text.indexOf('Result: Failure\n');
  if (worker >= 0) return readWorker(text, worker);
  if (text.includes(TRACEBACK)) {
    const found = readPython(text);
    if (found !== undefined) return found;
    // Cut, unless its exception is told in front of it.
    return firstHead(text.slice(0, text.indexOf(TRACEBACK)), 0) >= 0 ? undefined : { exceptionMessage: CUT_TRACE };
  }
  return readPanic(text);
}

/** The Functions worker writes `Result: Failure`, `Exception: …`, and a `Stack: …` that may begin with the exception, too. */
function readWorker(text: string, at: number): Printed {
  const told = text.slice(at + 'Result: Failure\n'.length);
  const stackAt = told.indexOf('\nStack:');
  const stack = stackAt < 0 ? '' : told.slice(stackAt + '\nStack:'.length).trimStart();
  const first = told.startsWith('Exception: ') ? 'Exception: '.length : 0;
  const inner: Printed =
    [readException(stack), readFrom(stackAt < 0 ? told : told.slice(0, stackAt), first)].find(
      ({ exceptionType, exceptionMessage }) => exceptionType !== undefined && exceptionMessage !== CUT_TRACE,
    ) ?? present({ exceptionMessage: messageAt(told, first) });
  // The host wraps it into exceptions of its own, which tell no more.
  const outer = at === 0 ? undefined : headAt(text, behindLead(text));
  if (outer === undefined) return inner;
  const cause = inner.causeType === undefined ? inner.exceptionType : inner.causeType;
  const message = inner.causeType === undefined ? inner.exceptionMessage : inner.causeMessage;
  return present({
    exceptionType: outer.type,
    exceptionMessage: outer.message,
    causeType: cause,
    causeMessage: message,
  });
}

/** Go's `panic: …` and Rust's `thread 'main' panicked at …`. */
function readPanic(text: string): Printed | undefined {
  const go = text.startsWith('panic: ') ? 0 : text.indexOf('\npanic: ') + 1;
  if (go > 0 || text.startsWith('panic: ')) {
    const message = messageAt(text, go + 'panic: '.length);
    return present({ exceptionType: 'panic', exceptionMessage: message?.replace(/ \[recovered\]$/, '') });
  }
  const rust =
    /^thread '[^'\n]{1,100}' (?:\(\d{1,9}\) )?panicked at (?:'(.{1,900})', \S{1,300}$|\S{1,300}:\d{1,7}:\d{1,7}:\n)/m.exec(
      text.slice(0, 4000),
    );
  if (rust === null) return undefined;
  const message = rust[1] ?? messageAt(text, rust.index + rust[0].length);
  return present({ exceptionType: 'panic', exceptionMessage: clean(message, LIMIT.message) });
}

/** Reads exceptions from the head of one on: its chain, and those of others that are told below it. */
function readFrom(text: string, at: number): Printed {
  const chains: Chain[] = [];
  let place = at;
  for (let i = 0; i < MAX_CHAIN && place >= 0; i++) {
    const next = nextBeginning(text, place);
    const part = text.slice(place, next < 0 ? text.length : next);
    chains.push(...chainsIn(part));
    place = next;
  }
  return printed(chains);
}

/** Words in front of an exception that say it is the cause of the one before. */
const CAUSE_LINE = /^[^:\n]{0,30}\b(?:caused? by|cause|inner(?: exception)?)\b[^:\n]{0,20}: /i;
/** Lines that belong to the exception before, although a head stands in them. */
const SAME = /^(?:Caused by: |Suppressed: |Wrapped by: |Next |---> |\(|\[|PHP |Stack|Error Number|Severity)/;

/** Where the next exception begins that has nothing to do with the one at `from`; -1 if there is none. */
function nextBeginning(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  if (end < 0) return -1;
  if (isRubyLine(lineAt(text, from))) return -1;
  for (const { line, at } of placedLines(text.slice(end + 1))) {
    if (line === '' || /^\s/.test(line) || SAME.test(line) || CAUSE_LINE.test(line)) continue;
    const found = findHead(line, false);
    if (found >= 0) return end + 1 + at + found;
  }
  return -1;
}

/** The chain of one printed exception; several where it is a group of them. */
function chainsIn(text: string): Chain[] {
  const outer = headAt(text, 0);
  if (outer === undefined) return [];
  if (isRubyLine(text)) return [rubyHeads(text)];
  if (text.includes('\nStack trace:')) return [inwards(text, '\nNext ', php)];
  if (text.includes('\nWrapped by: ')) return [inwards(text, '\nWrapped by: ', (head) => head)];
  return innerHeads(text, outer);
}

/** One judgement of all chains: what they have in common, or that they have nothing. */
function printed(chains: readonly Chain[], group?: Head): Printed {
  const [first] = chains;
  const outer = group ?? first?.[0];
  if (first === undefined || outer === undefined) return {};
  const leaves = chains.flatMap((chain) => leafOf(chain) ?? []);
  const leaf = commonOf(leaves);
  if (leaf === undefined) {
    const isGroup = group !== undefined || chains.every(([head]) => head === outer);
    return present({
      exceptionType: isGroup ? outer.type : undefined,
      exceptionMessage: isGroup ? outer.message : SEVERAL,
      causeMessage: clean(listed(leaves), LIMIT.message),
    });
  }
  const isPlain = isBare(outer.type) && first.length === 1 && outer.code === undefined;
  const shown = group ?? (isPlain ? leaf : outer);
  const isWrapped = leaf !== shown && (leaf.type !== shown.type || leaf.message !== shown.message);
  return present({
    exceptionType: shown.type,
    exceptionMessage: shown.message,
    causeType: isWrapped ? leaf.type : undefined,
    causeMessage: isWrapped ? leaf.message : undefined,
  });
}

/** The one that stands for all: of the same type, or of the same family; the first by name, since their order is chance. */
function commonOf(leaves: readonly Head[]): Head | undefined {
  const sorted = leaves.toSorted((a, b) => compare(a.type, b.type) || compare(a.message ?? '', b.message ?? ''));
  const [first] = sorted;
  if (first === undefined || sorted.every(({ type }) => type === first.type)) return first;
  const rule = familyOf(first.type, first.message)?.rule;
  return rule !== undefined && sorted.every(({ type, message }) => familyOf(type, message)?.rule === rule)
    ? first
    : undefined;
}

function listed(leaves: readonly Head[]): string {
  const told = leaves.map(({ type, message }) => (message === undefined ? type : `${type}: ${message}`));
  return [...new Set(told)].sort(compare).join('; ');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A name that says nothing: `Error` around a message that is an exception itself. */
function isBare(type: string): boolean {
  return /^(?:\w{1,20}\.)?(?:Exception|Error|Failure|Fault|AggregateError)$/.test(type);
}

/** The innermost of a chain, also where a message is an exception itself, as in Java's `RuntimeException: java.net.ConnectException: …`. */
function leafOf(chain: Chain): Head | undefined {
  let leaf = chain.at(-1);
  for (let i = 0; i < 4 && leaf !== undefined; i++) {
    const inner = messageHead(leaf);
    if (inner === undefined) break;
    leaf = inner;
  }
  return leaf?.code !== undefined && isBare(leaf.type) ? { type: leaf.code, message: leaf.message ?? leaf.code } : leaf;
}

/** SQLAlchemy and Spring write the inner exception into the message of the outer one. */
function messageHead({ message }: Head): Head | undefined {
  if (message === undefined) return undefined;
  const driver = /^\(([a-z]\w{0,40}(?:\.\w{1,60}){1,5})\) /.exec(message);
  if (driver?.[1] !== undefined)
    return { type: driver[1], message: clean(message.slice(driver[0].length), LIMIT.message) };
  const nested = message.lastIndexOf('nested exception is ');
  if (nested >= 0) return headAt(message, nested + 'nested exception is '.length);
  return findHead(message.slice(0, 300), false) === 0 ? headAt(message, 0) : undefined;
}

const INNER_MARKS = ['---> ', '\nCaused by: ', '[cause]: '] as const;
/** .NET numbers the exceptions of an AggregateException, in the machine's language. */
const NUMBERED = /^\([^()#\n]{1,40}#(\d{1,6})\) /;

/** .NET prints inner exceptions behind `--->`, Java behind `Caused by:`, Node behind `[cause]:`, each deeper than the one before. */
function innerHeads(text: string, outer: Head): Chain[] {
  for (const mark of INNER_MARKS) {
    const chains: Head[][] = [[outer]];
    let at = text.indexOf(mark);
    for (let i = 0; i < MAX_CHAIN && at >= 0; i++) {
      const from = at + mark.length;
      const numbered = NUMBERED.exec(text.slice(from, from + 60))?.[0];
      const head = headAt(text, from + (numbered?.length ?? 0), anyName);
      if (head !== undefined && !isCutOff(text, from, head)) {
        const closed = { ...head, message: head.message?.replace(/<---$/, '').trimEnd() || undefined };
        // The first of the numbered ones is the one already told.
        if (numbered !== undefined && (chains.at(-1)?.length ?? 0) > 1) chains.push([outer, closed]);
        else chains.at(-1)?.push(closed);
      }
      at = text.indexOf(mark, from);
    }
    if ((chains[0]?.length ?? 0) > 1) return chains;
  }
  const listed = errorsOf(text, outer);
  if (listed.length > 0) return listed;
  const cause = /\n(?=[^:\n]{0,30}\b(?:caused? by|cause|inner(?: exception)?)\b[^:\n]{0,20}: )/i.exec(text);
  if (cause === null) return [[outer]];
  const place = firstHead(text, cause.index + 1);
  const head = place < 0 ? undefined : headAt(text, place);
  return head === undefined ? [[outer]] : [[outer, head]];
}

/** Node lists the errors of an AggregateError below `[errors]:`. Its code, where it has one, says the same. */
function errorsOf(text: string, outer: Head): Chain[] {
  const at = outer.code === undefined ? text.indexOf('[errors]: [') : -1;
  if (at < 0) return [];
  const chains: Chain[] = [];
  for (const { line, at: begin } of placedLines(text.slice(at), 200)) {
    const indent = line.length - line.trimStart().length;
    const head =
      indent > 0 && indent <= 12 && !/^\s{1,12}(?:at |\[|\w+: ['\d\-[{])/.test(line)
        ? headAt(text, at + begin)
        : undefined;
    if (head !== undefined && chains.length < MAX_CHAIN) chains.push([outer, head]);
  }
  return chains;
}

/** Whether the text ends within the name, so that it is not known whose it is. */
function isCutOff(text: string, from: number, { type, message }: Head): boolean {
  return message === undefined && !isExceptionName(type) && text.indexOf('\n', from) < 0;
}

/** Python prints the innermost first. A traceback's exception is its first line that is not indented. */
function pythonHeads(text: string): Head[] {
  const heads: Head[] = [];
  let inTrace = false;
  for (const { line, at } of placedLines(text)) {
    if (line.includes(TRACEBACK)) inTrace = true;
    else if (inTrace && line.trim() !== '' && !/^\s/.test(line)) {
      const head = headAt(text, at, anyName);
      if (head !== undefined && !isCutOff(text, at, head)) heads.unshift(head);
      inTrace = false;
    }
  }
  return heads;
}

/** A traceback, or a group of them; `undefined` where none is told to its end. */
function readPython(text: string): Printed | undefined {
  const [own, ...inner] = groupSections(text);
  const heads = pythonHeads(withoutContext(own ?? text));
  const [outer] = heads;
  if (outer === undefined) return undefined;
  const chains = inner.flatMap((section) => {
    const told = withoutContext(section);
    const found = told.includes(TRACEBACK)
      ? pythonHeads(told)
      : [headAt(told, 0, anyName)].filter((one) => one !== undefined);
    const leaf = found.at(-1);
    // A group in a group tells its own below it.
    return leaf === undefined || leaf.type.endsWith('ExceptionGroup') ? [] : [found];
  });
  return chains.length === 0 ? printed([heads]) : printed(chains, outer);
}

/** PHP, and Java's root cause first, print the innermost first, and each one that wraps it behind a mark. */
function inwards(text: string, mark: string, told: (head: Head) => Head): Head[] {
  const heads: Head[] = [];
  for (let i = 0, from = 0; i < MAX_CHAIN; i++) {
    const head = headAt(text, from, anyName);
    if (head !== undefined) heads.unshift(told(head));
    const next = text.indexOf(mark, from);
    if (next < 0) break;
    from = next + mark.length;
  }
  return heads;
}

/** PHP writes ` in /path/file.php:12` behind the message. */
function php(head: Head): Head {
  const at = head.message?.lastIndexOf(' in /') ?? -1;
  return at > 0 ? { ...head, message: head.message?.slice(0, at) } : head;
}

/** Ruby prints the outermost first, each with its place in front. */
function rubyHeads(text: string): Head[] {
  const heads: Head[] = [];
  for (const { line, at } of placedLines(text)) {
    if (heads.length >= MAX_CHAIN) break;
    const head = isRubyLine(line) ? headAt(text, at) : undefined;
    if (head !== undefined) heads.push(head);
  }
  return heads;
}
