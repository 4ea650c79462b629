/** A store that fails one call in twenty, and a broker that strikes every run several times. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeStorage } from '../harness/storage.ts';
import { TROUBLES } from '../harness/storeProxy.ts';
import { type Harm, type Result, SINGLE, soak } from '../soak/soak.ts';

/** `npm run test:long` makes enough of them to see every kind of failure. */
const LONG = process.env.LONG === '1';
const SEEDS = Array.from({ length: LONG ? 10 : 4 }, (_, i) => 16 + i);
let results: Result[];
let harm: Harm;
let log = '';

beforeAll(async () => {
  ({ results, harm } = await soak(SINGLE, {
    storage: await takeStorage(),
    seeds: SEEDS,
    mostKills: 0,
    storeFailures: 0.05,
    brokerTroubles: 4,
    onLog: (text) => {
      log = text;
    },
  }));
}, 240_000);
afterAll(() => {
  if (log !== '') console.log(log.slice(-5000));
});

test.each(SEEDS.map((seed, i) => [seed, i]))(
  'run %i loses nothing and doubles nothing without a mark, however store and broker fail',
  (_seed, i) => {
    const result = results[i];
    expect(result?.problems, result?.line).toEqual([]);
  },
);

test('the store failed, and the broker struck', () => {
  const failures = TROUBLES.map((trouble) => harm.store[trouble]);
  expect(failures.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(SEEDS.length);
  expect(harm.broker).toBeGreaterThan(0);
});

test.runIf(LONG)('every kind of failure of the store happened', () => {
  expect(TROUBLES.filter((trouble) => harm.store[trouble] === 0)).toEqual([]);
});
