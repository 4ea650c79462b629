import { describe, expect, it, test } from 'vitest';
import { duration, parseDuration } from '../../shared/duration.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('a duration', () => {
  it.each([
    ['PT0S', 0],
    ['P0D', 0],
    ['PT30S', 30 * SECOND],
    ['PT1M30S', 90 * SECOND],
    ['PT1.5S', 1500],
    ['PT0.001S', 1],
    ['PT1.005S', 1005],
    ['PT1.0001S', 1000],
    ['PT0.0009999S', 1],
    ['PT90M', 90 * MINUTE],
    ['P1DT2H', DAY + 2 * HOUR],
    ['P14D', 14 * DAY],
    ['P2W', 14 * DAY],
    ['P1W1D', 8 * DAY],
    ['P1DT1H1M1S', DAY + HOUR + MINUTE + SECOND],
    ['P10675199D', 10_675_199 * DAY],
    ['P10675199DT2H48M5.4775807S', 922_337_203_685_478],
  ])('%s is read as milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    'P',
    'PT',
    'P1DT',
    'P1Y',
    'P1M',
    '14D',
    'P-1D',
    '-P1D',
    'PT1.00000001S',
    'PT1.S',
    'PT1.5M',
    'P1.5D',
    'PT1S ',
    ' PT1S',
    'pt1s',
    'PT1S\n',
    'P１D',
    'P1D2W',
    'PT1M1H',
    'P99999999999999D',
    `P${'9'.repeat(400)}D`,
  ])('%j is refused', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test('in JSON it is a text, and a wrong one is told how to write it', () => {
    expect(duration.parse('PT1H')).toBe(HOUR);
    expect(duration.safeParse(60).success).toBe(false);
    const { error } = duration.safeParse('1h');
    expect(error?.issues[0]?.message).toContain('ISO 8601');
  });
});
