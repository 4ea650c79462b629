/** A store that fails one call in twenty, and a broker that strikes every run several times. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeStorage } from '../harness/storage.ts';
import { TROUBLES } from '../harness/storeProxy.ts';
import { type Harm, type Result, soak } from '../soak/soak.ts';

const SEEDS = Array.from({ length: 10 }, (_, i) => 16 + i);
let results: Result[];
let harm: Harm;
let log = '';

beforeAll(async () => {
  ({ results, harm } = await soak({
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

test('every kind of failure of the store happened, and the broker struck', () => {
  expect(TROUBLES.filter((trouble) => harm.store[trouble] === 0)).toEqual([]);
  expect(harm.broker).toBeGreaterThan(SEEDS.length);
});
