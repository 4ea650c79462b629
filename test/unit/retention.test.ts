import { describe, expect, it, test } from 'vitest';
import { expiryCutoff } from '../../shared/retention/policy.ts';
import { aSource, NOW } from '../harness/values.ts';

const DAY = 86_400_000;

describe('letters are past their retention when they were first seen at or before', () => {
  it.each([
    ['PT1S', NOW - 1000],
    ['P14D', NOW - 14 * DAY],
    ['P1000W', NOW - 7000 * DAY],
  ])('now minus %s', (retainFor, cutoff) => {
    expect(expiryCutoff(aSource({ retainFor }), NOW)).toBe(cutoff);
  });
});

test('without a promise nothing is ever past it', () => {
  expect(expiryCutoff(aSource(), NOW)).toBeUndefined();
  expect(expiryCutoff(aSource(), Number.MAX_SAFE_INTEGER)).toBeUndefined();
});
