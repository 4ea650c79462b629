import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { Fingerprint } from '../../shared/classify/fingerprint.ts';
import type { SequenceNumber } from '../../shared/letter.ts';
import {
  addTo,
  type Group,
  groupOf,
  intervalOf,
  MAX_EXAMPLES,
  MAX_TYPES,
  mainOf,
  mergeGroups,
  OTHER,
  recounted,
  type Sighting,
  TREND_SPAN,
  TREND_STEP,
} from '../../shared/records/group.ts';
import { advicesFor, didNotHelp } from '../../shared/records/replays.ts';
import type { Triage } from '../../shared/records/triage.ts';
import { NOW } from '../harness/values.ts';

const FINGERPRINT = 'f1-aaaaaaaaaaaaaaaaaaaaaa' as Fingerprint;

function aSighting(changes: Partial<Sighting> = {}): Sighting {
  return {
    number: '1' as SequenceNumber,
    fingerprint: FINGERPRINT,
    cause: 'E: boom',
    category: 'poison',
    advice: 'fix-first',
    messageType: 'OrderPlaced',
    at: NOW,
    open: true,
    ...changes,
  };
}
const all = (sightings: readonly Sighting[]): Group => sightings.map(groupOf).reduce(mergeGroups);

describe('letters of one cause add up', () => {
  test('to counts, first and last, and what they have in common', () => {
    const group = all([
      aSighting({ number: '7' as SequenceNumber, at: NOW + 400_000 }),
      aSighting({ number: '3' as SequenceNumber, open: false, messageType: undefined }),
      aSighting({ number: '5' as SequenceNumber, category: 'transient', advice: 'replay', messageType: 'OrderPaid' }),
      aSighting({ number: '5' as SequenceNumber, messageType: 'OrderPaid' }),
    ]);
    expect(group).toEqual({
      fingerprint: FINGERPRINT,
      formerly: [],
      cause: 'E: boom',
      total: 4,
      open: 3,
      firstSeen: NOW,
      lastSeen: NOW + 400_000,
      trend: [
        [intervalOf(NOW), 3],
        [intervalOf(NOW) + TREND_STEP, 1],
      ],
      categories: [
        ['poison', 3],
        ['transient', 1],
      ],
      advices: [
        ['fix-first', 3],
        ['replay', 1],
      ],
      messageTypes: [
        ['OrderPaid', 2],
        ['OrderPlaced', 1],
      ],
      examples: ['3', '5', '7'],
      sent: 0,
      returned: 0,
      lastReturned: undefined,
    });
    expect(mainOf(group.categories)).toBe('poison');
    expect(mainOf([])).toBeUndefined();
  });

  test('in any order and in any portions to the same', () => {
    const sighting = fc.record({
      at: fc.integer({ min: 0, max: 2 * TREND_SPAN }).map((ms) => NOW + ms),
      open: fc.boolean(),
      category: fc.constantFrom('poison', 'transient', 'unknown'),
      messageType: fc.option(fc.constantFrom('A', 'B', '__proto__', 'constructor'), { nil: undefined }),
    });
    const some = fc.array(sighting, { minLength: 2, maxLength: 40 });
    fc.assert(
      fc.property(some, fc.nat(), (made, cut) => {
        const sightings = made.map((one, i) =>
          aSighting({ ...one, number: String(i + 1) as SequenceNumber } as Sighting),
        );
        const middle = 1 + (cut % (sightings.length - 1));
        const together = all(sightings);
        expect(mergeGroups(all(sightings.slice(middle)), all(sightings.slice(0, middle)))).toEqual(together);
        expect(all(sightings.toReversed())).toEqual(together);
        expect(together.total).toBe(sightings.length);
      }),
    );
  });

  test('each under its own fingerprint', () => {
    const groups = new Map<Fingerprint, Group>();
    const other = 'f1-bbbbbbbbbbbbbbbbbbbbbb' as Fingerprint;
    for (const fingerprint of [FINGERPRINT, other, FINGERPRINT]) addTo(groups, groupOf(aSighting({ fingerprint })));
    expect([...groups].map(([key, { total }]) => [key, total])).toEqual([
      [FINGERPRINT, 2],
      [other, 1],
    ]);
  });
});

describe('what a group keeps is bounded', () => {
  test('a trend of three hours, from its newest interval', () => {
    const hours = all(Array.from({ length: 100 }, (_, i) => aSighting({ at: NOW + i * TREND_STEP })));
    expect(hours.trend).toHaveLength(TREND_SPAN / TREND_STEP);
    expect(hours.trend.at(-1)?.[0]).toBe(intervalOf(NOW) + 99 * TREND_STEP);
    expect(hours.total).toBe(100);
  });

  test('message types: the most frequent, and the others as one', () => {
    const many = all([
      aSighting({ messageType: 'T7' }),
      ...Array.from({ length: 50 }, (_, i) => aSighting({ messageType: `T${i}` })),
      aSighting({ messageType: 'x'.repeat(5000) }),
    ]);
    expect(many.messageTypes).toHaveLength(MAX_TYPES);
    expect(many.messageTypes).toContainEqual(['T7', 2]);
    expect(many.messageTypes.map(([key]) => key)).toContain(OTHER);
    expect(many.messageTypes.reduce((sum, [, count]) => sum + count, 0)).toBe(52);
    expect(JSON.stringify(all([aSighting({ messageType: 'x'.repeat(5000) })])).length).toBeLessThan(1000);
  });

  test('examples: the newest', () => {
    const many = all(Array.from({ length: 30 }, (_, i) => aSighting({ number: String(i) as SequenceNumber })));
    expect(many.examples).toEqual(['25', '26', '27', '28', '29']);
    expect(many.examples).toHaveLength(MAX_EXAMPLES);
  });
});

describe('a recount', () => {
  const at = (minutes: number) => NOW + minutes * 60_000;
  const counted = all([aSighting({ at: at(0) }), aSighting({ at: at(30) })]);
  const stored = (...sightings: number[]) => all(sightings.map((minutes) => aSighting({ at: at(minutes) })));

  it.each<[string, Group, number, number]>([
    ['puts right what was counted too often long ago', stored(0, 0, 0, 30), at(25), 2],
    ['puts right what was not counted', stored(0), at(25), 2],
    ['keeps what was recorded while it counted', stored(0, 30, 30, 35), at(25), 4],
    ['believes nothing of what is settled', stored(0, 30, 30, 35), at(40), 2],
  ])('%s', (_what, group, settledUntil, total) => {
    expect(recounted(counted, group, settledUntil).total).toBe(total);
  });

  test('takes the last time from whoever saw more', () => {
    expect(recounted(counted, stored(0, 30, 35), at(25)).lastSeen).toBe(at(35));
    expect(recounted(counted, stored(0, 30), at(25)).lastSeen).toBe(at(30));
  });
});

describe('advice for a cause', () => {
  const advices = [
    ['replay', 5],
    ['investigate', 2],
    ['fix-first', 1],
  ] as const;
  const sentBack = all([
    aSighting({ open: false, sent: true, returnedAt: NOW }),
    aSighting({ open: false, sent: true, returnedAt: NOW + 5 }),
    aSighting({ open: false, sent: true }),
  ]);

  test('is to look at it once letters came back that were to be sent back; what is to be fixed stays so', () => {
    expect(advicesFor(advices, false)).toEqual(advices);
    expect(advicesFor(advices, true)).toEqual([
      ['investigate', 7],
      ['fix-first', 1],
    ]);
  });

  test('goes by what came back since somebody called it resolved', () => {
    expect(sentBack).toMatchObject({ sent: 3, returned: 2, lastReturned: NOW + 5 });
    const resolved = (resolvedAt: number | undefined): Triage => ({
      fingerprint: FINGERPRINT,
      cause: '',
      state: 'resolved',
      owner: '',
      note: '',
      bug: '',
      changedAt: NOW,
      changedBy: 'ada',
      resolvedAt,
      regressedAt: undefined,
    });
    const helped = [undefined, resolved(undefined), resolved(NOW + 4), resolved(NOW + 5)].map(
      (triage) => !didNotHelp(sentBack, triage),
    );
    expect(helped).toEqual([false, false, false, true]);
    expect(didNotHelp(all([aSighting({ sent: true, open: false })]), undefined)).toBe(false);
  });
});
