import { expect, it } from 'vitest';
import { shownRecord } from '../../shared/mask.ts';
import { countLetter, NO_TALLY, tallySchema } from '../../shared/records/tally.ts';
import { aRecord, NOW } from '../harness/values.ts';

it('counts letters by reason, category and age, and adds up their bytes', () => {
  const letters = [
    aRecord({ reason: 'A', bytes: 100 }),
    aRecord({ reason: 'A', bytes: 50 }, { category: 'poison' }),
    { ...aRecord({ reason: undefined, bytes: 1 }), firstSeen: NOW - 200 * 3_600_000 },
  ];
  const tally = letters.reduce((all, letter) => countLetter(all, shownRecord({ mask: [] }, letter), NOW), NO_TALLY);
  expect(tally).toEqual({
    reason: { A: 2, '(none)': 1 },
    category: { unknown: 2, poison: 1 },
    age: { 'under an hour': 2, older: 1 },
    bytes: 151,
  });
});

it('stays small and true whatever senders write as reasons', () => {
  const names = [...Array.from({ length: 100 }, (_, i) => `reason ${i}`), '__proto__', 'constructor', 'x'.repeat(5000)];
  let tally = NO_TALLY;
  for (const reason of ['__proto__', ...names])
    tally = countLetter(tally, shownRecord({ mask: [] }, aRecord({ reason })), NOW);
  expect(Object.values(tally.reason).reduce((a, b) => a + b)).toBe(104);
  expect(Object.keys(tally.reason).length).toBeLessThanOrEqual(41);
  expect(Object.entries(tally.reason)).toContainEqual(['__proto__', 2]);
  expect(JSON.stringify(tally).length).toBeLessThan(20_000);
  expect(tallySchema.safeParse(JSON.parse(JSON.stringify(tally))).success).toBe(true);
});
