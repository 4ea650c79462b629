import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/promises.md', ROOT), 'utf8');
const NAMED = /^`(test\/[\w./-]+\.test\.ts)` (.+)$/;

interface Row {
  readonly number: number;
  readonly how: string;
  readonly tests: readonly string[];
}

const ROWS = PAGE.split('\n').flatMap((line): Row[] => {
  const cells = line.split('|').map((cell) => cell.trim());
  if (!/^\d+$/.test(cells[1] ?? '')) return [];
  const tests = (cells[5] ?? '').split('<br>').filter((text) => text !== '');
  return [{ number: Number(cells[1]), how: cells[4] ?? '', tests }];
});

/** Rows of the rules that were found broken: rule, how, tests. */
const RULES = (PAGE.split('## Rules that were found broken')[1]?.split('\n## ')[0] ?? '')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, rule = '', how = '']) => how !== '' && !/^(-+|The rule)$/.test(rule))
  .map(([, rule = '', how = '', tests = '']) => ({ rule, how, tests: tests.split('<br>') }));

test('the page of promises has every complaint once, in order, with all its cells', () => {
  expect(ROWS.map(({ number }) => number)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  for (const line of PAGE.split('\n').filter((text) => /^\| \d/.test(text))) {
    expect(
      line
        .split('|')
        .slice(1, 5)
        .every((cell) => cell.trim() !== ''),
      line,
    ).toBe(true);
  }
});

test('a promise without a test says why it does not apply', () => {
  const bare = ROWS.filter(({ tests }) => tests.length === 0);
  expect(bare.filter(({ how }) => !how.startsWith('does not apply: '))).toEqual([]);
});

test.each([
  ...ROWS.flatMap(({ number, tests }) => tests.map((text) => [String(number), text] as const)),
  ...RULES.flatMap(({ rule, tests }) => tests.map((text) => [rule, text] as const)),
])('promise %s is held by a test of that name: %s', (_number, text) => {
  const [, file = '', title = ''] = NAMED.exec(text) ?? [];
  const source = readFileSync(new URL(file, ROOT), 'utf8');
  // As the title of a test, in whatever quotes; at the end of a table of cases it stands alone on its line.
  const escaped = title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  expect(source).toMatch(new RegExp(`(?:test|it)?\\(?\\s*(['"\`])${escaped}\\1,`));
});
