/** The project's Markdown pages as values: headings, links, inline code, code blocks. Reads files, checks nothing. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder, with a slash at its end. */
export const ROOT = new URL('../../', import.meta.url);
const FOLDER = fileURLToPath(ROOT);
const NOT_OURS = ['node_modules', 'dist', '.git'];

/** A fenced block. `line` is that of its first line of content, counted from 1. */
export interface Block {
  readonly language: string;
  readonly line: number;
  readonly text: string;
}

/** A piece of inline code, or a link, and where it stands. */
export interface Mention {
  readonly line: number;
  readonly text: string;
}

/** One page. `name` is its path from the root, with slashes. */
export interface Page {
  readonly name: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** Targets of its links, as written. */
  readonly links: readonly Mention[];
  readonly codes: readonly Mention[];
  /** Anchors of its headings, as GitHub makes them. */
  readonly anchors: ReadonlySet<string>;
  /** Lines without those of blocks; same numbers as in the file, a block's lines are empty. */
  readonly prose: readonly string[];
}

/** Names of files by a glob pattern from the root, without what is installed or built. Sorted. */
export function filesOf(pattern: string): string[] {
  const exclude = (name: string) => NOT_OURS.includes(basename(name));
  return globSync(pattern, { cwd: FOLDER, exclude })
    .map((name) => name.replaceAll('\\', '/'))
    .sort();
}

/** A file's text, by its path from the root. */
export function read(name: string): string {
  return readFileSync(new URL(name, ROOT), 'utf8');
}

/** Every page of the project. */
export function pages(): Page[] {
  return filesOf('**/*.md').map((name) => parsePage(name, read(name)));
}

/** A page from its text. */
export function parsePage(name: string, text: string): Page {
  const blocks: Block[] = [];
  const prose: string[] = [];
  let open: { fence: string; language: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const [, fence, language = ''] = /^\s*(`{3,}|~{3,})\s*(\S*)/.exec(line) ?? [];
    if (open === undefined && fence !== undefined) {
      open = { fence, language, line: index + 2, lines: [] };
      prose.push('');
    } else if (open !== undefined) {
      if (line.trim() === open.fence) {
        blocks.push({ language: open.language, line: open.line, text: open.lines.join('\n') });
        open = undefined;
      } else open.lines.push(line);
      prose.push('');
    } else prose.push(line);
  }
  const mentions = (pattern: RegExp, of: (line: string) => string): Mention[] =>
    prose.flatMap((line, i) =>
      [...of(line).matchAll(pattern)].map((match) => ({ line: i + 1, text: match[1] as string })),
    );
  return {
    name,
    text,
    blocks,
    prose,
    links: mentions(/\]\(([^)\s]+)\)/g, (line) => line.replaceAll(/`[^`]*`/g, '')),
    codes: mentions(/`([^`]+)`/g, (line) => line),
    anchors: anchorsOf(prose),
  };
}

/** GitHub's rule: lower case, without what is neither letter, digit, space nor hyphen; a second one gets `-1`. */
function anchorsOf(prose: readonly string[]): Set<string> {
  const anchors = new Set<string>();
  for (const line of prose) {
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = text.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let i = 1; anchors.has(unique); i++) unique = `${anchor}-${i}`;
    anchors.add(unique);
  }
  return anchors;
}

/** Rows of the tables under a heading (`## Heading`), without their head; cells without the blanks around them. */
export function rowsUnder(name: string, heading: string): string[][] {
  const { prose } = parsePage(name, read(name));
  const start = prose.findIndex((line) => /^#{2,3} /.test(line) && line.replace(/^#+ /, '') === heading);
  if (start < 0) throw new Error(`${name} has no heading "${heading}"`);
  const end = prose.findIndex((line, i) => i > start && /^## /.test(line));
  const lines = prose.slice(start, end < 0 ? undefined : end);
  return lines.flatMap((line, i) => {
    const isHead = /^\|[\s|:-]+\|$/.test(lines[i + 1] ?? '') || /^\|[\s|:-]+\|$/.test(line);
    const cells = line.split('|').slice(1, -1);
    return line.startsWith('|') && !isHead ? [cells.map((cell) => cell.trim())] : [];
  });
}
