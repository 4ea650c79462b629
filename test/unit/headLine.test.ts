import { describe, expect, it, test } from 'vitest';
import { type CauseLine, headLine, type Place } from '../../shared/groups/headLine.ts';

const NOW = Date.UTC(2026, 10, 30, 3, 0);
const at = (time: string) => Date.parse(`${time.includes('T') ? time : `2026-11-30T${time}`}:00Z`);
const queues = (count: number): Place[] => Array.from({ length: count }, (_, i) => ({ name: `q${i}`, kind: 'queue' }));

/** A cause of `count` letters, all of one advice. */
function cause(count: number, changes: Partial<CauseLine> = {}): CauseLine {
  return {
    cause: 'TimeoutException: no answer',
    count,
    firstSeen: at('02:10'),
    lastSeen: at('02:31'),
    advices: [['replay', count]],
    sources: queues(4),
    state: 'open',
    regressedSince: undefined,
    ...changes,
  };
}
const fault = (count: number, name = 'A: a'): CauseLine =>
  cause(count, { cause: name, advices: [['fix-first', count]], sources: queues(1) });
const line = (...causes: CauseLine[]) => headLine(causes, NOW);

test('the one it is for', () => {
  expect(line(cause(3970), fault(30))).toBe(
    '3,970 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, safe to send back; 30 others will fail again.',
  );
});

describe('in words', () => {
  it.each<[string, CauseLine[], string]>([
    ['nothing', [], 'No open letters.'],
    ['causes without open letters', [cause(0)], 'No open letters.'],
    [
      'a single letter',
      [cause(1, { sources: queues(1), lastSeen: at('02:10') })],
      '1 letter on q0, one cause: "TimeoutException: no answer", at 02:10 UTC, safe to send back.',
    ],
    [
      'one cause that has been looked into by nobody',
      [cause(1000, { advices: [['investigate', 1000]] })],
      '1,000 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, to be looked at.',
    ],
    [
      'one cause, of which some have been sent back before',
      [
        cause(20, {
          advices: [
            ['replay', 15],
            ['investigate', 5],
          ],
        }),
      ],
      '20 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, 15 safe to send back, 5 to be looked at.',
    ],
    [
      'a story with one letter beside it',
      [cause(99), fault(1)],
      '99 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, safe to send back; 1 other will fail again.',
    ],
    [
      'a story with others of several causes and prospects',
      [cause(90), fault(6), cause(3, { cause: 'B: b', advices: [['investigate', 3]] }), cause(1, { cause: 'C: c' })],
      '90 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, safe to send back; 10 others of three causes: 6 will fail again, 3 to be looked at, 1 safe to send back.',
    ],
    [
      'no story: the largest three and the others',
      [fault(5, 'E: e'), cause(40), fault(30), fault(20, 'B: b'), fault(5, 'D: d')],
      '100 letters on four queues, five causes: 40 of "TimeoutException: no answer", between 02:10 and 02:31 UTC, safe to send back; 30 of "A: a", between 02:10 and 02:31 UTC, will fail again; 20 of "B: b", between 02:10 and 02:31 UTC, will fail again; 10 others of two causes will fail again.',
    ],
    [
      'what is on hold is not said to be safe',
      [cause(9, { state: 'on-hold' })],
      '9 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, on hold.',
    ],
    [
      'others on hold',
      [cause(90), cause(2, { cause: 'B: b', state: 'on-hold' })],
      '90 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, safe to send back; 2 others are on hold.',
    ],
    [
      'what was called resolved',
      [cause(9, { state: 'regressed', regressedSince: at('02:12') })],
      '9 letters on four queues, one cause: "TimeoutException: no answer", between 02:10 and 02:31 UTC, safe to send back, back since 02:12 UTC after it was resolved.',
    ],
  ])('%s', (_what, causes, text) => {
    expect(line(...causes)).toBe(text);
    expect(line(...causes.toReversed())).toBe(text);
  });
});

describe('where', () => {
  const where = (...sources: Place[]) => /on (.*?), one cause/.exec(line(cause(2, { sources })))?.[1];
  const subscription = (name: string): Place => ({ name, kind: 'subscription' });
  it.each<[Place[], string]>([
    [queues(1), 'q0'],
    [queues(2), 'two queues'],
    [queues(12), 'twelve queues'],
    [queues(13), '13 queues'],
    [queues(1200), '1,200 queues'],
    [[subscription('a')], 'a'],
    [[subscription('a'), subscription('b')], 'two subscriptions'],
    [[...queues(2), subscription('b')], 'three sources'],
  ])('%j', (sources, text) => {
    expect(where(...sources)).toBe(text);
  });

  test('a source with letters of several causes is one', () => {
    expect(line(fault(3), fault(3, 'B: b'))).toMatch(/^6 letters on q0, two causes: /);
  });
});

describe('when', () => {
  const when = (first: string, last: string) =>
    /", (.*), safe/.exec(line(cause(2, { firstSeen: at(first), lastSeen: at(last) })))?.[1];
  it.each([
    ['02:10', '02:31', 'between 02:10 and 02:31 UTC'],
    ['02:10', '02:10', 'at 02:10 UTC'],
    ['2026-11-29T23:50', '2026-11-29T23:50', 'on 2026-11-29 at 23:50 UTC'],
    ['2026-11-29T22:50', '2026-11-29T23:50', 'on 2026-11-29 between 22:50 and 23:50 UTC'],
    ['2026-11-29T23:50', '00:10', 'between 2026-11-29 23:50 and 2026-11-30 00:10 UTC'],
    ['2025-11-30T02:10', '02:10', 'between 2025-11-30 02:10 and 2026-11-30 02:10 UTC'],
  ])('%s to %s', (first, last, text) => {
    expect(when(first, last)).toBe(text);
  });

  test('a regression of another day has its date', () => {
    const regressed = cause(2, { state: 'regressed', regressedSince: at('2026-11-28T08:00') });
    expect(line(regressed)).toContain('back since 2026-11-28 08:00 UTC after');
  });
});
