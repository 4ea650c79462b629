import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { type Page, pages, parsePage, ROOT } from './pages.ts';

const PAGES = pages();
const BY_NAME = new Map(PAGES.map((page) => [page.name, page]));

/** What is wrong with a page's links, one line each. */
function brokenLinks(page: Page): string[] {
  return page.links.flatMap(({ text, line }) => {
    const problem = /^[a-z]+:/.test(text) ? undefined : problemOf(page, text);
    return problem === undefined ? [] : [`${page.name}:${line}: ${text}: ${problem}`];
  });
}

function problemOf(page: Page, link: string): string | undefined {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page.name : posix.join(posix.dirname(page.name), decodeURIComponent(path));
  if (path !== '' && !existsSync(new URL(target, ROOT))) return `there is no ${target}`;
  if (anchor === undefined) return undefined;
  const other = target === page.name ? page : BY_NAME.get(target);
  return other?.anchors.has(anchor) ? undefined : `there is no heading for it in ${target}`;
}

test.each(PAGES)('links and anchors of $name lead somewhere', (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

test('every page can be reached from README.md, but for notes beside tests', () => {
  const reached = new Set(['README.md']);
  for (const name of reached) {
    for (const { text } of BY_NAME.get(name)?.links ?? []) {
      const target = posix.join(posix.dirname(name), text.split('#')[0] ?? '');
      if (BY_NAME.has(target)) reached.add(target);
    }
  }
  expect(PAGES.map(({ name }) => name).filter((name) => !reached.has(name) && !name.startsWith('test/'))).toEqual([]);
});

test('a link to nothing, and an anchor without a heading, are noticed', () => {
  const text = '# One\n\n[a](nothing.md) [b](#one) [c](#two) [d](README.md#nothing) [e](https://example.org/x)\n';
  expect(brokenLinks(parsePage('page.md', text))).toEqual([
    'page.md:3: nothing.md: there is no nothing.md',
    'page.md:3: #two: there is no heading for it in page.md',
    'page.md:3: README.md#nothing: there is no heading for it in README.md',
  ]);
});
