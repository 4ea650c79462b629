import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LetterBody } from '../../shared/classify/body.ts';
import { ADVICES, CATEGORIES } from '../../shared/classify/evidence.ts';
import { classify, DIALECTS, judgeAgain } from '../../shared/classify/index.ts';
import { compileKnowledge } from '../../shared/classify/knowledge.ts';
import { ruleSchema } from '../../shared/classify/rules.ts';
import { Sight } from '../../shared/classify/sight.ts';
import { LIMIT } from '../../shared/classify/text.ts';
import type { SourceKey } from '../../shared/letter.ts';
import { fromRow, toRow } from '../../shared/store/letterRow.ts';
import { anyLetter } from '../harness/randomLetters.ts';
import { NOW } from '../harness/values.ts';

const SOURCE = 'office.servicebus.windows.net|orders' as SourceKey;

const KNOWLEDGE = compileKnowledge(
  {
    rules: [
      ruleSchema.parse({
        name: 'x',
        when: { reason: '*a*b*', bodyPath: { path: 'dead_letter.reason', matches: '*' } },
        category: 'transient',
        advice: 'replay',
      }),
    ],
    payloads: { a: { type: 'object' } },
    consumedBy: 'azure-functions',
  },
  [],
);

/** A row's cells come back as they went, but for times, which are dates there. */
function throughTheStore(row: ReturnType<typeof toRow>): ReturnType<typeof fromRow> {
  const cells = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
  return fromRow({ ...cells, partitionKey: row.partitionKey, rowKey: row.rowKey, etag: '' });
}

test('10,000 random letters: each gets a category and an advice, none throws, and every record can be read again', () => {
  fc.assert(
    fc.property(anyLetter, ({ letter, content }) => {
      const sight = new Sight(letter, new LetterBody(letter.body, () => [content]), KNOWLEDGE.consumedBy);
      const found = classify(sight, DIALECTS, KNOWLEDGE);
      expect(found.error).toBeUndefined();
      expect(CATEGORIES).toContain(found.category);
      expect(ADVICES).toContain(found.advice);
      if (letter.replay.count > 0) expect(found.advice).not.toBe('replay');
      for (const value of Object.values(found.evidence)) {
        expect(typeof value === 'number' ? value >= 0 : value.length <= LIMIT.reason).toBe(true);
      }
      // What one cell of a row may hold, and where cutting ends.
      const row = toRow(SOURCE, 'test', letter, found, NOW);
      expect(Math.max(...Object.values(row).map((cell) => (typeof cell === 'string' ? cell.length : 0)))).toBeLessThan(
        32_000,
      );
      const read = throughTheStore(row).classification;
      expect({ category: read.category, advice: read.advice, rule: read.rule }).toEqual({
        category: found.category,
        advice: found.advice,
        rule: found.rule,
      });
      expect(judgeAgain(sight, read, KNOWLEDGE).category).toBeDefined();
    }),
    { numRuns: 10_000 },
  );
}, 120_000);
