import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { BELIEFS } from './beliefs/index.ts';
import { cellText, pageOf } from './page.ts';
import { readResults, resultsText, withRun } from './record.ts';

const docs = new URL('../../docs/', import.meta.url);
const read = (name: string) => readFile(new URL(name, docs), 'utf8');
const results = await readResults(new URL('conformance.json', docs));

describe('docs/conformance.md', () => {
  it('is what its results and the beliefs make: `npm run conform` writes it', async () => {
    expect(await read('conformance.md')).toBe(pageOf(BELIEFS, results));
    expect(await read('conformance.json')).toBe(resultsText(results));
  });

  it('has every belief passed on the local broker, and no results of beliefs that are gone', () => {
    const cells = Object.entries(results.local ?? {});
    expect(cells.map(([id]) => id)).toEqual(BELIEFS.map(({ id }) => id));
    expect(cells.filter(([, cell]) => cell.outcome !== 'passed')).toEqual([]);
  });

  // The first run on Azure takes this test away: what was seen there is then the claim.
  it('claims nothing about Azure, where nobody has run it', () => {
    expect([results.standard, results.premium]).toEqual([undefined, undefined]);
    const azure = pageOf(BELIEFS, results).match(/not yet run on Azure/g) ?? [];
    expect(azure.length).toBeGreaterThanOrEqual(2 * BELIEFS.length);
  });
});

describe('the beliefs', () => {
  it('have numbers in order, none twice, and say where they come from', () => {
    const ids = BELIEFS.map(({ id }) => id);
    expect(ids).toEqual(ids.map((_, i) => `B${String(i + 1).padStart(2, '0')}`));
    const empty = BELIEFS.filter(({ belief, source }) => !/^[A-Z].+\.$/.test(belief) || source.length < 10);
    expect(empty.map(({ id }) => id)).toEqual([]);
  });
});

describe('a run', () => {
  const run = { on: '2026-12-01', target: 'Azure Standard, westeurope', version: '0.1.0' };
  const failed = { outcome: 'failed', seen: "reason: saw 'a|b'" } as const;

  it('keeps the results of other brokers, and of beliefs that it did not test', () => {
    const once = withRun({}, 'standard', new Map([['B02', { outcome: 'passed' }]]), run);
    const twice = withRun(once, 'standard', new Map([['B01', failed]]), { ...run, on: '2026-12-02' });
    const both = withRun(twice, 'local', new Map([['B01', { outcome: 'passed' }]]), run);
    expect(Object.keys(both.standard ?? {})).toEqual(['B01', 'B02']);
    expect(both.standard?.B02).toEqual({ outcome: 'passed', ...run });
    expect(both.local?.B01?.outcome).toBe('passed');
  });

  it('is told in the cell with day, version and what was seen', () => {
    expect(cellText('standard', { ...failed, ...run })).toBe(
      "**FAILED** (2026-12-01, 0.1.0, Azure Standard, westeurope): reason: saw 'a|b'",
    );
    expect(cellText('local', { outcome: 'passed', ...run, target: 'Local broker' })).toBe('passed (2026-12-01, 0.1.0)');
    expect(cellText('premium', undefined)).toBe('not yet run on Azure');
    expect(cellText('emulator', undefined)).toBe('not yet run');
  });
});
