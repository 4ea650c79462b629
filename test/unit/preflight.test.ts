import { describe, expect, it, test } from 'vitest';
import type { TargetFacts } from '../../shared/brokers/broker.ts';
import type { Source } from '../../shared/catalog.ts';
import { causeOf, type Fingerprint } from '../../shared/classify/fingerprint.ts';
import type { Letter } from '../../shared/letter.ts';
import { isInDuplicateWindow } from '../../shared/plan/duplicates.ts';
import {
  completeFacts,
  countExpiry,
  countOnHold,
  countSkip,
  plannedRefusal,
  refusal,
  sourceFindings,
  targetOf,
} from '../../shared/plan/preflight.ts';
import { Holds } from '../../shared/records/onHold.ts';
import type { Action, Choices, Finding } from '../../shared/records/plan.ts';
import { changed } from '../../shared/records/triage.ts';
import { aLetter, aPlan, aRecord, aSource, NOW, SUBSCRIPTION } from '../harness/values.ts';

type Json = Record<string, unknown>;

const CHOICES: Choices = {
  bypass: false,
  includeFixFirst: false,
  onDuplicate: 'skip',
  target: 'origin',
  timeToLive: 'keep',
};
const MISSING: TargetFacts = { from: 'administration', status: 'missing' };
const SESSIONS = { duplicateDetection: false, requiresSession: true, deadLettersOnExpiry: true };
const DISABLED: TargetFacts = { from: 'resource-manager', status: 'disabled' };
const KNOWN = { duplicateDetection: false, requiresSession: false, deadLettersOnExpiry: true };
/** What is known of the target when nothing could be read: the catalog's word. */
const facts = (source: Source, read: TargetFacts = { from: 'none' }) => completeFacts(source, read);
const KNOWN_FACTS = { duplicateDetection: false, requiresSession: false, deadLettersOnExpiry: true } as const;
const codes = (entry: Json, action: Action = 'replay', choices: Partial<Choices> = {}, read?: TargetFacts) => {
  const source = aSource({ entity: KNOWN, ...entry });
  const findings = sourceFindings(source, action, { ...CHOICES, ...choices }, facts(source, read));
  return findings.map(({ code, level }) => `${level} ${code}`);
};

describe('where letters go back to', () => {
  it.each<[string, Json, string | undefined]>([
    ['a queue', {}, 'orders'],
    ['a subscription with a forward queue', { ...SUBSCRIPTION, replay: { forwardQueue: 'f' } }, 'f'],
    ['a subscription with a replay queue', { ...SUBSCRIPTION, replay: { replayQueue: 'r' } }, 'r'],
    [
      'one with both: the consumer that failed',
      { ...SUBSCRIPTION, replay: { forwardQueue: 'f', replayQueue: 'r' } },
      'f',
    ],
    ['a subscription with neither: never the topic', SUBSCRIPTION, undefined],
  ])('%s', (_what, entry, target) => {
    expect(targetOf(aSource(entry))).toBe(target);
  });
});

describe('findings about the source', () => {
  test('a target that may not be looked at is one by itself, with the right and the scope', () => {
    const read: TargetFacts = { from: 'none', forbidden: 'it needs Microsoft.ServiceBus/namespaces/queues/read on /x' };
    expect(codes({}, 'replay', {}, read)).toEqual(['warn facts-forbidden']);
    expect(codes({}, 'replay', { target: 'sandbox' }, read)).toContain('warn facts-forbidden');
    expect(codes({ entity: {} }, 'replay', {}, read)).toContain('block duplicate-detection-unknown');
    expect(codes({}, 'discard', {}, read)).toEqual([]);
    const source = aSource({ entity: KNOWN });
    const [finding] = sourceFindings(source, 'replay', CHOICES, facts(source, read));
    expect(finding?.message).toContain('it needs Microsoft.ServiceBus/namespaces/queues/read on /x');
  });

  test('there are none when everything is known and plain', () => {
    expect(codes({})).toEqual([]);
    expect(codes({ entity: { ...KNOWN, duplicateDetection: 'PT10M', deadLettersOnExpiry: false } })).toEqual([]);
    expect(codes({ ...SUBSCRIPTION, replay: { replayQueue: 'r' } })).toEqual([]);
  });

  it.each<[string, Json, string[]]>([
    ['a subscription with no queue', SUBSCRIPTION, ['no-direct-target']],
    [
      'unknown duplicate detection',
      { entity: { ...KNOWN, duplicateDetection: undefined } },
      ['duplicate-detection-unknown'],
    ],
    ['unknown sessions', { entity: { ...KNOWN, requiresSession: undefined } }, ['sessions-unknown']],
    ['unknown expiry', { entity: { ...KNOWN, deadLettersOnExpiry: undefined } }, ['expiry-unknown']],
    ['nothing known', { entity: {} }, ['duplicate-detection-unknown', 'sessions-unknown', 'expiry-unknown']],
  ])('%s blocks', (_what, entry, expected) => {
    expect(codes(entry)).toEqual(expected.map((code) => `block ${code}`));
  });

  test('what was read counts more than what the catalog states', () => {
    const read = (more: Partial<TargetFacts>): TargetFacts => ({ from: 'administration', status: 'active', ...more });
    expect(codes({ entity: {} }, 'replay', {}, read(KNOWN_FACTS))).toEqual([]);
    expect(codes({}, 'replay', {}, read({ requiresSession: true }))).toEqual(['block sessions-held']);
  });

  it.each([
    ['missing', 'block target-unknown'],
    ['disabled', 'block target-disabled'],
    ['send-disabled', 'block target-disabled'],
  ] as const)('a target that is %s blocks', (status, expected) => {
    expect(codes({}, 'replay', {}, { from: 'administration', status })).toEqual([expected]);
  });

  it.each(['active', 'receive-disabled'] as const)('a target that is %s takes messages', (status) => {
    expect(codes({}, 'replay', {}, { from: 'administration', status })).toEqual([]);
  });

  test('a session entity is for observe sources: held letters of sessions have been unreachable', () => {
    const sessions: TargetFacts = { from: 'administration', requiresSession: true };
    expect(codes({}, 'replay', {}, sessions)).toEqual(['block sessions-held']);
    expect(codes({ mode: 'observe' }, 'replay', {}, sessions)).toEqual([]);
  });

  test('new ids only for what the target would drop change nothing where it drops nothing, and that is told', () => {
    const renaming = { onDuplicate: 'new-id' } as const;
    expect(codes({}, 'replay', renaming)).toEqual(['warn new-id-idle']);
    expect(codes({ replay: { sandboxQueue: 's' } }, 'replay', { ...renaming, target: 'sandbox' })).toEqual([
      'warn new-id-idle',
    ]);
    expect(codes({}, 'replay', { ...renaming, messageId: 'new' })).toEqual([]);
    expect(codes({}, 'replay', { messageId: 'new' })).toEqual([]);
    expect(codes({ entity: { ...KNOWN, duplicateDetection: 'PT10M' } }, 'replay', renaming)).toEqual([]);
  });

  test('a sandbox must be named, and needs none of the facts by which a letter could be lost', () => {
    const sandbox = { target: 'sandbox' } as const;
    expect(codes({}, 'replay', sandbox)).toEqual(['block no-sandbox']);
    expect(codes({ entity: {}, replay: { sandboxQueue: 's' } }, 'replay', sandbox)).toEqual([]);
  });

  test('a topic is a target only for its own subscription, and by name', () => {
    const topic = { target: 'topic' } as const;
    expect(codes({}, 'replay', topic)).toEqual(['block no-direct-target']);
    expect(codes(SUBSCRIPTION, 'replay', topic)).toEqual(['block fan-out']);
    expect(codes(SUBSCRIPTION, 'replay', { ...topic, acceptFanOut: 'other' })).toEqual(['block fan-out']);
    expect(codes(SUBSCRIPTION, 'replay', { ...topic, acceptFanOut: 'events' })).toEqual(['warn fan-out']);
  });

  test('a discard needs nothing of a target', () => {
    expect(codes({ ...SUBSCRIPTION, entity: {} }, 'discard')).toEqual([]);
    expect(codes({ mode: 'observe', entity: {} }, 'discard')).toEqual([]);
  });

  test('every finding says what to do', () => {
    const source = aSource({ mode: 'observe', ...SUBSCRIPTION, entity: {} });
    const every = [
      ...sourceFindings(source, 'replay', CHOICES, facts(source)),
      ...sourceFindings(source, 'replay', { ...CHOICES, target: 'sandbox' }, facts(source, MISSING)),
      ...sourceFindings(source, 'replay', { ...CHOICES, target: 'topic' }, facts(source, DISABLED)),
    ];
    for (const { message } of every) {
      expect(message.length).toBeGreaterThan(20);
    }
  });
});

describe('the duplicate window', () => {
  const source = aSource({ entity: { ...KNOWN, duplicateDetection: 'PT10M' } });
  const minutesAgo = (minutes: number) => NOW - minutes * 60_000;
  const replayedAt = (at: number | undefined) => ({ count: 1, planId: undefined, of: undefined, at });

  it.each<[string, Partial<Letter>, boolean]>([
    ['sent a minute ago', { enqueuedAt: minutesAgo(1) }, true],
    ['sent exactly a window ago: by another clock it is not over', { enqueuedAt: minutesAgo(10) }, true],
    ['sent just inside the margin', { enqueuedAt: minutesAgo(11) + 1 }, true],
    ['sent a window and the margin ago', { enqueuedAt: minutesAgo(11) }, false],
    ['sent by a clock that is ahead', { enqueuedAt: NOW + 5000 }, true],
    ['sent long ago', { enqueuedAt: minutesAgo(60) }, false],
    ['sent long ago, replayed a minute ago', { enqueuedAt: minutesAgo(60), replay: replayedAt(minutesAgo(1)) }, true],
    ['replayed long ago too', { enqueuedAt: minutesAgo(60), replay: replayedAt(minutesAgo(30)) }, false],
    ['no word of when it was replayed', { enqueuedAt: minutesAgo(60), replay: replayedAt(undefined) }, false],
    [
      'an old replay of a message that was sent again since',
      { enqueuedAt: minutesAgo(1), replay: replayedAt(minutesAgo(30)) },
      true,
    ],
    ['no message id', { enqueuedAt: minutesAgo(1), messageId: undefined }, false],
  ])('%s', (_what, letter, known) => {
    expect(isInDuplicateWindow(facts(source), CHOICES, aLetter(letter), NOW)).toBe(known);
  });

  test('counts from every send that is known', () => {
    const letter = aLetter({ enqueuedAt: minutesAgo(60) });
    expect(isInDuplicateWindow(facts(source), CHOICES, letter, NOW, minutesAgo(10))).toBe(true);
    expect(isInDuplicateWindow(facts(source), CHOICES, letter, NOW, minutesAgo(11))).toBe(false);
    expect(isInDuplicateWindow(facts(source), CHOICES, aLetter({ messageId: undefined }), NOW, NOW)).toBe(false);
  });

  test('of a sandbox counts what was sent there, and not how the letter came', () => {
    const sandbox = { target: 'sandbox' } as const;
    expect(isInDuplicateWindow(facts(source), sandbox, aLetter({ enqueuedAt: NOW }), NOW)).toBe(false);
    expect(isInDuplicateWindow(facts(source), sandbox, aLetter(), NOW, NOW)).toBe(true);
  });

  it.each([false, undefined])('does not exist when detection is %s', (duplicateDetection) => {
    const plain = aSource({ entity: { ...KNOWN, duplicateDetection } });
    expect(isInDuplicateWindow(facts(plain), CHOICES, aLetter({ enqueuedAt: NOW }), NOW)).toBe(false);
  });
});

describe('a letter is refused or let through', () => {
  const count = (n: number) => ({ replay: { count: n, planId: undefined, of: undefined, at: undefined } });
  const properties = (longest: number, total: number) => ({ propertySize: { longest, total } });
  const body = (bytes: number) => ({ body: { kind: 'data', bytes, hash: 'h' } }) as const;

  it.each<[string, Json, Partial<Letter>, string | undefined]>([
    ['never replayed', {}, count(0), undefined],
    ['replayed less than allowed', {}, count(2), undefined],
    ['replayed as often as allowed', {}, count(3), 'over-limit'],
    ['replayed absurdly often', {}, count(2 ** 31 - 1), 'over-limit'],
    ['a source that allows none', { replay: { maxReplays: 0 } }, count(0), 'over-limit'],
    ['a source that allows more', { replay: { maxReplays: 10 } }, count(9), undefined],
    ['no body', {}, { body: { kind: 'none', bytes: 0, hash: '' } }, 'no-body'],
    ['an empty body', {}, { body: { kind: 'data', bytes: 0, hash: 'h' } }, undefined],
    ['a value body', {}, { body: { kind: 'value', bytes: 9, hash: 'h' } }, undefined],
    ['no session id where none is needed', {}, { sessionId: undefined }, undefined],
    [
      'no session id where one is needed',
      { entity: SESSIONS, mode: 'observe' },
      { sessionId: undefined },
      'no-session',
    ],
    ['a session id where one is needed', { entity: SESSIONS, mode: 'observe' }, { sessionId: 's' }, undefined],
    ['as large as fits', { entity: { ...KNOWN, maxMessageBytes: 2000 } }, body(1600), undefined],
    ['a byte too large', { entity: { ...KNOWN, maxMessageBytes: 2000 } }, body(1601), 'too-large'],
    ['a property as long as can be', {}, properties(32_767, 40_000), undefined],
    ['a property too long by a character', {}, properties(32_768, 40_000), 'properties-too-large'],
    ['too many properties', {}, properties(100, 65_536), 'properties-too-large'],
    ['a session id that is the partition key', {}, { sessionId: 's', partitionKey: 's' }, undefined],
    ['a partition key alone', {}, { partitionKey: 'p' }, undefined],
    ['a session id and another partition key', {}, { sessionId: 's', partitionKey: 'p' }, 'keys-differ'],
    ['in the duplicate window', { entity: { ...KNOWN, duplicateDetection: 'P1D' } }, {}, 'duplicate-window'],
  ])('%s', (_what, entry, letter, reason) => {
    const source = aSource({ entity: KNOWN, ...entry });
    expect(refusal(source, CHOICES, facts(source), aLetter(letter), NOW)).toBe(reason);
  });

  test.each([{ onDuplicate: 'new-id' }, { messageId: 'new' }] as const)(
    'with a new id the duplicate window does not matter: %j',
    (choice) => {
      const source = aSource({ entity: { ...KNOWN, duplicateDetection: 'P1D' } });
      expect(refusal(source, { ...CHOICES, ...choice }, facts(source), aLetter(), NOW, NOW)).toBeUndefined();
    },
  );

  test('a copy for a sandbox is no replay: neither limit nor window counts, size does', () => {
    const source = aSource({ entity: { ...KNOWN, duplicateDetection: 'P1D', maxMessageBytes: 2000 } });
    const sandbox = { ...CHOICES, target: 'sandbox' } as const;
    expect(refusal(source, sandbox, facts(source), aLetter(count(99)), NOW)).toBeUndefined();
    expect(refusal(source, sandbox, facts(source), aLetter(body(5000)), NOW)).toBe('too-large');
  });

  test('advice fix-first is heeded unless the operator says that it is fixed', () => {
    const source = aSource({ entity: KNOWN });
    const plan = aPlan({ facts: facts(source) });
    const broken = aRecord({}, { advice: 'fix-first' });
    expect(plannedRefusal(source, plan, broken, NOW)).toBe('fix-first');
    expect(
      plannedRefusal(source, { ...plan, choices: { ...CHOICES, includeFixFirst: true } }, broken, NOW),
    ).toBeUndefined();
    for (const advice of ['replay', 'investigate'] as const) {
      expect(plannedRefusal(source, plan, aRecord({}, { advice }), NOW)).toBeUndefined();
    }
  });

  test('including fix-first overrides nothing else', () => {
    const choices = { ...CHOICES, includeFixFirst: true };
    const record = aRecord(count(3), { advice: 'fix-first' });
    expect(plannedRefusal(aSource({ entity: KNOWN }), aPlan({ choices }), record, NOW)).toBe('over-limit');
  });

  test('what is on hold is neither sent back nor removed nor copied, whatever else is chosen', () => {
    const record = aRecord({}, { advice: 'replay' });
    const held = changed(undefined, { state: 'on-hold' }, { ...record, at: NOW, operator: 'ada' });
    const holds = new Holds(new Map([[record.fingerprint, held]]), new Map());
    const source = aSource({ entity: KNOWN, replay: { sandboxQueue: 's' } });
    for (const changes of [
      {},
      { action: 'discard' },
      { choices: { ...CHOICES, includeFixFirst: true } },
      { choices: { ...CHOICES, target: 'sandbox' } },
    ] as const) {
      const plan = aPlan({ facts: facts(source), ...changes });
      expect(plannedRefusal(source, plan, record, NOW, holds)).toBe('on-hold');
      expect(plannedRefusal(source, plan, record, NOW)).toBeUndefined();
      const other = aRecord({ reason: 'Another' });
      expect(plannedRefusal(source, plan, other, NOW, holds)).toBeUndefined();
    }
  });

  test('a discard takes every letter', () => {
    const record = aRecord({ ...count(99), body: { kind: 'none', bytes: 0, hash: '' } }, { advice: 'fix-first' });
    expect(plannedRefusal(aSource({ entity: {} }), aPlan({ action: 'discard' }), record, NOW)).toBeUndefined();
  });
});

describe('findings that count letters', () => {
  test('letters with one reason are one finding', () => {
    let findings: Finding[] = [];
    for (const reason of ['over-limit', 'fix-first', 'over-limit', 'over-limit'] as const)
      findings = countSkip(findings, reason);
    expect(findings.map(({ code, level, letters }) => [code, level, letters])).toEqual([
      ['over-limit', 'warn', 3],
      ['fix-first', 'warn', 1],
    ]);
  });

  test('a time to live is told only where the target drops what expires', () => {
    const drops = facts(aSource({ entity: { ...KNOWN, deadLettersOnExpiry: false } }));
    const mortal = aLetter({ timeToLive: 60_000 });
    const noted = countExpiry([], drops, mortal, 'keep');
    expect(noted).toMatchObject([{ code: 'expiry-drops', level: 'warn', letters: 1 }]);
    expect(countExpiry(noted, drops, mortal, 'keep')).toMatchObject([{ letters: 2 }]);
    expect(countExpiry([], drops, aLetter(), 'keep')).toEqual([]);
    expect(countExpiry([], drops, mortal, 'drop')).toEqual([]);
    expect(countExpiry([], drops, aLetter(), 3_600_000)).toMatchObject([{ code: 'expiry-drops' }]);
    expect(countExpiry([], facts(aSource({ entity: KNOWN })), mortal, 'keep')).toEqual([]);
  });

  it.each<[string, Partial<Letter>, 'keep' | 'drop' | number, Json, string[]]>([
    ['a short time kept', { timeToLive: 59_999 }, 'keep', {}, ['warn ttl-short']],
    ['a time just long enough', { timeToLive: 60_000 }, 'keep', {}, []],
    ['a short time replaced', { timeToLive: 1000 }, 3_600_000, {}, []],
    ['a short time dropped', { timeToLive: 1000 }, 'drop', {}, []],
    ['a short time chosen', { timeToLive: 3_600_000 }, 1000, {}, ['warn ttl-short']],
    ['the time it died of', { timeToLive: 3_600_000, reason: 'TTLExpiredException' }, 'keep', {}, ['warn ttl-short']],
    ['a longer time than it died of', { reason: 'TTLExpiredException' }, 86_400_000, {}, []],
    ['another death', { timeToLive: 3_600_000, reason: 'MaxDeliveryCountExceeded' }, 'keep', {}, []],
    ['a target that lets nothing live long', {}, 'drop', { defaultTimeToLive: 5000 }, ['warn ttl-short']],
    [
      'a target that drops what expires',
      { timeToLive: 1000 },
      'keep',
      { deadLettersOnExpiry: false },
      ['block ttl-short'],
    ],
  ])('%s', (_what, letter, choice, read, expected) => {
    const known = facts(aSource({ entity: KNOWN }), { from: 'administration', ...read });
    const found = countExpiry([], known, aLetter({ timeToLive: undefined, ...letter }), choice);
    expect(found.map(({ code, level }) => `${level} ${code}`)).toEqual(expected);
  });

  test('letters on hold are one finding that names their groups, the first ten', () => {
    const groups = Array.from(
      { length: 12 },
      (_, i) => causeOf({ reason: `R${'abcdefghijkl'[i]}` }, aSource().key).fingerprint,
    );
    const findings = [...groups, ...groups].reduce<Finding[]>(
      (all, group) => countOnHold(all, group),
      countSkip([], 'fix-first'),
    );
    expect(findings).toMatchObject([
      { code: 'fix-first', letters: 1 },
      { code: 'on-hold', level: 'warn', letters: 24, groups: groups.slice(0, 10) },
    ]);
    expect(findings[0]).not.toHaveProperty('groups');
    expect(findings[1]?.message).toContain(groups[0]);
    expect(countOnHold([], groups[0] as Fingerprint, 'block')).toMatchObject([{ level: 'block', letters: 1 }]);
  });

  test('the findings given are not changed', () => {
    const findings = Object.freeze(countSkip([], 'no-body').map(Object.freeze)) as Finding[];
    expect(countSkip(findings, 'no-body')[0]?.letters).toBe(2);
    expect(findings[0]?.letters).toBe(1);
  });
});
