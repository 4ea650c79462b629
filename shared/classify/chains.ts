/** Exceptions that were raised one around the other, as each runtime prints them: the chain of one, or those of several in a group. */
import { anyName, findHead, type Head, headAt, isExceptionName, isRubyLine, lineAt, placedLines } from './heads.ts';
import { groupSections, TRACEBACK, withoutContext } from './tracebacks.ts';

/** Deepest chain of exceptions that is followed. What repeats the mark of one more often is no chain. */
export const MAX_CHAIN = 32;

/** Exceptions that were raised one around the other, the outermost first. */
export type Chain = readonly Head[];

/** Most lines in which the beginning of an exception is looked for. */
const MAX_LOOKED = 50;

/** Where the first exception begins, from there on; -1 if there is none. No indented line is looked at. */
export function firstHead(text: string, from: number): number {
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

/** Words in front of an exception that say it is the cause of the one before. */
const CAUSE_LINE = /^[^:\n]{0,30}\b(?:caused? by|cause|inner(?: exception)?)\b[^:\n]{0,20}: /i;
/** Lines that belong to the exception before, although a head stands in them. */
const SAME = /^(?:Caused by: |Suppressed: |Wrapped by: |Next |---> |\(|\[|PHP |Stack|Error Number|Severity)/;

/** Where the next exception begins that has nothing to do with the one at `from`; -1 if there is none. */
export function nextBeginning(text: string, from: number): number {
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
export function chainsIn(text: string): Chain[] {
  const outer = headAt(text, 0);
  if (outer === undefined) return [];
  if (isRubyLine(text)) return [rubyHeads(text)];
  if (text.includes('\nStack trace:')) return [inwards(text, '\nNext ', php)];
  if (text.includes('\nWrapped by: ')) return [inwards(text, '\nWrapped by: ', (head) => head)];
  return innerHeads(text, outer);
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

/**
 * The chains of a traceback, or of each exception in a group of them, and the group itself; nothing where none is told to its end.
 */
export function pythonChains(text: string): { readonly chains: readonly Chain[]; readonly group?: Head } {
  const [own, ...inner] = groupSections(text);
  const heads = pythonHeads(withoutContext(own ?? text));
  const [outer] = heads;
  if (outer === undefined) return { chains: [] };
  const chains = inner.flatMap((section) => {
    const told = withoutContext(section);
    const found = told.includes(TRACEBACK)
      ? pythonHeads(told)
      : [headAt(told, 0, anyName)].filter((one) => one !== undefined);
    const leaf = found.at(-1);
    // A group in a group tells its own below it.
    return leaf === undefined || leaf.type.endsWith('ExceptionGroup') ? [] : [found];
  });
  return chains.length === 0 ? { chains: [heads] } : { chains, group: outer };
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
