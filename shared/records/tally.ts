/** What kinds of letters a plan holds, counted while it is prepared. Values only. */
import { z } from 'zod';
import type { ShownRecord } from '../mask.ts';

const counts = z.record(z.string(), z.number());

/** Letters of a plan that will be acted on, by their traits. */
export const tallySchema = z.object({
  reason: counts,
  category: counts,
  /** By time since the letter was first seen. */
  age: counts,
  /** All their messages together. */
  bytes: z.number(),
});
export type PlanTally = z.infer<typeof tallySchema>;

export const NO_TALLY: PlanTally = { reason: {}, category: {}, age: {}, bytes: 0 };

const MAX_REASONS = 40;
const HOUR = 3_600_000;
const AGES: readonly (readonly [string, number])[] = [
  ['under an hour', HOUR],
  ['under a day', 24 * HOUR],
  ['under a week', 168 * HOUR],
];

/** `tally` with one more letter. Beyond 40 reasons the rest are counted as `(other)`: a sender may make up any number. */
export function countLetter(
  tally: PlanTally,
  { classification, letter, firstSeen }: ShownRecord,
  now: number,
): PlanTally {
  const reason = (classification.evidence.reason ?? '(none)').slice(0, 200);
  const isRoom = Object.hasOwn(tally.reason, reason) || Object.keys(tally.reason).length < MAX_REASONS;
  const age = AGES.find(([, limit]) => now - firstSeen < limit)?.[0] ?? 'older';
  return {
    reason: plusOne(tally.reason, isRoom ? reason : '(other)'),
    category: plusOne(tally.category, classification.category),
    age: plusOne(tally.age, age),
    bytes: tally.bytes + letter.bytes,
  };
}

function plusOne(all: Readonly<Record<string, number>>, key: string): Record<string, number> {
  // Entries, not a spread: a reason may be called `__proto__`.
  const entries = new Map(Object.entries(all));
  entries.set(key, (entries.get(key) ?? 0) + 1);
  return Object.fromEntries(entries);
}
