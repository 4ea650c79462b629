import { describe, expect, test } from 'vitest';
import type { Evidence } from '../../shared/classify/evidence.ts';
import { causeOf } from '../../shared/classify/fingerprint.ts';
import { classify } from '../../shared/classify/index.ts';
import { TOLD } from '../fixtures/exceptions/index.ts';
import type { Told } from '../fixtures/exceptions/told.ts';
import { aSight, aSource } from '../harness/values.ts';

/** A consumer that dead-letters with a reason of its own and the text as its description. */
const read = ({ text }: Told) => classify(aSight({ reason: 'ProcessingFailed', description: text }));

/** Which cause a text is taken for, wherever in the program it was. */
function causeIn(told: Told): string {
  const { frame: _, ...placeless }: Evidence = read(told).evidence;
  return causeOf(placeless, aSource().key).fingerprint;
}

const RULES: Readonly<Record<string, string>> = { none: 'application-reason' };

describe.each(Object.entries(TOLD))('%s', (_language, rows) => {
  test.each(rows)('$rule: $text', (told) => {
    const { rule, evidence } = read(told);
    expect(rule).toBe(RULES[told.rule] ?? `exception:${told.rule}`);
    if (told.cause !== undefined)
      expect((evidence.causeType ?? evidence.exceptionType)?.split(/[.:$\\]/).at(-1)).toBe(told.cause);
    if (told.frame !== undefined) expect(evidence.frame).toBe(told.frame);
  });
});

test('there are many of them, of every language', () => {
  expect(Object.values(TOLD).flat().length).toBeGreaterThanOrEqual(150);
});

test('two dumps of one cause are one cause, and those of two causes never are', () => {
  const byCause = Map.groupBy(Object.values(TOLD).flat(), causeIn);
  const wrong = [...byCause.values()].filter(
    (rows) => rows.length > 1 && !rows.every(({ same }) => same !== undefined && same === rows[0]?.same),
  );
  expect(wrong.map((rows) => rows.map(({ text }) => text))).toEqual([]);
  const bySame = Map.groupBy(
    Object.values(TOLD)
      .flat()
      .filter(({ same }) => same !== undefined),
    ({ same }) => same,
  );
  for (const [same, rows] of bySame) {
    expect(rows.length, same).toBeGreaterThan(1);
    expect(new Set(rows.map(causeIn)).size, same).toBe(1);
  }
});

/** Texts that would be slow to read for whoever goes back and forth in them. */
const HOSTILE: Readonly<Record<string, string>> = {
  'nothing but colons': ': '.repeat(20_000),
  'names without end': 'A.BException'.repeat(3_000),
  'heads in each line': 'System.TimeoutException: no\n'.repeat(2_000),
  'heads in one line': 'System.TimeoutException: '.repeat(2_000),
  arrows: ' ---> System.TimeoutException: no'.repeat(2_000),
  'numbered ones': '\n---> (Inner Exception #0) A.BException: no'.repeat(1_000),
  causes: 'A.BException: x\nCaused by: '.repeat(2_000),
  'Ruby that never ends': `${"a.rb:1:in 'x': ".repeat(2_000)} (NoMethodError)`,
  brackets: `System.X ${'('.repeat(30_000)}: no`,
  tracebacks: 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nKeyError: 1\n'.repeat(600),
  'groups in groups':
    '  | Exception Group Traceback (most recent call last):\n  +-+---------------- 1 ----------------\n'.repeat(500),
  workers: 'Result: Failure\nException: '.repeat(1_500),
  blanks: ' '.repeat(32_000),
  'blanks and a word': `${' \n'.repeat(16_000)}x`,
  'frames of no language': '   x a.b.c(\n'.repeat(3_000),
  'a path without an end': `   bei A.B() in ${'\\x'.repeat(10_000)}`,
  statuses: 'status '.repeat(6_000),
  'errors in a list': `AggregateError: x\n  [errors]: [\n${'    Error: x\n'.repeat(2_000)}`,
};

test.each(Object.entries(HOSTILE))('%s do not keep anybody waiting', (_what, text) => {
  const properties = ['MT-Fault-StackTrace', 'NServiceBus.ExceptionInfo.StackTrace', 'rbs2-error-details'].map(
    (name) => ({ name, type: 'string', value: text }),
  );
  // A moment when each text is gone through once; minutes when somebody goes back and forth in it.
  for (let i = 0; i < 20; i++)
    expect(classify(aSight({ reason: text, description: text, properties })).rule).toBeDefined();
});
