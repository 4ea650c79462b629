/** The store's promises that runs lean on, against real tables. */
import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { causeOf } from '../../shared/classify/fingerprint.ts';
import { isOfficeError } from '../../shared/errors.ts';
import type { IdentifiedLetter, Letter, PlanId, SequenceNumber, SourceKey } from '../../shared/letter.ts';
import type { LetterRecord } from '../../shared/records/letterRecord.ts';
import { openStore, type Store } from '../../shared/store/index.ts';
import { idDigest } from '../../shared/store/sends.ts';
import { StoreConflict } from '../../shared/store/table.ts';
import { takeStorage } from '../harness/storage.ts';
import { aLetter, aPlan, identified, NOW } from '../harness/values.ts';

let store: Store;
let source: SourceKey;
const PLAN = '20261130t104512-aaaaaaaa' as PlanId;
const OTHER = '20261130t104512-bbbbbbbb' as PlanId;
const classification = {
  category: 'unknown',
  advice: 'investigate',
  rule: 'x',
  evidence: {},
  dialects: [],
  layers: [],
} as const;

beforeAll(async () => {
  store = openStore({ AzureWebJobsStorage: await takeStorage() }, 'test', randomUUID);
});
beforeEach(() => {
  source = `host|${randomUUID()}` as SourceKey;
});

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'went through',
    (error: unknown) => (isOfficeError(error) ? error.code : String(error)),
  );

test('one holder a source: a second run, a second process of the same run, and the cleanup are refused', async () => {
  const lease = await store.sources.acquire(source, PLAN, NOW, 1000);
  expect(await code(store.sources.acquire(source, OTHER, NOW + 500, 1000))).toBe('DLO_SOURCE_BUSY');
  expect(await code(store.sources.acquire(source, PLAN, NOW + 500, 1000))).toBe('DLO_SOURCE_BUSY');
  expect(await code(store.sources.acquire(source, 'expire', NOW + 500, 1000))).toBe('DLO_SOURCE_BUSY');
  await store.sources.release(lease, true);
  expect(await code(store.sources.acquire(source, 'expire', NOW + 500, 1000))).toBe('went through');
});

const SENT = { id: idDigest('order-17'), at: NOW, planId: PLAN, number: '17' as SequenceNumber };

test('of two that claim a message id one is refused, with all its others; what was taken back or forgotten can be claimed anew', async () => {
  const { sends } = store;
  const other = { ...SENT, id: idDigest('order-18'), etag: undefined };
  const [etag = ''] = await sends.claim(source, [{ ...SENT, etag: undefined }]);
  await expect(sends.claim(source, [other, { ...SENT, planId: OTHER, etag: undefined }])).rejects.toThrow(
    StoreConflict,
  );
  expect([...(await sends.get(source, [SENT.id, other.id])).values()]).toEqual([{ ...SENT, etag }]);
  expect(await sends.since(source, NOW - 1)).toEqual(new Map([[SENT.id, NOW]]));
  expect(await sends.since(source, NOW)).toEqual(new Map());
  await sends.withdraw(source, [{ id: SENT.id, etag }]);
  const withdrawn = (await sends.get(source, [SENT.id])).get(SENT.id);
  expect(withdrawn?.at).toBe(0);
  const [again = ''] = await sends.claim(source, [{ ...SENT, planId: OTHER, etag: withdrawn?.etag }]);
  await sends.withdraw(source, [{ id: SENT.id, etag }]); // of somebody who comes too late
  expect(await sends.get(source, [SENT.id])).toEqual(new Map([[SENT.id, { ...SENT, planId: OTHER, etag: again }]]));
  await sends.forget(NOW, 100);
  expect((await sends.get(source, [SENT.id])).size).toBe(1);
  await sends.forget(NOW + 1, 100);
  expect((await sends.get(source, [SENT.id])).size).toBe(0);
});

test('between its slices a run keeps the source without a lease; a dead cleanup does not', async () => {
  const lease = await store.sources.acquire(source, PLAN, NOW, 1000);
  await store.sources.release(lease, false);
  expect(await code(store.sources.acquire(source, OTHER, NOW, 1000))).toBe('DLO_SOURCE_BUSY');
  expect(await code(store.sources.acquire(source, 'expire', NOW, 1000))).toBe('DLO_SOURCE_BUSY');
  const again = await store.sources.acquire(source, PLAN, NOW, 1000);
  await store.sources.release(again, true);
  await store.sources.acquire(source, 'expire', NOW, 1000);
  expect(await code(store.sources.acquire(source, OTHER, NOW + 1001, 1000))).toBe('went through');
});

test('an expired lease passes to another process of the run, and the first can neither renew nor release it', async () => {
  const first = await store.sources.acquire(source, PLAN, NOW, 1000);
  const second = await store.sources.acquire(source, PLAN, NOW + 1001, 1000);
  expect(await code(store.sources.renew(first, NOW + 1002, 1000))).toBe('DLO_SOURCE_BUSY');
  await store.sources.release(first, true);
  expect((await store.sources.get(source))?.leaseToken).toBe(second.token);
  expect((await store.sources.renew(second, NOW + 1002, 5000)).until).toBe(NOW + 6002);
});

test('many processes that want one source at once: exactly one gets it', async () => {
  const plans = Array.from({ length: 8 }, (_, i) => `20261130t104512-aaaaaaa${'abcdefgh'[i]}` as PlanId);
  const results = await Promise.all(plans.map((plan) => code(store.sources.acquire(source, plan, NOW, 1000))));
  expect(results.filter((result) => result === 'went through')).toHaveLength(1);
  expect(results.filter((result) => result === 'DLO_SOURCE_BUSY')).toHaveLength(7);
});

test('vacating frees a source only from its own occupant and only without a lease', async () => {
  const lease = await store.sources.acquire(source, PLAN, NOW, 1000);
  await store.sources.vacate(source, PLAN, NOW + 500);
  expect((await store.sources.get(source))?.occupant).toBe(PLAN);
  await store.sources.release(lease, false);
  await store.sources.vacate(source, OTHER, NOW);
  expect((await store.sources.get(source))?.occupant).toBe(PLAN);
  await store.sources.vacate(source, PLAN, NOW);
  expect((await store.sources.get(source))?.occupant).toBeUndefined();
});

test('a head that somebody else has written cannot be committed over, and nothing beside it is written', async () => {
  const head = aPlan({ id: OTHER, source });
  await store.plans.create(head, 'first');
  const read = await store.plans.head(head.id);
  await store.plans.commit({ ...head, state: 'running' }, read?.etag ?? '', 'second');
  const chunk = {
    key: 'chunk:000001',
    state: 'planned',
    letters: [],
    maybeDuplicate: false,
    sends: 0,
    waitingSince: undefined,
    audit: '',
  } as const;
  const late = store.plans.commit({ ...head, state: 'cancelled' }, read?.etag ?? '', 'third', { chunks: [chunk] });
  await expect(late).rejects.toThrow(StoreConflict);
  const now = await store.plans.head(head.id);
  expect(now).toMatchObject({ writeId: 'second', head: { state: 'running' } });
  const chunks = [];
  for await (const one of store.plans.chunks(head.id)) chunks.push(one);
  expect(chunks).toEqual([]);
});

test('a letter seen again keeps its first-seen time and its fate; another message under its number starts anew', async () => {
  const number = '42' as SequenceNumber;
  const letter = aLetter({ sequenceNumber: number });
  expect(await store.letters.record(source, [{ letter, classification }], NOW)).toEqual(['new']);
  expect(await store.letters.record(source, [{ letter, classification }], NOW + 5000)).toEqual(['known']);
  expect((await store.letters.get(source, number))?.firstSeen).toBe(NOW);

  await store.letters.close(source, [identified(letter)], 'replayed', NOW + 6000, PLAN);
  expect(await store.letters.record(source, [{ letter, classification }], NOW + 7000)).toEqual(['closed']);
  expect((await store.letters.get(source, number))?.closed).toEqual({ fate: 'replayed', at: NOW + 6000, planId: PLAN });

  const other = aLetter({ sequenceNumber: number, messageId: 'another' });
  expect(await store.letters.record(source, [{ letter: other, classification }], NOW + 8000)).toEqual(['replaced']);
  const record = await store.letters.get(source, number);
  expect(record).toMatchObject({ firstSeen: NOW + 8000, letter: { messageId: 'another' } });
  expect(record?.closed).toBeUndefined();
  // What was sent was the message before: this one is neither closed nor marked by it.
  await store.letters.close(source, [identified(letter)], 'replayed', NOW + 9000, PLAN);
  await store.letters.markMaybeSent(source, [identified(letter)], PLAN);
  expect(await store.letters.get(source, number)).toEqual(record);
});

test('a new judgement reaches the letters that are still open and the same, and changes nothing else of them', async () => {
  const letters = ['1', '2', '3', '4', '5'].map((number) => aLetter({ sequenceNumber: number as SequenceNumber }));
  await store.letters.record(
    source,
    letters.map((letter) => ({ letter, classification })),
    NOW,
  );
  const read: { record: LetterRecord; etag: string }[] = [];
  for await (const version of store.letters.openVersions(source)) read.push(version);
  // Meanwhile: one leaves, one is another message now, one is marked, one is judged by somebody else.
  const [first, , third] = letters.map(identified) as [IdentifiedLetter, IdentifiedLetter, IdentifiedLetter];
  await store.letters.close(source, [first], 'replayed', NOW + 1, PLAN);
  const other = aLetter({ sequenceNumber: '2' as SequenceNumber, messageId: 'another' });
  await store.letters.record(source, [{ letter: other, classification }], NOW + 1);
  await store.letters.markMaybeSent(source, [third], PLAN);
  const judged = { ...classification, category: 'poison', rule: 'own:new', label: 'L' } as const;
  const changes = read.map((version) => ({ ...version, classification: judged, isReread: false }));
  expect(await store.letters.rejudge(changes)).toBe(3);
  const now = await Promise.all(letters.map(({ sequenceNumber }) => store.letters.get(source, sequenceNumber)));
  expect(now.map((record) => record?.classification.rule)).toEqual(['x', 'x', 'own:new', 'own:new', 'own:new']);
  expect(now.map((record) => record?.firstSeen)).toEqual([NOW, NOW + 1, NOW, NOW, NOW]);
  expect(now[0]?.closed).toEqual({ fate: 'replayed', at: NOW + 1, planId: PLAN });
  expect(now[2]?.maybeSentBy).toBe(PLAN);
  const before = read[4]?.record;
  expect(now[4]).toEqual(
    before && {
      ...before,
      cause: 'L',
      classification: { ...before.classification, ...judged, evidence: before.classification.evidence },
    },
  );
});

test('letters far apart are closed and marked too; one that is forgotten is not written of', async () => {
  const numbers = ['1', '700', '9000000000000000000'] as SequenceNumber[];
  const letters = numbers.map((sequenceNumber) => aLetter({ sequenceNumber }));
  const [first, second] = letters as [Letter, Letter];
  await store.letters.record(
    source,
    [first, second].map((letter) => ({ letter, classification })),
    NOW,
  );
  await store.letters.markMaybeSent(source, letters.map(identified), PLAN);
  await store.letters.close(source, letters.map(identified), 'replayed', NOW + 1, PLAN);
  const records = await Promise.all(numbers.map((number) => store.letters.get(source, number)));
  expect(records.map((record) => [record?.maybeSentBy, record?.closed?.planId])).toEqual([
    [PLAN, PLAN],
    [PLAN, PLAN],
    [undefined, undefined],
  ]);
  expect(await store.letters.get(source, '9000000000000000000' as SequenceNumber)).toBeUndefined();
});

test('a letter taken for gone is open again when it is seen', async () => {
  const letter = aLetter();
  await store.letters.record(source, [{ letter, classification }], NOW);
  expect(await store.letters.markGone(source, letter.sequenceNumber, NOW)).toBe(true);
  expect(await store.letters.markGone(source, letter.sequenceNumber, NOW)).toBe(false);
  await store.letters.record(source, [{ letter, classification }], NOW + 1);
  expect((await store.letters.get(source, letter.sequenceNumber))?.closed).toBeUndefined();
});

test('what a message claims is stored within the limits of a table, and the record says what was cut', async () => {
  const properties = Array.from({ length: 40 }, (_, i) => ({ name: `p${i}`, type: 'string', value: 'x'.repeat(3000) }));
  const letter = aLetter({
    sequenceNumber: '9223372036854775807' as SequenceNumber,
    subject: 's'.repeat(5000),
    description: 'd'.repeat(60_000),
    properties,
    enqueuedAt: -1,
    timeToLive: Number.MAX_SAFE_INTEGER,
    replay: { count: 2, planId: undefined, of: undefined, at: 9e15 },
  });
  await store.letters.record(source, [{ letter, classification }], NOW);
  const record = await store.letters.get(source, letter.sequenceNumber);
  expect(record?.cut).toEqual(expect.arrayContaining(['subject', 'description', 'properties']));
  expect(record?.letter.properties.length).toBeGreaterThan(5);
  expect(record?.letter.replay.at).toBeUndefined();
});

test('1,000 letters are listed in the order of their numbers, also beyond 2^53', async () => {
  const base = 2n ** 60n;
  const numbers = Array.from(
    { length: 1000 },
    (_, i) => String(i < 500 ? BigInt(i + 1) : base + BigInt(i)) as SequenceNumber,
  );
  const shuffled = [...numbers].sort((a, b) => (a.length % 3) - (b.length % 3) || Number(BigInt(b) - BigInt(a)));
  const letters = shuffled.map((sequenceNumber) => ({ letter: aLetter({ sequenceNumber }), classification }));
  await store.letters.record(source, letters, NOW);
  const listed: SequenceNumber[] = [];
  for await (const { letter } of store.letters.open(source)) listed.push(letter.sequenceNumber);
  expect(listed).toEqual(numbers);
  expect(await store.letters.tally(source)).toEqual({
    open: 1000,
    byCategory: { unknown: 1000 },
    byFingerprint: new Map([[causeOf({}, source).fingerprint, 1000]]),
    oldest: NOW,
  });
});

test('named letters are found by their numbers: those that are open, each once, in order, from any of them on', async () => {
  const numbers = Array.from({ length: 250 }, (_, i) => String(2n ** 60n + BigInt(i)) as SequenceNumber);
  const [first, second, third] = numbers as [SequenceNumber, SequenceNumber, SequenceNumber];
  const letters = numbers.map((sequenceNumber) => ({ letter: aLetter({ sequenceNumber }), classification }));
  await store.letters.record(source, letters, NOW);
  await store.letters.close(source, [identified(aLetter({ sequenceNumber: second }))], 'replayed', NOW);
  const among = async (named: SequenceNumber[], from?: SequenceNumber) => {
    const found: SequenceNumber[] = [];
    const options = from === undefined ? {} : { from };
    for await (const { letter } of store.letters.openAmong(source, named, options)) found.push(letter.sequenceNumber);
    return found;
  };
  expect(await among(['7' as SequenceNumber, third, second, first, third])).toEqual([first, third]);
  expect(await among([third, first], second)).toEqual([third]);
  expect(await among(numbers.toReversed())).toEqual(numbers.filter((number) => number !== second));
});
