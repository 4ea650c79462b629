/** What a description of a queue or topic says about it. */
import { describe, expect, it } from 'vitest';
import { readDescription } from '../../shared/brokers/serviceBus/description.ts';
import { scopeOf } from '../../shared/brokers/serviceBus/resourceManager.ts';

const QUEUE = {
  status: 'Active',
  requiresDuplicateDetection: true,
  duplicateDetectionHistoryTimeWindow: 'PT10M',
  requiresSession: false,
  deadLetteringOnMessageExpiration: true,
  lockDuration: 'PT1M30S',
  maxDeliveryCount: 10,
  defaultMessageTimeToLive: 'P14D',
  maxMessageSizeInKilobytes: 256,
  enablePartitioning: false,
};

describe('a description', () => {
  it('gives every fact, in ms and bytes', () => {
    expect(readDescription({ ...QUEUE, countDetails: { activeMessageCount: 5 } })).toEqual({
      status: 'active',
      duplicateDetection: 600_000,
      requiresSession: false,
      deadLettersOnExpiry: true,
      lockDuration: 90_000,
      maxDeliveryCount: 10,
      defaultTimeToLive: 14 * 86_400_000,
      maxMessageBytes: 262_144,
      partitioned: false,
    });
  });

  it('of a topic gives what topics have', () => {
    const topic = { status: 'Active', requiresDuplicateDetection: false, enablePartitioning: true };
    expect(readDescription(topic)).toEqual({ status: 'active', duplicateDetection: false, partitioned: true });
  });

  it.each([
    ['Active', 'active'],
    ['active', 'active'],
    ['Disabled', 'disabled'],
    ['SendDisabled', 'send-disabled'],
    ['ReceiveDisabled', 'receive-disabled'],
    ['Deleting', undefined],
    ['constructor', undefined],
  ])('with status %s is %s', (status, expected) => {
    expect(readDescription({ ...QUEUE, status }).status).toBe(expected);
  });

  it('without a window does not know its duplicate detection, and says off only when it is off', () => {
    const { duplicateDetectionHistoryTimeWindow: _, ...without } = QUEUE;
    expect(readDescription(without)).not.toHaveProperty('duplicateDetection');
    expect(readDescription({ ...QUEUE, requiresDuplicateDetection: false }).duplicateDetection).toBe(false);
  });

  it.each(['P10675199DT2H48M5.4775807S', 'P10675199DT2H48M5.477S', 'P10675199D'])(
    'has no time to live of %s',
    (text) => {
      expect(readDescription({ ...QUEUE, defaultMessageTimeToLive: text })).not.toHaveProperty('defaultTimeToLive');
    },
  );

  it('leaves out what is null, and a size of nothing', () => {
    const nothing = { requiresSession: null, lockDuration: null, maxMessageSizeInKilobytes: 0 };
    const facts = readDescription({ ...QUEUE, ...nothing });
    expect(Object.keys(facts)).toEqual(
      expect.not.arrayContaining(['requiresSession', 'lockDuration', 'maxMessageBytes']),
    );
  });

  it.each([
    ['undefined', undefined],
    ['a text', '<html>'],
    ['a list', []],
    ['nothing', {}],
    ['no status', { ...QUEUE, status: undefined }],
    ['no word on duplicates', { ...QUEUE, requiresDuplicateDetection: undefined }],
    ['a text for a boolean', { ...QUEUE, requiresSession: 'false' }],
    ['a number for a duration', { ...QUEUE, lockDuration: 60 }],
    ['another form of duration', { ...QUEUE, duplicateDetectionHistoryTimeWindow: '00:10:00' }],
    ['a negative duration', { ...QUEUE, lockDuration: '-PT1M' }],
    ['a size without end', { ...QUEUE, maxMessageSizeInKilobytes: 1e308 }],
  ])('is refused when it is %s', (_, json) => {
    expect(() => readDescription(json)).toThrow(/cannot be read/);
  });
});

describe('a token', () => {
  it('is asked for the cloud that is asked', () => {
    expect(scopeOf(new URL('https://management.azure.com'))).toBe('https://management.azure.com/.default');
    expect(scopeOf(new URL('https://management.usgovcloudapi.net/'))).toBe(
      'https://management.usgovcloudapi.net/.default',
    );
  });
});
