/** Fifteen runs and five contests of `npm run soak`, always the same: killed at random, judged to the last letter. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeStorage } from '../harness/storage.ts';
import { CONTEST, HARD, type Result, SINGLE, soak } from '../soak/soak.ts';

const SEEDS = Array.from({ length: 15 }, (_, i) => 5 + i);
/** Of these the first version lost letters in one and hid some in another. */
const CONTESTS = Array.from({ length: 5 }, (_, i) => 206 + i);
let results: Result[];
let contests: Result[];
const deaths: string[] = [];
let log = '';

beforeAll(async () => {
  const onDeaths = (points: readonly string[]) => {
    deaths.push(...points);
  };
  const onLog = (text: string) => {
    log = text;
  };
  const [storage, another] = [await takeStorage(), await takeStorage()];
  const kills = { fewestKills: 3, mostKills: 3 };
  ({ results } = await soak(SINGLE, { storage, seeds: SEEDS, together: 8, ...kills, onDeaths, onLog }));
  ({ results: contests } = await soak(CONTEST, { storage: another, seeds: CONTESTS, ...HARD, onDeaths, onLog }));
}, 240_000);
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

test.each(CONTESTS.map((seed, i) => [seed, i]))(
  'contest %i of several plans over the same letters loses nothing, hides nothing, and doubles nothing without a word',
  (_seed, i) => {
    const result = contests[i];
    expect(result?.problems, result?.line).toEqual([]);
  },
);

test('the app did die, in the midst of acts that matter', () => {
  expect(deaths.length).toBeGreaterThan(2);
  expect(deaths.some((point) => /send|complete|take|write/.test(point) && !point.startsWith('waiting'))).toBe(true);
});
