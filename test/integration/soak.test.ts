/** Fifteen runs of `npm run soak`, always the same: killed at random, judged to the last letter. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeStorage } from '../harness/storage.ts';
import { type Result, soak } from '../soak/soak.ts';

const SEEDS = Array.from({ length: 15 }, (_, i) => 5 + i);
let results: Result[];
const deaths: string[] = [];
let log = '';

beforeAll(async () => {
  ({ results } = await soak({
    storage: await takeStorage(),
    seeds: SEEDS,
    together: 8,
    fewestKills: 3,
    mostKills: 3,
    onDeaths: (points) => {
      deaths.push(...points);
    },
    onLog: (text) => {
      log = text;
    },
  }));
}, 180_000);
afterAll(() => {
  if (log !== '') console.log(log.slice(-5000));
});

test.each(SEEDS.map((seed, i) => [seed, i]))(
  'run %i loses nothing, doubles nothing without a mark, and leaves nothing locked, however often the app dies',
  (_seed, i) => {
    const result = results[i];
    expect(result?.problems, result?.line).toEqual([]);
  },
);

test('the app did die, in the midst of acts that matter', () => {
  expect(deaths.length).toBeGreaterThan(2);
  expect(deaths.some((point) => /send|complete|take|write/.test(point) && !point.startsWith('waiting'))).toBe(true);
});
