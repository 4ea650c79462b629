import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  compareSequenceNumbers,
  isSameMessage,
  newPlanId,
  parsePlanId,
  parseSequenceNumber,
  planCreatedAt,
  type SequenceNumber,
  sequenceNumber,
} from '../../shared/letter.ts';
import { aLetter, NOW } from '../harness/values.ts';

describe('a sequence number', () => {
  it.each(['0', '1', '9007199254740993', '72057594037927937', '9223372036854775807'])(
    '%s keeps every digit',
    (text) => {
      expect(parseSequenceNumber(text)).toBe(text);
      expect(sequenceNumber(BigInt(text))).toBe(text);
    },
  );

  it.each([
    '',
    ' ',
    '-1',
    '+1',
    '01',
    '00',
    '1.0',
    '1e3',
    '0x10',
    '1_000',
    ' 1',
    '1 ',
    '1\n',
    '٣',
    'NaN',
    'Infinity',
    '9223372036854775808',
    '9999999999999999999999',
    '9'.repeat(10_000),
    "1' or '1' eq '1",
  ])('%j is none', (text) => {
    expect(parseSequenceNumber(text)).toBeUndefined();
  });

  test('order is by value, whatever the length', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 63n - 1n), fc.bigInt(0n, 2n ** 63n - 1n), (a, b) => {
        const order = compareSequenceNumbers(sequenceNumber(a), sequenceNumber(b));
        expect(Math.sign(order)).toBe(a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });
});

describe('a plan id', () => {
  test('is made of the time and five random bytes, and tells the time again', () => {
    const id = newPlanId(NOW + 678, new Uint8Array([0, 0, 0, 0, 0]));
    expect(id).toBe('20261130t104512-aaaaaaaa');
    expect(planCreatedAt(id)).toBe(NOW);
    expect(parsePlanId(id)).toBe(id);
  });

  test('every random part gives another valid id of the same length', () => {
    const bytes = fc.uint8Array({ minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        const [one, other] = [newPlanId(NOW, a), newPlanId(NOW, b)];
        expect(parsePlanId(one)).toBe(one);
        expect(one === other).toBe(Buffer.compare(a, b) === 0);
      }),
    );
  });

  test('ids sort by the time they were made', () => {
    const time = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(time, time, (a, b) => {
        fc.pre(Math.floor(a / 1000) < Math.floor(b / 1000));
        const random = new Uint8Array([255, 255, 255, 255, 255]);
        expect(newPlanId(a, random) < newPlanId(b, new Uint8Array(5))).toBe(true);
      }),
    );
  });

  it.each([
    '',
    '20261130t104512',
    '20261130T104512-k3f5q2xa',
    '20261130t104512-k3f9q2xa',
    '20261130t104512-k3f5q2x',
    '20261130t104512-k3f5q2xaa',
    '20261130t104512-k3f5q2xa\n',
    "20261130t104512-k3f5q2x'",
    '../20261130t104512-k3f5q2xa',
  ])('%j is none', (text) => {
    expect(parsePlanId(text)).toBeUndefined();
  });
});

describe('the identity of a message', () => {
  test('is the same for two readings of one message, whatever else has changed', () => {
    expect(isSameMessage(aLetter({ state: 'active' }), aLetter({ state: 'held', deliveryCount: 9 }))).toBe(true);
    expect(isSameMessage(aLetter({ messageId: undefined }), aLetter({ messageId: undefined }))).toBe(true);
  });

  it.each([
    ['message id', { messageId: 'other' }],
    ['missing message id', { messageId: undefined }],
    ['enqueued time', { enqueuedAt: NOW }],
    ['body', { body: { kind: 'data', bytes: 100, hash: 'other' } }],
  ] as const)('is another with another %s, though the number is the same', (_what, change) => {
    expect(isSameMessage(aLetter(), aLetter({ ...change, sequenceNumber: '17' as SequenceNumber }))).toBe(false);
  });
});
