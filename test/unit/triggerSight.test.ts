import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { triggerSight } from '../../shared/brokers/serviceBus/triggerSight.ts';

const TOKEN = 'a9a0c4e2-5b0c-4d1b-9a45-6a0d2f5b1c3e';
const metadata = {
  sequenceNumber: 17,
  messageId: 'm-1',
  lockToken: TOKEN,
  deliveryCount: 1,
  applicationProperties: {},
};

test('the host tells number, id and lock of the message it holds', () => {
  expect(triggerSight(metadata)).toEqual({ sequenceNumber: 17, messageId: 'm-1', lockToken: TOKEN });
});

describe('a message id that the host has parsed as JSON is text again', () => {
  it.each<[unknown, string | undefined]>([
    [123, '123'],
    [1.5, '1.5'],
    [true, 'true'],
    [null, 'null'],
    ['', ''],
    [undefined, undefined],
  ])('%j', (given, messageId) => {
    expect(triggerSight({ ...metadata, messageId: given })?.messageId).toBe(messageId);
  });
});

describe('what is not what the host gives is not believed', () => {
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'x'],
    ['a list', [metadata]],
    ['no fields', {}],
    ['no number', { ...metadata, sequenceNumber: undefined }],
    ['a number as text', { ...metadata, sequenceNumber: '17' }],
    ['a fraction', { ...metadata, sequenceNumber: 1.5 }],
    ['a negative number', { ...metadata, sequenceNumber: -1 }],
    ['a rounded number', { ...metadata, sequenceNumber: 2 ** 60 }],
    ['NaN', { ...metadata, sequenceNumber: Number.NaN }],
    ['an endless number', { ...metadata, sequenceNumber: Number.POSITIVE_INFINITY }],
    ['no lock', { ...metadata, lockToken: undefined }],
    ['a lock that is none', { ...metadata, lockToken: 'token' }],
    ['a lock that is a number', { ...metadata, lockToken: 7 }],
    ['an id that is an object', { ...metadata, messageId: { a: 1 } }],
    ['an id that is a list', { ...metadata, messageId: ['m-1'] }],
    ['names as .NET writes them', { SequenceNumber: 17, MessageId: 'm-1', LockToken: TOKEN }],
  ])('%s', (_what, given) => {
    expect(triggerSight(given)).toBeUndefined();
  });

  test('whatever it is, it does not throw', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), (sequenceNumber, messageId, lockToken) => {
        triggerSight({ sequenceNumber, messageId, lockToken });
        triggerSight(messageId);
      }),
    );
  });
});
