import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { classify, DIALECTS } from '../../shared/classify/index.ts';
import { letterFixtures, sightOf } from '../harness/letterFixtures.ts';

const FIXTURES = letterFixtures();
const NAMES = DIALECTS.map(({ name }) => name);

describe.each([...new Set(FIXTURES.map(({ dialect }) => dialect))])('letters of %s', (dialect) => {
  const letters = FIXTURES.filter((one) => one.dialect === dialect);

  test.each(letters)('$name: $title', (fixture) => {
    const { category, advice, rule, dialects, evidence, unread } = classify(sightOf(fixture));
    expect({ category, advice, rule, dialects, evidence, ...(unread && { unread }) }).toEqual(fixture.expect);
  });

  test('are there in every kind: typical, minimal, odd, hostile', () => {
    expect(NAMES).toContain(dialect);
    expect(new Set(letters.map(({ kind }) => kind))).toEqual(new Set(['typical', 'minimal', 'odd', 'hostile']));
  });
});

test('every dialect has its letters, and is recognised in some of them', () => {
  expect([...new Set(FIXTURES.map(({ dialect }) => dialect))].sort()).toEqual([...NAMES].sort());
  for (const name of NAMES) {
    const known = FIXTURES.filter(({ dialect, expect: { dialects } }) => dialect === name && dialects.includes(name));
    expect(known.length, name).toBeGreaterThanOrEqual(2);
  }
});

test('every dialect has its page, and the overview names it', () => {
  const folder = join(import.meta.dirname, '../../docs/dialects');
  const overview = readFileSync(join(folder, 'README.md'), 'utf8');
  for (const name of NAMES) {
    expect(existsSync(join(folder, `${name}.md`)), name).toBe(true);
    expect(overview).toContain(`(${name}.md)`);
  }
});

test('all layers are kept, the innermost first, each with what it said', () => {
  const fixture = FIXTURES.find(({ name }) => name === 'fault-in-delivery-limit');
  if (fixture === undefined) throw new Error('the fixture is missing');
  const { layers } = classify(sightOf(fixture));
  expect(layers.map(({ dialect, layer }) => `${dialect} ${layer}`)).toEqual([
    'masstransit framework',
    'service-bus broker',
  ]);
  expect(layers[0]?.evidence).toMatchObject({ reason: 'fault', attempts: 3 });
  expect(layers[1]?.evidence).toMatchObject({ reason: 'MaxDeliveryCountExceeded', attempts: 5 });
});
