/** How the ceiling of a namespace is kept, on a clock of the test's own. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bucket } from '../../shared/brokers/serviceBus/bucket.ts';

/** Runs costs one after the other, each as soon as it may begin; gives the times at which they did. */
function begin(bucket: Bucket, costs: readonly number[], from = 0): number[] {
  let now = from;
  return costs.map((cost) => {
    now += bucket.waitFor(cost, now);
    bucket.pay(cost, now);
    return now;
  });
}

describe('the ceiling', () => {
  it('lets a second of traffic through at once, then as much a second as it says', () => {
    const bucket = new Bucket(200, 0);
    expect(begin(bucket, Array(5).fill(100))).toEqual([0, 0, 500, 1000, 1500]);
  });

  it('lets through what costs more than a second of traffic, and makes up for it afterwards', () => {
    const bucket = new Bucket(10, 0);
    expect(begin(bucket, [100, 1, 100])).toEqual([0, 9_100, 10_100]);
  });

  it('lets the next one wait for what was paid without waiting', () => {
    const bucket = new Bucket(100, 0);
    bucket.pay(300, 0);
    expect(bucket.waitFor(1, 0)).toBe(2_010);
    expect(bucket.waitFor(1, 2_010)).toBe(0);
  });

  it('saves up no more than a second of traffic', () => {
    const bucket = new Bucket(100, 0);
    expect(begin(bucket, [100, 1], 3_600_000)).toEqual([3_600_000, 3_600_010]);
  });

  it('takes a clock that goes back for one that stands still', () => {
    const bucket = new Bucket(100, 1_000);
    bucket.pay(100, 1_000);
    expect(bucket.waitFor(1, 0)).toBe(10);
    expect(bucket.waitFor(1, 1_010)).toBe(0);
  });

  it('is kept whatever is asked for, and nobody waits for ever', () => {
    const operation = fc.record({ cost: fc.integer({ min: 1, max: 500 }), pause: fc.integer({ min: 0, max: 3_000 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), fc.array(operation, { maxLength: 50 }), (ceiling, operations) => {
        const bucket = new Bucket(ceiling, 0);
        let now = 0;
        let begun = 0;
        for (const { cost, pause } of operations) {
          now += pause;
          const wait = bucket.waitFor(cost, now);
          expect(wait).toBeLessThanOrEqual(((500 + ceiling) / ceiling) * 1000 + 1);
          now += wait;
          expect(bucket.waitFor(cost, now)).toBe(0);
          // All that had begun before fits into the time and the burst, but for the one that may owe.
          expect(begun).toBeLessThanOrEqual((ceiling * now) / 1000 + ceiling + 1e-6);
          bucket.pay(cost, now);
          begun += cost;
        }
      }),
    );
  });
});

describe('a busy broker', () => {
  it('gets half at once, and nothing that was saved up', () => {
    const bucket = new Bucket(200, 0);
    expect(bucket.slowDown(0)).toBe(true);
    expect(begin(bucket, [100, 100])).toEqual([1_000, 2_000]);
  });

  it('is believed once for all that it refused together', () => {
    const bucket = new Bucket(200, 0);
    expect([0, 300, 900].map((now) => bucket.slowDown(now))).toEqual([true, false, false]);
    expect(bucket.rate(900)).toBe(100);
    expect(bucket.slowDown(1_000)).toBe(true);
    expect(bucket.rate(1_000)).toBe(50);
  });

  it('gets more again after ten seconds, by and by up to the ceiling', () => {
    const bucket = new Bucket(200, 0);
    bucket.slowDown(0);
    const rates = [9_999, 10_000, 11_000, 15_000, 20_000, 60_000].map((now) => bucket.rate(now));
    expect(rates).toEqual([100, 100, 110, 150, 200, 200]);
  });

  it('is asked now and then however often it refuses', () => {
    const bucket = new Bucket(320, 0);
    for (let now = 0; now < 60_000; now += 1_000) bucket.slowDown(now);
    expect(bucket.rate(60_000)).toBe(10);
    expect(bucket.waitFor(100, 60_000)).toBeLessThanOrEqual(1_000);
  });
});
