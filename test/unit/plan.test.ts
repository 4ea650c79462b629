import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { causeOf } from '../../shared/classify/fingerprint.ts';
import { identityDigest, type SequenceNumber } from '../../shared/letter.ts';
import {
  type Counts,
  choicesSchema,
  type Exception,
  type Fate,
  isBlocked,
  NO_COUNTS,
  SKIP_REASONS,
  settle,
} from '../../shared/records/plan.ts';
import { aLetter, aSource } from '../harness/values.ts';

const fate: fc.Arbitrary<Fate> = fc.oneof(
  fc.constantFrom(...SKIP_REASONS).map((reason): Fate => ({ kind: 'skipped', reason })),
  fc.string().map((reason): Fate => ({ kind: 'failed', reason })),
  fc.constantFrom('cancelled', 'locked', 'not-held').map((reason): Fate => ({ kind: 'left', reason })),
);
const exception: fc.Arbitrary<Exception> = fc.record({
  number: fc.nat().map((n) => String(n) as SequenceNumber),
  fate,
  maybeDuplicate: fc.boolean(),
});
const sum = ({ pending, done, skipped, failed, left }: Counts) => pending + done + skipped + failed + left;

test('what was planned is at all times the sum of the fates and of what is pending', () => {
  const step = fc.record({ done: fc.nat(100), exceptions: fc.array(exception, { maxLength: 20 }) });
  fc.assert(
    fc.property(fc.array(step), fc.nat(50), (steps, rest) => {
      const letters = steps.reduce((total, { done, exceptions }) => total + done + exceptions.length, 0);
      let counts: Counts = { ...NO_COUNTS, planned: letters + rest, pending: letters + rest };
      for (const { done, exceptions } of steps) {
        counts = settle(counts, done, exceptions, exceptions.filter(({ maybeDuplicate }) => maybeDuplicate).length);
        expect(counts.planned).toBe(sum(counts));
        expect(Math.min(...Object.values(counts))).toBeGreaterThanOrEqual(0);
      }
      expect(counts.pending).toBe(rest);
    }),
  );
});

test('each exception counts under its own fate', () => {
  const except = (fate: Fate): Exception => ({ number: '1' as SequenceNumber, fate, maybeDuplicate: false });
  const exceptions = [
    except({ kind: 'skipped', reason: 'gone' }),
    except({ kind: 'failed', reason: 'refused' }),
    except({ kind: 'failed', reason: 'refused' }),
    except({ kind: 'left', reason: 'locked' }),
  ];
  const counts = settle({ ...NO_COUNTS, planned: 10, pending: 10 }, 3, exceptions, 2);
  expect(counts).toEqual({ planned: 10, pending: 3, done: 3, skipped: 1, failed: 2, left: 1, maybeDuplicate: 2 });
});

test('warnings do not block a plan, one block does', () => {
  const warn = { code: 'over-limit', level: 'warn', letters: 1, message: 'm' } as const;
  expect(isBlocked([])).toBe(false);
  expect(isBlocked([warn])).toBe(false);
  expect(isBlocked([warn, { ...warn, level: 'block' }])).toBe(true);
});

describe('choices', () => {
  test('are cautious by default', () => {
    expect(choicesSchema.parse({})).toEqual({
      bypass: false,
      includeFixFirst: false,
      onDuplicate: 'skip',
      target: 'origin',
    });
  });

  test('include groups on hold by their fingerprints, and say nothing of holds where none is included', () => {
    const { fingerprint } = causeOf({ reason: 'Declined' }, aSource().key);
    expect(choicesSchema.parse({ includeOnHold: [fingerprint] })).toMatchObject({ includeOnHold: [fingerprint] });
    // What is stored is read by the version before this one, which knows no such choice.
    expect(choicesSchema.parse({})).not.toHaveProperty('includeOnHold');
    for (const includeOnHold of [[], ['*'], [fingerprint.slice(1)], fingerprint, true]) {
      expect(choicesSchema.safeParse({ includeOnHold }).success).toBe(false);
    }
  });

  test('keep message ids unless new ones are asked for, and say nothing of it to older readers', () => {
    expect(choicesSchema.parse({ messageId: 'new' })).toMatchObject({ messageId: 'new' });
    expect(choicesSchema.parse({})).not.toHaveProperty('messageId');
    expect(choicesSchema.safeParse({ messageId: 'other' }).success).toBe(false);
  });

  it.each([{ bypass: 'true' }, { bypass: 1 }, { onDuplicate: 'send' }, { fanOut: true }, [], null])(
    'refuse %j',
    (choices) => {
      expect(choicesSchema.safeParse(choices).success).toBe(false);
    },
  );
});

describe('the digest of an identity', () => {
  test('is the same for what is the same message, and fits a chunk row', () => {
    expect(identityDigest(aLetter())).toBe(identityDigest(aLetter({ state: 'active', deliveryCount: 0 })));
    expect(identityDigest(aLetter()).length).toBe(22);
  });

  it.each([
    [{ messageId: 'm-2' }],
    [{ messageId: undefined }],
    [{ messageId: 'null' }],
    [{ enqueuedAt: 1 }],
    [{ body: { kind: 'data', bytes: 100, hash: 'x' } }],
  ] as const)('is another for %j', (change) => {
    expect(identityDigest(aLetter(change))).not.toBe(identityDigest(aLetter()));
  });

  test('of no message id is not that of the text "null"', () => {
    expect(identityDigest(aLetter({ messageId: undefined }))).not.toBe(identityDigest(aLetter({ messageId: 'null' })));
  });
});
