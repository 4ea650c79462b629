/**
 * Exceptions in free text, as runtimes print them: which it was, what it said, and which one was innermost. Every look goes
 * through the text once; what is matched by pattern is a line's head of bounded length.
 */
import { clean, firstLine, LIMIT, present } from './text.ts';

/** What a printed exception tells. */
export interface Printed {
  readonly exceptionType?: string;
  readonly exceptionMessage?: string;
  /** The innermost one, where it is another than the outermost. */
  readonly causeType?: string;
  readonly causeMessage?: string;
}

interface Head {
  readonly type: string;
  readonly message: string | undefined;
}

const NAME = /^[A-Za-z_][\w.+$`\\]{0,250}$/;
const EXCEPTION_WORD = /(?:Exception|Error|Fault|Failure|Timeout|Interrupt|DoesNotExist)(?:`\d)?$/;

/** Whether a name is that of an exception: qualified or not, of any runtime. `TTLExpiredException` is the broker's reason code. */
export function isExceptionName(name: string): boolean {
  return NAME.test(name) && EXCEPTION_WORD.test(name) && !/^TTLExpiredException$/i.test(name);
}

/** Longest type in front of a message, characters. */
const MAX_HEAD = 300;

/** `Type: message`, `Type (0x80131904): message`, `Error [CODE]: message` or `Type` alone; `undefined` for anything else. */
function headOf(line: string, isName: (name: string) => boolean = isExceptionName): Head | undefined {
  const start = line.slice(0, MAX_HEAD).trimStart();
  const colon = start.indexOf(': ');
  const end = colon >= 0 ? colon : start.endsWith(':') ? start.length - 1 : -1;
  if (end < 0)
    return isName(start.trimEnd()) && line.length <= MAX_HEAD
      ? { type: start.trimEnd(), message: undefined }
      : undefined;
  const type = start.slice(0, end).replace(/ [([][\w.-]{1,40}[)\]]$/, '');
  if (!isName(type)) return undefined;
  return { type, message: clean(line.trimStart().slice(end + 1), LIMIT.message) };
}

/** Any name: for places in which only an exception can stand. */
function anyName(name: string): boolean {
  return NAME.test(name);
}

/** Lines of `text`, at most `max` of them. */
export function* linesOf(text: string, max = 1000): Generator<string> {
  let from = 0;
  for (let i = 0; i < max && from <= text.length; i++) {
    const end = text.indexOf('\n', from);
    yield end < 0 ? text.slice(from) : text.slice(from, end);
    if (end < 0) return;
    from = end + 1;
  }
}

/** Reads a printed exception of .NET, Java, Node, Python or PHP; nothing where the text does not begin like one. */
export function readException(text: string | undefined): Printed {
  if (text === undefined) return {};
  const cut = text.length > LIMIT.stack ? text.slice(0, LIMIT.stack) : text;
  if (cut.startsWith('Traceback (most recent call last)')) return chainOf(pythonHeads(cut));
  const first = firstLine(cut);
  const outer = headOf(beforeArrow(first));
  if (outer === undefined) return {};
  if (cut.includes('\nStack trace:')) return chainOf(phpHeads(cut));
  return chainOf([outer, ...innerHeads(cut)]);
}

/** The first head of an exception anywhere in free text, such as `3 unhandled exceptions: 10/10/2026: Ns.Oops: message`. */
export function findException(text: string | undefined): Printed {
  if (text === undefined) return {};
  const cut = text.length > LIMIT.stack ? text.slice(0, LIMIT.stack) : text;
  let offset = 0;
  for (const line of linesOf(cut, 50)) {
    for (let from = 0, tries = 0; from >= 0 && tries < 20; tries++) {
      if (headOf(beforeArrow(line.slice(from, from + MAX_HEAD))) !== undefined)
        return readException(cut.slice(offset + from));
      const next = line.indexOf(': ', from);
      from = next < 0 ? -1 : next + 2;
    }
    offset += line.length + 1;
  }
  return {};
}

function beforeArrow(line: string): string {
  const arrow = line.indexOf(' ---> ');
  return arrow < 0 ? line : line.slice(0, arrow);
}

function chainOf(heads: readonly Head[]): Printed {
  const [outer] = heads;
  const inner = heads.at(-1);
  if (outer === undefined || inner === undefined) return {};
  const isWrapped = inner !== outer && (inner.type !== outer.type || inner.message !== outer.message);
  return present({
    exceptionType: outer.type,
    exceptionMessage: outer.message,
    causeType: isWrapped ? inner.type : undefined,
    causeMessage: isWrapped ? inner.message : undefined,
  });
}

const INNER_MARKS = [' ---> ', '\nCaused by: ', '[cause]: '] as const;

/** Deepest chain of exceptions that is followed. What repeats the mark of one more often is no chain. */
const MAX_CHAIN = 32;

/** .NET prints inner exceptions behind `--->`, Java behind `Caused by:`, Node behind `[cause]:`, each deeper than the one before. */
function innerHeads(text: string): Head[] {
  const heads: Head[] = [];
  for (const mark of INNER_MARKS) {
    let at = text.indexOf(mark);
    for (let i = 0; i < MAX_CHAIN && at >= 0; i++) {
      const line = beforeArrow(lineAt(text, at + mark.length));
      // An AggregateException repeats its inner ones with numbers; the first of them is the one already told.
      if (!line.startsWith('(Inner Exception #') || heads.length === 0) {
        const head = headOf(line.replace(/^\(Inner Exception #\d{1,6}\) /, ''), anyName);
        if (head !== undefined) heads.push(head);
      }
      at = text.indexOf(mark, at + mark.length);
    }
    if (heads.length > 0) break;
  }
  return heads;
}

/** The line from there on, as much of it as can be type and message. */
function lineAt(text: string, from: number): string {
  return firstLine(text.slice(from, from + MAX_HEAD + LIMIT.message));
}

/** Python prints the innermost first. A traceback's exception is its first line that is not indented. */
function pythonHeads(text: string): Head[] {
  const heads: Head[] = [];
  let inTraceback = false;
  for (const line of linesOf(text)) {
    if (line.startsWith('Traceback (most recent call last)')) inTraceback = true;
    else if (inTraceback && line !== '' && !/^\s/.test(line)) {
      const head = headOf(line, anyName);
      if (head !== undefined) heads.unshift(head);
      inTraceback = false;
    }
  }
  return heads;
}

/** PHP prints the innermost first, and each one that wraps it behind `Next`. */
function phpHeads(text: string): Head[] {
  const heads: Head[] = [];
  for (let i = 0, from = 0; i < MAX_CHAIN; i++) {
    const head = headOf(lineAt(text, from), anyName);
    if (head !== undefined) heads.unshift({ ...head, message: head.message && withoutPlace(head.message) });
    const next = text.indexOf('\nNext ', from);
    if (next < 0) break;
    from = next + '\nNext '.length;
  }
  return heads;
}

/** PHP writes ` in /path/file.php:12` behind the message. */
function withoutPlace(message: string): string {
  const at = message.lastIndexOf(' in /');
  return at > 0 ? message.slice(0, at) : message;
}
