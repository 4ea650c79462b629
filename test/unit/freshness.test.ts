import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { DIFFERS_AFTER, isStale, oldest, PASS_EVERY, passText, STALE_AFTER } from '../../shared/watch/freshness.ts';
import { NOW } from '../harness/values.ts';

const MINUTE = 60_000;
const text = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('a pass is due as often as the timer comes, and two may be missed, as the page says', () => {
  expect(text('functions/collect.ts')).toContain("schedule: '0 * * * * *'");
  expect(PASS_EVERY).toBe(MINUTE);
  expect(STALE_AFTER).toBe(3 * PASS_EVERY);
  expect(text('docs/operate.md')).toContain('every source was looked at within the last three minutes');
  expect(DIFFERS_AFTER).toBe(2 * PASS_EVERY);
  expect(text('docs/operate.md')).toContain('both have differed for longer than two passes');
});

test('what was seen within that time is fresh, what is older or was never seen is not', () => {
  expect([NOW, NOW - STALE_AFTER].map((at) => isStale(at, NOW))).toEqual([false, false]);
  expect([NOW - STALE_AFTER - 1, undefined].map((at) => isStale(at, NOW))).toEqual([true, true]);
});

test('of several times the oldest counts, and none where one is not known', () => {
  expect(oldest([3, 1, 2])).toBe(1);
  expect(oldest([3, undefined, 2])).toBeUndefined();
  expect(oldest([])).toBeUndefined();
});

describe('it is told how long nobody has looked', () => {
  it.each([
    [0, '0 minutes ago'],
    [-MINUTE, '0 minutes ago'],
    [MINUTE, '1 minute ago'],
    [119 * MINUTE, '119 minutes ago'],
    [120 * MINUTE, '2 hours ago'],
    [49 * 60 * MINUTE, '2 days ago'],
  ])('%d ms', (age, told) => {
    expect(passText('orders', NOW - age, NOW)).toBe(`the last pass over orders completed ${told}`);
  });

  it('or that nobody ever has', () => {
    expect(passText('orders', undefined, NOW)).toBe('no pass over orders has completed yet');
  });
});
