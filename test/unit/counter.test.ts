import { describe, expect, it, test } from 'vitest';
import { type Counted, compareCounts, differsFor } from '../../shared/counter.ts';
import { NOW } from '../harness/values.ts';

const MINUTE = 60_000;

/** Passes a minute apart: what the broker counted, and what the office had on record after each. */
function passes(...numbers: [broker: number | undefined, office: number][]): Counted {
  let last: Counted | undefined;
  for (const [i, [count, open]] of numbers.entries()) {
    last = compareCounts(last, count === undefined ? { unread: 'no right' } : { count }, open, NOW + i * MINUTE);
  }
  if (last === undefined) throw new Error('there is a pass');
  return last;
}

describe('the broker counts between two counts of the office, so both agree', () => {
  it.each<[string, [number | undefined, number][]]>([
    [
      'where both are the same',
      [
        [3, 3],
        [3, 3],
        [3, 3],
      ],
    ],
    [
      'while letters come',
      [
        [0, 0],
        [7, 10],
        [15, 20],
        [28, 30],
      ],
    ],
    [
      'while letters leave',
      [
        [30, 30],
        [25, 20],
        [13, 10],
        [10, 10],
      ],
    ],
    [
      'where it could not be read',
      [
        [9, 3],
        [9, 3],
        [undefined, 3],
      ],
    ],
    [
      'again after they did not',
      [
        [9, 3],
        [9, 3],
        [3, 3],
      ],
    ],
  ])('%s', (_when, numbers) => {
    expect(differsFor(passes(...numbers))).toBe(0);
  });
});

test('they differ since the first pass in a row with too much, or with too little', () => {
  expect(passes([3, 0]).differsSince).toBe(NOW);
  expect(differsFor(passes([3, 0], [3, 0], [3, 0], [3, 0]))).toBe(3 * MINUTE);
  expect(differsFor(passes([0, 0], [4, 3], [4, 3], [5, 3]))).toBe(2 * MINUTE);
  // Now too much, now too little: letters move, that is all.
  expect(differsFor(passes([5, 3], [2, 3], [5, 3], [2, 3]))).toBe(0);
});

test('why it could not be read is told', () => {
  expect(passes([undefined, 3])).toEqual({
    at: NOW,
    count: undefined,
    unread: 'no right',
    open: 3,
    differsSince: undefined,
  });
});
