/** Python's tracebacks, taken apart: what was only being handled, and the exceptions of a group. */
import { linesOf } from './heads.ts';

export const TRACEBACK = 'Traceback (most recent call last)';
const GROUP = 'Exception Group Traceback (most recent call last)';
const CONTEXT = 'During handling of the above exception, another exception occurred:';

/** What is behind the last exception that was only being handled when another one came: context is no cause. */
export function withoutContext(text: string): string {
  const at = text.lastIndexOf(CONTEXT);
  return at < 0 ? text : text.slice(at + CONTEXT.length);
}

/** Most exceptions of one group. */
const MAX_SECTIONS = 50;

/**
 * A group's own traceback, then each of those in it, without the bars in front of their lines; the text alone where there is no
 * group.
 */
export function groupSections(text: string): string[] {
  if (!text.includes(GROUP)) return [text];
  const sections: string[][] = [[]];
  for (const line of linesOf(text, 2000)) {
    if (
      /^ {0,100}\+[-+]{1,8} ?-{4,40} \d{1,6} -{4,40}\s*$/.test(line) ||
      /^ {0,100}\+-{4,40} \d{1,6} -{4,40}\s*$/.test(line)
    ) {
      if (sections.length > MAX_SECTIONS) break;
      sections.push([]);
    } else if (!/^ {0,100}\+-{4,80}\s*$/.test(line)) sections.at(-1)?.push(line.replace(/^ {0,100}[|+] ?/, ''));
  }
  return sections.map((lines) => lines.join('\n').trimStart());
}

/** The part whose frames tell where the cause was: of a group with one exception that one's, with several the group's own. */
export function pythonTrace(text: string): string {
  const [own = text, ...inner] = groupSections(text);
  const leaves = inner.filter((section) => !section.includes(GROUP));
  return withoutContext(leaves.length === 1 ? (leaves[0] ?? own) : own);
}
