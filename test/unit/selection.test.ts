import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { selectionOf, selectionQuery } from '../../shared/http/schemas.ts';
import type { PlanId, SequenceNumber } from '../../shared/letter.ts';
import { shownRecord } from '../../shared/mask.ts';
import { matches, selectionSchema, selectionToJson } from '../../shared/selection.ts';
import { aRecord, NOW, NUMBER } from '../harness/values.ts';

type Json = Record<string, unknown>;

const fits = (selection: Json, record = aRecord()) =>
  matches(shownRecord({ mask: [] }, record), selectionSchema.parse(selection));
const iso = (ms: number) => new Date(ms).toISOString();

const record = aRecord(
  {
    properties: [
      { name: 'tenant', type: 'string', value: 'a:b' },
      { name: 'attempt', type: 'int', value: 7 },
      { name: 'vip', type: 'boolean', value: true },
      { name: 'empty', type: 'null', value: null },
    ],
    replay: { count: 2, planId: '20261130t104512-k3f5q2xa' as PlanId, of: '3' as SequenceNumber, at: NOW },
  },
  {
    category: 'poison',
    advice: 'fix-first',
    rule: 'own:parse',
    evidence: {
      reason: 'ParseError',
      exceptionType: 'ParseError',
      causeType: 'SyntaxError',
      messageType: 'OrderPlaced',
    },
  },
);
const { firstSeen } = record;
const { enqueuedAt } = record.letter;

describe('a list of what to leave out', () => {
  it.each<[string, Json, Json]>([
    ['reason', { not: { reason: ['other'] } }, { not: { reason: ['other', ' PARSEERROR '] } }],
    ['category', { not: { category: ['transient'] } }, { not: { category: ['poison'] } }],
    ['advice', { not: { advice: ['replay'] } }, { not: { advice: ['fix-first'] } }],
    ['exceptionType', { not: { exceptionType: ['parseerror'] } }, { not: { exceptionType: ['ParseError'] } }],
    ['causeType', { not: { causeType: ['ParseError'] } }, { not: { causeType: ['SyntaxError'] } }],
    ['rule', { not: { rule: ['own:other'] } }, { not: { rule: ['own:parse'] } }],
    ['messageType', { not: { messageType: ['x'] } }, { not: { messageType: ['OrderPlaced'] } }],
    ['messageId', { not: { messageId: ['M-1'] } }, { not: { messageId: ['m-1'] } }],
    ['sequenceNumber', { not: { sequenceNumber: ['1'] } }, { not: { sequenceNumber: ['17'] } }],
  ])('%s rejects its values and nothing else', (_name, chosen, rejected) => {
    expect(fits(chosen, record)).toBe(true);
    expect(fits(rejected, record)).toBe(false);
  });

  it('lets letters pass that do not have the trait at all', () => {
    expect(fits({ not: { exceptionType: ['x'] } })).toBe(true);
  });

  it('is stronger than the list of what to take', () => {
    expect(fits({ reason: ['ParseError'], not: { messageId: ['m-1'] } }, record)).toBe(false);
  });
});

describe('each condition chooses and rejects by itself', () => {
  it.each<[string, Json, Json]>([
    ['reason', { reason: ['other', 'ParseError'] }, { reason: ['other'] }],
    ['category', { category: ['poison'] }, { category: ['transient', 'unknown'] }],
    ['advice', { advice: ['fix-first'] }, { advice: ['replay'] }],
    ['exceptionType', { exceptionType: ['ParseError'] }, { exceptionType: ['parseerror'] }],
    ['causeType', { causeType: ['SyntaxError'] }, { causeType: ['ParseError'] }],
    ['rule', { rule: ['own:parse'] }, { rule: ['own'] }],
    ['messageType', { messageType: ['OrderPlaced'] }, { messageType: ['orderplaced'] }],
    ['messageId', { messageId: ['m-1'] }, { messageId: ['M-1'] }],
    ['sequenceNumber', { sequenceNumber: ['1', '17'] }, { sequenceNumber: ['170'] }],
    ['seenFrom', { seenFrom: iso(firstSeen) }, { seenFrom: iso(firstSeen + 1) }],
    ['seenTo', { seenTo: iso(firstSeen) }, { seenTo: iso(firstSeen - 1) }],
    ['enqueuedFrom', { enqueuedFrom: iso(enqueuedAt) }, { enqueuedFrom: iso(enqueuedAt + 1) }],
    ['enqueuedTo', { enqueuedTo: iso(enqueuedAt) }, { enqueuedTo: iso(enqueuedAt - 1) }],
    ['property', { property: { name: 'tenant', equals: 'a:b' } }, { property: { name: 'Tenant', equals: 'a:b' } }],
    [
      'a number property',
      { property: { name: 'attempt', equals: '7' } },
      { property: { name: 'attempt', equals: '7.0' } },
    ],
    [
      'a boolean property',
      { property: { name: 'vip', equals: 'true' } },
      { property: { name: 'vip', equals: 'True' } },
    ],
    ['minReplayCount', { minReplayCount: 2 }, { minReplayCount: 3 }],
    ['maxReplayCount', { maxReplayCount: 2 }, { maxReplayCount: 1 }],
  ])('%s', (_name, chosen, rejected) => {
    expect(fits(chosen, record)).toBe(true);
    expect(fits(rejected, record)).toBe(false);
  });
});

test('without conditions every letter fits', () => {
  expect(fits({})).toBe(true);
  expect(fits({}, aRecord({ reason: undefined, messageId: undefined }, { evidence: {} }))).toBe(true);
});

test('all conditions must hold at once', () => {
  expect(fits({ reason: ['ParseError'], category: ['poison'], minReplayCount: 1 }, record)).toBe(true);
  expect(fits({ reason: ['ParseError'], category: ['transient'] }, record)).toBe(false);
});

test('a letter without the trait does not fit a condition on it', () => {
  const bare = aRecord({ reason: undefined, messageId: undefined }, { evidence: {} });
  for (const name of ['reason', 'exceptionType', 'messageType', 'messageId']) {
    expect(fits({ [name]: ['undefined'] }, bare), name).toBe(false);
  }
});

test.each(['maxdeliverycountexceeded', 'MAXDELIVERYCOUNTEXCEEDED', ' MaxDeliveryCountExceeded '])(
  'reasons are compared without regard to case and outer blanks: %j',
  (reason) => {
    const letter = aRecord({}, { evidence: { reason: 'MaxDeliveryCountExceeded' } });
    expect(fits({ reason: [reason] }, letter)).toBe(true);
  },
);

describe('what is no selection is refused', () => {
  it.each<[string, unknown]>([
    ['null', null],
    ['a list', []],
    ['a text', 'reason'],
    ['an unknown field', { reasons: ['x'] }],
    ['an unknown field that objects inherit', JSON.parse('{"__proto__":{"reason":["x"]}}')],
    ['a reason that is no list', { reason: 'x' }],
    ['an empty list', { reason: [] }],
    ['an empty reason', { reason: [''] }],
    ['a reason that is too long', { reason: ['x'.repeat(5000)] }],
    ['too many reasons', { reason: Array.from({ length: 101 }, (_, i) => `r${i}`) }],
    ['a number as reason', { reason: [1] }],
    ['null as reason', { reason: [null] }],
    ['an unknown category', { category: ['bad'] }],
    ['an unknown advice', { advice: ['send'] }],
    ['a sequence number that is a number', { sequenceNumber: [2 ** 53] }],
    ['a sequence number beyond 64 bits', { sequenceNumber: ['9223372036854775808'] }],
    ['a negative sequence number', { sequenceNumber: ['-1'] }],
    ['a time without a zone', { seenFrom: '2026-11-30T00:00:00' }],
    ['a day', { seenFrom: '2026-11-30' }],
    ['a number as time', { seenTo: 1 }],
    ['a day that is not in the calendar', { seenTo: '2026-02-30T00:00:00Z' }],
    ['a time before any table can hold it', { seenTo: '0001-01-01T00:00:00Z' }],
    ['a time after the last one that a table can hold', { seenTo: '9999-12-31T23:59:59-23:00' }],
    ['a property without a value', { property: { name: 'x' } }],
    ['a property with more', { property: { name: 'x', equals: 'y', like: 'z' } }],
    ['a property without a name', { property: { name: '', equals: '' } }],
    ['a fraction as count', { minReplayCount: 0.5 }],
    ['a negative count', { minReplayCount: -1 }],
    ['an endless count', { maxReplayCount: Number.POSITIVE_INFINITY }],
    ['no number as count', { maxReplayCount: Number.NaN }],
  ])('%s', (_what, selection) => {
    expect(selectionSchema.safeParse(selection).success).toBe(false);
  });
});

describe('the selection in a query says the same as in JSON', () => {
  it.each<[Json, Json]>([
    [{ reason: 'a' }, { reason: ['a'] }],
    [{ reason: ['a', 'b,c'] }, { reason: ['a', 'b,c'] }],
    [
      { category: 'poison', advice: ['replay', 'fix-first'] },
      { category: ['poison'], advice: ['replay', 'fix-first'] },
    ],
    [
      { exceptionType: 'E', causeType: 'C', rule: 'own:r', messageType: 'M', messageId: 'i' },
      { exceptionType: ['E'], causeType: ['C'], rule: ['own:r'], messageType: ['M'], messageId: ['i'] },
    ],
    [{ sequenceNumber: ['1', '9223372036854775807'] }, { sequenceNumber: ['1', '9223372036854775807'] }],
    [{ seenFrom: '2026-11-30T01:00:00+01:00' }, { seenFrom: '2026-11-30T00:00:00Z' }],
    [
      { seenTo: '2026-11-30T00:00:00Z', enqueuedFrom: '2026-11-29T00:00:00Z' },
      { seenTo: '2026-11-30T00:00:00.000Z', enqueuedFrom: '2026-11-29T00:00:00Z' },
    ],
    [{ enqueuedTo: '2026-11-30T00:00:00Z' }, { enqueuedTo: '2026-11-30T00:00:00Z' }],
    [{ property: 'tenant:a:b' }, { property: { name: 'tenant', equals: 'a:b' } }],
    [{ property: 'tenant:' }, { property: { name: 'tenant', equals: '' } }],
    [
      { minReplayCount: '1', maxReplayCount: '3' },
      { minReplayCount: 1, maxReplayCount: 3 },
    ],
    [{ notReason: ['a', 'b'], notCategory: 'poison' }, { not: { reason: ['a', 'b'], category: ['poison'] } }],
    [{ notCauseType: 'C', notRule: ['a', 'b'] }, { not: { causeType: ['C'], rule: ['a', 'b'] } }],
    [{}, {}],
  ])('%j', (query, json) => {
    expect(selectionOf(selectionQuery.parse(query))).toEqual({ not: {}, ...selectionSchema.parse(json) });
  });

  it.each<[Json]>([
    [{ reason: '' }],
    [{ reasons: 'a' }],
    [{ category: 'bad' }],
    [{ sequenceNumber: '01' }],
    [{ seenFrom: ['2026-11-30T00:00:00Z', '2026-11-30T00:00:00Z'] }],
    [{ property: 'tenant' }],
    [{ property: ':x' }],
    [{ property: ['a:b', 'c:d'] }],
    [{ minReplayCount: '' }],
    [{ minReplayCount: '1.0' }],
    [{ minReplayCount: '-1' }],
    [{ minReplayCount: '1e3' }],
    [{ minReplayCount: ['1', '2'] }],
    [{ maxReplayCount: '9999999999999999999999' }],
  ])('and what is none is refused: %j', (query) => {
    expect(selectionQuery.safeParse(query).success).toBe(false);
  });

  test('a condition of one form is a condition of the other', () => {
    const { not, ...flat } = selectionSchema.shape;
    const negated = Object.keys(not.unwrap().shape).map((name) => `not${name[0]?.toUpperCase()}${name.slice(1)}`);
    expect(Object.keys(selectionQuery.shape).sort()).toEqual([...Object.keys(flat), ...negated].sort());
  });
});

test('a selection that was stored is read back as it was', () => {
  const time = fc.date({
    min: new Date('1601-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  });
  const texts = fc.array(fc.string({ minLength: 1, unit: 'binary' }), { minLength: 1, maxLength: 5 });
  const arbitrary = fc.record(
    {
      reason: texts,
      messageId: texts,
      category: fc.constant(['poison']),
      sequenceNumber: fc.array(fc.bigInt(0n, 2n ** 63n - 1n).map(String), { minLength: 1 }),
      seenFrom: time.map((date) => date.toISOString()),
      seenTo: time.map((date) => date.toISOString()),
      property: fc.record({ name: fc.string({ minLength: 1 }), equals: fc.string() }),
      maxReplayCount: fc.nat(1000),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(arbitrary, (json) => {
      const selection = selectionSchema.parse(json);
      const stored = JSON.stringify(selectionToJson(selection));
      expect(selectionSchema.parse(JSON.parse(stored))).toEqual(selection);
    }),
  );
});

test('whatever is given, checking it does not throw', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true }), (anything) => {
      selectionSchema.safeParse(anything);
      selectionQuery.safeParse(anything);
    }),
  );
});

test('numbers beyond 2^53 are told apart', () => {
  const wide = aRecord({ sequenceNumber: '9007199254740993' as SequenceNumber });
  expect(fits({ sequenceNumber: ['9007199254740993'] }, wide)).toBe(true);
  expect(fits({ sequenceNumber: ['9007199254740992'] }, wide)).toBe(false);
  expect(fits({ sequenceNumber: [NUMBER] })).toBe(true);
});

describe('a property in a query', () => {
  const parsed = (property: string) => selectionQuery.safeParse({ property }).data?.property;

  it.each([
    ['tenant:a', 'tenant', 'a'],
    ['tenant:', 'tenant', ''],
    ['tenant:a:b\\:c', 'tenant', 'a:b\\:c'],
    ['http\\://host/path:x', 'http://host/path', 'x'],
    ['a\\b:x', 'a\\b', 'x'],
    ['a\\\\:x', 'a\\', 'x'],
  ])('%s', (text, name, equals) => {
    expect(parsed(text)).toEqual({ name, equals });
  });

  it.each([
    '',
    ':',
    ':x',
    'tenant',
    'http\\://host',
    `${'n'.repeat(257)}:x`,
    `n:${'x'.repeat(4097)}`,
    '\\'.repeat(4600),
  ])('%s is none', (text) => {
    expect(selectionQuery.safeParse({ property: text }).success).toBe(false);
  });
});
