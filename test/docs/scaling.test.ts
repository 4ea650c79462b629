import { expect, test } from 'vitest';
import { constant } from './constants.ts';
import { rowsUnder } from './pages.ts';

/** Rows of a table: what it is, the limit, for whom, and `CONSTANT`, `file`. */
const LIMITS = rowsUnder('docs/scaling.md', 'Limits of one office').flatMap(([what = '', limit = '', , where = '']) => {
  const [, names, file] = /^((?:`[A-Z_]+`(?: × )?)+), `([\w./]+\.ts)`$/.exec(where) ?? [];
  return names === undefined || file === undefined ? [] : [{ what, limit, names: names.match(/[A-Z_]+/g) ?? [], file }];
});

test('the page names the constants behind its limits', () => {
  expect(LIMITS.length).toBeGreaterThan(4);
});

test.each(LIMITS)('the limit of $what is that of the code', ({ limit, names, file }) => {
  const value = names.map((name) => constant(name, file)).reduce((product, factor) => product * factor, 1);
  expect(limit.split(' ')[0]).toBe(value.toLocaleString('en-US'));
});

const PAPER = rowsUnder('docs/scaling.md', 'On paper: 1 thousand, 100 thousand, 10 million letters a day');
const LETTERS = [1000, 100_000, 10_000_000];
const SOURCES = [10, 10, 100];

/** Rows of the table on paper by their first cell, and the arithmetic that the last cell tells. */
const ARITHMETIC: Record<string, (letters: number, sources: number) => string> = {
  'operations a day': (letters) => (letters * 5).toLocaleString('en-US'),
  'on average a second': (letters) => significant((letters * 5) / 86_400),
  'time to collect them': (letters) => duration((letters * 2) / 200),
  'time to send them back': (letters) => duration((letters * 3) / 200),
  'waiting of a ramp, once a run': () => duration(3 * (60 * 10 + 60)),
  'table calls a day': (letters, sources) => (letters * 0.155 + sources * 8640).toLocaleString('en-US'),
  'signals a day': (letters, sources) => (letters + sources * 6 * 1440).toLocaleString('en-US'),
  'records, `keepRecordsFor` P90D': (letters) => bytes(letters * 7000 * 90),
  'records, P7D': (letters) => bytes(letters * 7000 * 7),
  'plans and audit, `keepAuditFor` P400D': (letters) => bytes(letters * 100 * 400),
  'rows a source, P90D': (letters, sources) => ((letters / sources) * 90).toLocaleString('en-US'),
  'rows a source, P7D': (letters, sources) => ((letters / sources) * 7).toLocaleString('en-US'),
};

test('every row on paper is calculated', () => {
  expect(PAPER.map(([what]) => what)).toEqual(Object.keys(ARITHMETIC));
});

test.each(Object.entries(ARITHMETIC))('on paper: %s', (what, calculate) => {
  const row = PAPER.find(([first]) => first === what);
  expect(row?.slice(1, 4)).toEqual(LETTERS.map((letters, i) => calculate(letters, SOURCES[i] as number)));
});

function significant(value: number): string {
  return value < 1 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0);
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function bytes(count: number): string {
  const gigabytes = count / 1e9;
  if (gigabytes >= 1000) return `${(gigabytes / 1000).toFixed(1)} TB`;
  return gigabytes < 1 ? `${gigabytes.toFixed(2)} GB` : `${Number(gigabytes.toFixed(1))} GB`;
}
