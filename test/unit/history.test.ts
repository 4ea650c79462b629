import { describe, expect, it } from 'vitest';
import { doubtAbout } from '../../shared/desk/history.ts';
import type { Letter, PlanId, SequenceNumber } from '../../shared/letter.ts';
import type { LetterRecord } from '../../shared/records/letterRecord.ts';
import { aPlan, aRecord, NOW, NUMBER, PLAN_ID } from '../harness/values.ts';

const OTHER_PLAN = '20261130t104512-bbbbbbbb' as PlanId;
const replayed = (planId: PlanId) => ({ closed: { fate: 'replayed', at: NOW, planId } }) as const;
const later = (changes: Partial<Letter> = {}) =>
  aRecord({
    sequenceNumber: '18' as SequenceNumber,
    replay: { count: 1, planId: PLAN_ID, of: NUMBER, at: NOW },
    ...changes,
  });
const sandbox = aPlan({ choices: { ...aPlan().choices, target: 'sandbox' } });

describe('an earlier life is believed', () => {
  it.each<[string, LetterRecord, LetterRecord, ReturnType<typeof aPlan> | undefined]>([
    ['that the plan sent back', { ...aRecord(), ...replayed(PLAN_ID) }, later(), aPlan()],
    ['when the plan is forgotten, but the record names it', { ...aRecord(), ...replayed(PLAN_ID) }, later(), undefined],
    ['that is still open: the run died before it could say so', aRecord(), later(), aPlan()],
    [
      'under a new id of that plan',
      { ...aRecord(), ...replayed(PLAN_ID) },
      later({ messageId: `${PLAN_ID}:17` }),
      aPlan(),
    ],
    [
      'of a copy for a sandbox, whatever became of the letter',
      { ...aRecord(), ...replayed(OTHER_PLAN) },
      later(),
      sandbox,
    ],
    [
      'that the plan may have sent, and another one did',
      { ...aRecord(), ...replayed(OTHER_PLAN), maybeSentBy: PLAN_ID },
      later(),
      aPlan(),
    ],
    [
      'without a plan',
      aRecord(),
      later({ replay: { count: 1, planId: undefined, of: NUMBER, at: undefined } }),
      undefined,
    ],
  ])('%s', (_what, earlier, record, plan) => {
    expect(doubtAbout(earlier, record, plan)).toBeUndefined();
  });
});

describe('an earlier life is doubted', () => {
  it.each<[string, LetterRecord, LetterRecord, ReturnType<typeof aPlan> | undefined, string]>([
    [
      'of another message',
      { ...aRecord(), ...replayed(PLAN_ID) },
      later({ messageId: 'm-2' }),
      aPlan(),
      'another message',
    ],
    ['of no message id where there was one', aRecord(), later({ messageId: undefined }), aPlan(), 'another message'],
    ['under a new id of another plan', aRecord(), later({ messageId: `${OTHER_PLAN}:17` }), aPlan(), 'another message'],
    [
      'with another body',
      aRecord(),
      later({ body: { kind: 'data', bytes: 100, hash: 'other' } }),
      aPlan(),
      'another body',
    ],
    ['that another plan sent back', { ...aRecord(), ...replayed(OTHER_PLAN) }, later(), aPlan(), OTHER_PLAN],
    ['by a plan that nobody knows', aRecord(), later(), undefined, `no plan ${PLAN_ID}`],
  ])('%s', (_what, earlier, record, plan, doubt) => {
    expect(doubtAbout(earlier, record, plan)).toContain(doubt);
  });
});
