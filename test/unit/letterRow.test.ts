import { describe, expect, test } from 'vitest';
import type { Classification } from '../../shared/classify/evidence.ts';
import type { LetterProperty, SourceKey } from '../../shared/letter.ts';
import { BYTES_PER_WRITE, inWrites } from '../../shared/store/inWrites.ts';
import { fromRow, isStoredAlike, toRegrouped, toRejudged, toRow } from '../../shared/store/letterRow.ts';
import type { RowWrite } from '../../shared/store/table.ts';
import { aLetter, aRecord, NOW } from '../harness/values.ts';

const SOURCE = 'office.servicebus.windows.net|orders' as SourceKey;
const evidence = {
  reason: 'MaxDeliveryCountExceeded',
  exceptionType: 'A',
  exceptionMessage: 'm',
  causeType: 'B',
  failedAt: NOW,
  attempts: 3,
  mechanism: 'delivery-limit',
} as const;
const FOUND: Classification = {
  category: 'poison',
  advice: 'fix-first',
  rule: 'own:mine',
  label: 'L',
  runbook: 'https://example.org',
  evidence,
  dialects: ['masstransit'],
  layers: [{ dialect: 'masstransit', layer: 'framework', evidence }],
  violations: [{ path: 'a', problem: 'type' }],
  unread: ['body'],
};

const OLD = `f1-${'o'.repeat(22)}`;

const read = (row: RowWrite) =>
  fromRow({ ...Object.fromEntries(Object.entries(row).filter(([, cell]) => cell !== undefined)), etag: '' } as never);
const stored = (found: Classification, letter = aLetter({ description: undefined })) =>
  read(toRow(SOURCE, 'test', letter, found, NOW));

describe('a row', () => {
  test('gives back what was found', () => {
    expect(stored(FOUND).classification).toEqual(FOUND);
  });

  test('with less to say leaves nothing of an earlier one', () => {
    const bare = {
      category: 'unknown',
      advice: 'investigate',
      rule: 'no-reason',
      evidence: {},
      dialects: [],
      layers: [],
    } as const;
    const merged = { ...toRow(SOURCE, 'test', aLetter({ description: undefined }), FOUND, NOW) };
    for (const [column, cell] of Object.entries(toRejudged(aRecord(), bare, true))) {
      if (cell !== undefined) Object.assign(merged, { [column]: cell });
    }
    expect(read(merged as RowWrite).classification).toEqual(bare);
  });

  test('of an older version is read without the layers it does not have', () => {
    const { found: _none, ...older } = toRow(SOURCE, 'test', aLetter(), FOUND, NOW);
    expect(read(older as RowWrite).classification).toEqual({
      category: 'poison',
      advice: 'fix-first',
      rule: 'own:mine',
      dialects: ['masstransit'],
      layers: [],
      evidence: { reason: 'MaxDeliveryCountExceeded', description: 'no such currency', exceptionType: 'A' },
    });
  });

  test('of an older version is read in the group of today, with its old one beside it, also when the letter is read again', () => {
    const now = toRow(SOURCE, 'test', aLetter({ description: undefined }), FOUND, NOW);
    const old = { ...now, fingerprint: OLD, cause: 'as it was', formerly: undefined };
    const record = read(old);
    expect(record).toMatchObject({ fingerprint: now.fingerprint, cause: 'L', formerly: OLD });
    for (const isReread of [true, false]) expect(toRejudged(record, FOUND, isReread)).toMatchObject({ formerly: OLD });
    expect(read({ ...old, ...toRegrouped(record) })).toEqual(record);
  });

  test('of a newer version is read without the words that this one does not know', () => {
    const row = toRow(SOURCE, 'test', aLetter(), FOUND, NOW);
    const found = JSON.parse(String(row.found));
    found.evidence = { ...found.evidence, mechanism: 'beamed-away', mood: 'bad' };
    found.layers[0].layer = 'planet';
    const { classification } = read({ ...row, found: JSON.stringify(found) });
    expect(classification.evidence).not.toHaveProperty('mechanism');
    expect(classification.layers).toMatchObject([{ dialect: 'masstransit' }]);
  });

  test('cuts evidence until it fits, and says which', () => {
    const long = 'x'.repeat(1500);
    const layer = { dialect: 'd', layer: 'framework', evidence: { frame: long, consumer: long } } as const;
    const record = stored({
      ...FOUND,
      evidence: { exceptionMessage: long },
      layers: Array.from({ length: 8 }, () => layer),
    });
    expect(record.cut).toEqual(['evidence.exceptionMessage', 'layers']);
    expect(record.classification.layers).toHaveLength(8);
    // What cannot be made short enough is left out.
    const odd = {
      ...layer,
      evidence: Object.fromEntries(Array.from({ length: 13 }, (_, i) => [`f${i}`, '\ud800'.repeat(500)])),
    };
    const worst = stored({ ...FOUND, layers: Array.from({ length: 8 }, () => odd) as never });
    expect(worst.cut).toEqual(['evidence', 'layers']);
    expect(worst.classification.layers.map(({ dialect, evidence: left }) => [dialect, left])).toEqual(
      Array.from({ length: 8 }, () => ['d', {}]),
    );
  });

  test('is told apart from another judgement, and from the same one it is not', () => {
    const record = stored(FOUND);
    expect(isStoredAlike(record, FOUND)).toBe(true);
    for (const change of [{ label: 'M' }, { category: 'transient' }, { violations: [] }, { evidence: {} }] as const) {
      expect(isStoredAlike(record, { ...FOUND, ...change })).toBe(false);
    }
  });

  test('keeps on a new judgement what was cut of the letter', () => {
    const record = { ...aRecord(), cut: ['properties.a', 'evidence.frame', 'layers'] };
    expect(JSON.parse(String(toRejudged(record, FOUND, true).cut))).toEqual(['properties.a']);
    expect(JSON.parse(String(toRejudged(record, FOUND, false).cut))).toEqual(record.cut);
  });
});

describe('rows are written together', () => {
  /** The row of a letter whose texts are as long as they may be, of what grows most on its way into the store. */
  const largest = () => {
    const value = '\u0001'.repeat(10_000);
    const properties = Array.from({ length: 30 }, (_, i): LetterProperty => ({ name: `p${i}`, type: 'string', value }));
    const texts = { reason: '€'.repeat(5000), description: value, subject: value, to: value, messageId: value };
    return { row: toRow(SOURCE, 'test', aLetter({ properties, ...texts }), FOUND, NOW) };
  };

  test('as many as one transaction takes in bytes', () => {
    const rows = Array.from({ length: 100 }, largest);
    const writes = inWrites(rows);
    expect(writes.flat()).toEqual(rows);
    for (const write of writes) {
      expect(Buffer.byteLength(JSON.stringify(write.map(({ row }) => row)))).toBeLessThan(BYTES_PER_WRITE + 1000);
    }
    expect(writes.length).toBeGreaterThan(4);
    expect(Math.max(...Object.values(largest().row).map((cell) => String(cell).length))).toBeLessThan(32_768);
  });

  test('fifty at most', () => {
    const rows = Array.from({ length: 120 }, () => ({ row: { partitionKey: 'p', rowKey: 'r' } }));
    expect(inWrites(rows).map(({ length }) => length)).toEqual([50, 50, 20]);
    expect(inWrites([])).toEqual([]);
  });
});

test.each([
  ['one name of 17,000 quotation marks', [['"'.repeat(17_000), 'x'.repeat(3000)]]],
  [
    'a hundred long names of control characters',
    Array.from({ length: 100 }, (_, i) => [`${'\u0001'.repeat(600)}${i}`, 'x'.repeat(3000)]),
  ],
  ['two thousand cut values', Array.from({ length: 2000 }, (_, i) => [`name-${i}`, '\u0001'.repeat(3000)])],
] as const)('what the store counts in a row stays within its limits: %s', (_what, pairs) => {
  const properties = pairs.map(([name = '', value = '']): LetterProperty => ({ name, type: 'string', value }));
  const long = '\u0001'.repeat(40_000);
  const letter = aLetter({
    properties: [...properties, { name: 'last', type: 'string', value: 'kept' }],
    reason: long,
    description: long,
  });
  const unread = properties.map(({ name }) => `properties.${name}`);
  const violations = properties.map(({ name }) => ({ path: name, problem: 'type' }));
  const texts = { reason: long, exceptionType: long, exceptionMessage: long, messageType: long, frame: long };
  const layers = [{ dialect: 'masstransit', layer: 'framework', evidence: texts } as const];
  const found: Classification = { ...FOUND, evidence: texts, layers, unread, violations, error: long };
  const rows = [toRow(SOURCE, 'test', letter, found, NOW), toRejudged({ ...aRecord(), cut: unread }, found, false)];
  for (const row of rows) {
    const cells = Object.values(row).map((cell) => (typeof cell === 'string' ? cell.length * 2 : 8));
    // Azure Tables: 64 KiB a property as UTF-16, 1 MiB a row, 255 properties with the three of the service.
    expect(Math.max(...cells)).toBeLessThan(65_536);
    expect(cells.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(1_048_576 / 2);
    expect(cells.length).toBeLessThan(252);
  }
  const record = read(rows[0] as RowWrite);
  expect(record.cut).not.toEqual([]);
  if (properties.length < 2000) expect(record.letter.properties.at(-1)).toMatchObject({ name: 'last', value: 'kept' });
});
