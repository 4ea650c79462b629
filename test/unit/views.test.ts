import { describe, expect, it, test } from 'vitest';
import { chunkLetters } from '../../shared/desk/fates.ts';
import { letterLine, letterView, planView, sourceView } from '../../shared/http/views.ts';
import type { PlanId, SequenceNumber } from '../../shared/letter.ts';
import { shownRecord } from '../../shared/mask.ts';
import type { Chunk, ChunkState, PlanState } from '../../shared/records/plan.ts';
import type { SourceRow } from '../../shared/store/sources.ts';
import { iso } from '../../shared/timeText.ts';
import { aLetter, aPlan, aRecord, aSource, NOW, PLAN_ID } from '../harness/values.ts';

describe('a time is shown in UTC', () => {
  it.each([
    [NOW, '2026-11-30T10:45:12.000Z'],
    [0, '1970-01-01T00:00:00.000Z'],
    [-1, '1969-12-31T23:59:59.999Z'],
    [8.64e15, '+275760-09-13T00:00:00.000Z'],
  ])('%d', (ms, text) => {
    expect(iso(ms)).toBe(text);
  });

  it.each([undefined, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 8.64e15 + 1, -9e15])(
    'and is null where there is none: %d',
    (ms) => {
      expect(iso(ms)).toBeNull();
    },
  );
});

describe('masking', () => {
  const shown = (name: string, mask: string[] = [], value: string | number | null = 'visible') => {
    const record = aRecord({ properties: [{ name, type: 'string', value }] });
    return letterView(aSource({ mask }), record).properties[0]?.value;
  };

  it.each([
    'Authorization',
    'x-authorization-header',
    'Cookie',
    'password',
    'DbPasswd',
    'client_secret',
    'access-token',
    'ApiKey',
    'api-key',
    'AccessKey',
    'x-signature',
    'e-mail',
    'customerEmail',
    'PhoneNumber',
    'iban',
  ])('hides %s, whatever the catalog says', (name) => {
    expect(shown(name)).toBe('***');
  });

  it.each(['tenant', 'order', 'x-replay-count', 'keyboard'])('shows %s', (name) => {
    expect(shown(name)).toBe('visible');
  });

  test('hides what the catalog names, in any case', () => {
    expect(shown('Customer-Name', ['customer-name'])).toBe('***');
    expect(shown('CUSTOMER-NAME', ['customer-name'])).toBe('***');
    expect(shown('customer-name-2', ['customer-name'])).toBe('visible');
  });

  test('hides numbers too, and has nothing to hide where there is nothing', () => {
    expect(shown('password', [], 1234)).toBe('***');
    expect(shown('password', [], null)).toBeNull();
  });

  test('keeps the type and the name', () => {
    const record = aRecord({ properties: [{ name: 'token', type: 'uuid', value: 'x' }] });
    expect(letterView(aSource(), record).properties).toEqual([{ name: 'token', type: 'uuid', value: '***' }]);
  });

  test('is hidden also where evidence repeats it', () => {
    const properties = [
      { name: 'e-mail', type: 'string', value: 'ada@example.org' },
      { name: 'MT-Fault-Message', type: 'string', value: 'card 4111 of ada@example.org is not honoured' },
      { name: 'pin-token', type: 'string', value: '1' },
    ];
    const evidence = {
      exceptionMessage: 'card 4111 of ada@example.org is not honoured',
      causeMessage: 'no mailbox ada@example.org in line 1',
      description: 'for ada@example.org',
      consumer: 'mailer',
    };
    const layers = [{ dialect: 'masstransit', layer: 'framework', evidence }] as const;
    const record = aRecord({ properties }, { evidence, layers, error: 'odd: ada@example.org' });
    const view = letterView(aSource({ mask: ['mt-fault-message'] }), record);
    const hidden = {
      exceptionMessage: '***',
      causeMessage: 'no mailbox *** in line 1',
      description: 'for ***',
      consumer: 'mailer',
    };
    expect(view).toMatchObject({ evidence: hidden, layers: [{ evidence: hidden }], description: 'for ***' });
    expect(JSON.stringify(view)).not.toContain('ada@');
    expect(JSON.stringify(letterView(aSource(), record))).toContain('card 4111 of ***');
  });

  test('is hidden by the name of the evidence, too', () => {
    const record = aRecord({}, { evidence: { exceptionMessage: 'personal', frame: 'A.b' } });
    expect(letterView(aSource({ mask: ['exceptionMessage'] }), record).evidence).toEqual({
      exceptionMessage: '***',
      frame: 'A.b',
    });
  });

  test('does not touch the record itself', () => {
    const record = aRecord({ properties: [{ name: 'token', type: 'string', value: 'x' }] });
    letterView(aSource(), record);
    expect(record.letter.properties[0]?.value).toBe('x');
  });
});

describe('a letter', () => {
  test('shows no field as missing: what is not known is null', () => {
    const bare = aRecord(
      { messageId: undefined, reason: undefined, description: undefined, contentType: undefined },
      { evidence: {} },
    );
    const view = letterView(aSource(), bare);
    expect(Object.entries(view).filter(([, value]) => value === undefined)).toEqual([]);
    expect(view).toMatchObject({ messageId: null, reason: null, description: null, replay: null, fate: null });
    expect(JSON.parse(JSON.stringify(letterLine(shownRecord(aSource(), bare))))).toEqual(
      letterLine(shownRecord(aSource(), bare)),
    );
  });

  test('shows its number as text', () => {
    const wide = aRecord({ sequenceNumber: '9223372036854775807' as SequenceNumber });
    expect(JSON.stringify(letterLine(shownRecord(aSource(), wide)))).toContain(
      '"sequenceNumber":"9223372036854775807"',
    );
  });

  test('tells its replay, its fate and the error of a dialect', () => {
    const replay = { count: 2, planId: PLAN_ID, of: '3' as SequenceNumber, at: NOW };
    const closed = { fate: 'replayed', at: NOW, planId: PLAN_ID } as const;
    const view = letterView(aSource(), { ...aRecord({ replay }, { error: 'odd: no' }), closed });
    expect(view).toMatchObject({
      replay: { count: 2, planId: PLAN_ID, of: '3', at: '2026-11-30T10:45:12.000Z' },
      fate: { fate: 'replayed', planId: PLAN_ID },
      classifyError: 'odd: no',
    });
  });

  test('tells its evidence layer by layer, with times as text', () => {
    const evidence = { reason: 'x', exceptionType: 'A', failedAt: NOW, attempts: 3 };
    const layers = [{ dialect: 'masstransit', layer: 'framework', evidence: { failedAt: NOW } }] as const;
    const violations = [{ path: 'lines[0].sku', problem: 'type' }];
    const view = letterView(aSource(), aRecord({}, { evidence, layers, violations, unread: ['body'], label: 'L' }));
    expect(view).toMatchObject({
      label: 'L',
      evidence: { reason: 'x', exceptionType: 'A', failedAt: '2026-11-30T10:45:12.000Z', attempts: 3 },
      layers: [{ dialect: 'masstransit', layer: 'framework', evidence: { failedAt: '2026-11-30T10:45:12.000Z' } }],
      violations,
      unread: ['body'],
    });
  });

  test("shows the runbook of the rule that judged it, else the source's", () => {
    const source = aSource({ runbook: 'https://example.org/source' });
    expect(letterView(source, aRecord()).runbook).toBe('https://example.org/source');
    expect(letterView(source, aRecord({}, { runbook: 'https://example.org/rule' })).runbook).toBe(
      'https://example.org/rule',
    );
    expect(letterView(aSource(), aRecord()).runbook).toBeNull();
  });

  test('never carries its body', () => {
    expect(letterView(aSource(), aRecord()).body).toEqual({ kind: 'data', bytes: 100, hash: 'hash-1' });
  });
});

describe('letters of a chunk', () => {
  const chunk = (state: ChunkState, maybeDuplicate = false): Chunk => ({
    key: 'chunk:000001',
    state,
    letters: [{ number: '1' as SequenceNumber, identity: 'x' }],
    maybeDuplicate,
    sends: 0,
    waitingSince: undefined,
    audit: '',
  });

  it.each<[PlanState, ChunkState, string, string | null, boolean]>([
    ['ready', 'planned', 'pending', null, false],
    ['running', 'planned', 'pending', null, false],
    ['running', 'sending', 'pending', null, true],
    ['running', 'sent', 'pending', null, false],
    ['running', 'done', 'done', null, false],
    ['paused', 'sending', 'pending', null, true],
    ['finished', 'done', 'done', null, false],
    ['cancelled', 'planned', 'left', 'cancelled', false],
    ['cancelled', 'sending', 'left', 'cancelled', true],
    ['cancelled', 'done', 'done', null, false],
    ['expired', 'planned', 'left', 'expired', false],
  ])('plan %s, chunk %s: %s', (state, chunkState, fate, reason, maybeDuplicate) => {
    expect(chunkLetters(aPlan({ state }), chunk(chunkState))).toEqual([
      { sequenceNumber: '1', fate, reason, maybeDuplicate },
    ]);
  });

  test('a chunk that was sent twice is marked when it is done', () => {
    expect(chunkLetters(aPlan({ state: 'finished' }), chunk('done', true))[0]?.maybeDuplicate).toBe(true);
  });
});

test('a plan shows times, selection and an open request, and what it has none of as null', () => {
  const view = planView(aPlan({ selection: '{"reason":["x"]}', request: 'pause', startedAt: NOW, startedBy: 'ada' }));
  expect(view).toMatchObject({
    selection: { reason: ['x'] },
    requested: 'pause',
    startedAt: '2026-11-30T10:45:12.000Z',
    finishedAt: null,
    stateReason: null,
  });
  expect(planView(aPlan({ target: '' }))).toMatchObject({ target: null, requested: null, startedBy: null });
});

describe('a source', () => {
  const at = NOW - 60_000;
  const status = { source: aSource(), row: undefined, snapshot: undefined, growth: undefined, problems: [] };

  test('that was never collected shows no counts instead of zeros', () => {
    expect(sourceView(status)).toMatchObject({
      open: null,
      asOf: null,
      counter: null,
      growth15m: null,
      heldBy: null,
    });
  });

  test('shows its newest counts, and as their time that of the last pass that completed', () => {
    const row: SourceRow = {
      key: status.source.key,
      name: status.source.name,
      retired: false,
      entry: '',
      occupant: undefined,
      occupiedSince: undefined,
      leaseToken: '',
      leaseUntil: 0,
      passedAt: at,
      passError: '',
      counted: { at: NOW, count: 3, unread: '', open: 3, differsSince: undefined },
      etag: '',
    };
    const snapshot = { at: NOW, open: 3, byCategory: { unknown: 3 }, oldest: at };
    expect(
      sourceView({ ...status, row, snapshot, growth: -2, problems: [{ kind: 'stale', text: 'x' }] }),
    ).toMatchObject({
      open: 3,
      byCategory: { unknown: 3 },
      asOf: iso(at),
      counter: { count: 3, at: iso(NOW), unread: null, open: 3, differsSince: null },
      growth15m: -2,
      health: 'Degraded',
      problems: ['x'],
    });
  });

  test('does not show connections', () => {
    expect(JSON.stringify(sourceView(status))).not.toMatch(/SharedAccessKey|"connection"/);
  });
});

test('a letter links only to a plan id that is one', () => {
  const replay = { count: 1, planId: undefined as PlanId | undefined, of: undefined, at: undefined };
  expect(letterLine(shownRecord(aSource(), { ...aRecord(), letter: aLetter({ replay }) })).replayId).toBeNull();
});
