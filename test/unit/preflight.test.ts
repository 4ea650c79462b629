import { describe, expect, it, test } from 'vitest';
import type { Letter } from '../../shared/letter.ts';
import type { Action, Choices, Finding } from '../../shared/plan/plan.ts';
import {
  countExpiry,
  countSkip,
  isInDuplicateWindow,
  plannedRefusal,
  refusal,
  sourceFindings,
  targetOf,
} from '../../shared/plan/preflight.ts';
import { aLetter, aRecord, aSource, NOW, SUBSCRIPTION } from '../harness/values.ts';

type Json = Record<string, unknown>;

const CHOICES: Choices = { bypass: false, includeFixFirst: false, onDuplicate: 'skip' };
const KNOWN = { duplicateDetection: false, requiresSession: false, deadLettersOnExpiry: true };
const codes = (entry: Json, action: Action = 'replay') =>
  sourceFindings(aSource({ entity: KNOWN, ...entry }), action).map(({ code, level }) => `${level} ${code}`);

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
  test('there are none when everything is known and plain', () => {
    expect(codes({})).toEqual([]);
    expect(codes({ entity: { ...KNOWN, duplicateDetection: 'PT10M', deadLettersOnExpiry: false } })).toEqual([]);
    expect(codes({ ...SUBSCRIPTION, replay: { replayQueue: 'r' } })).toEqual([]);
  });

  it.each<[string, Json, string[]]>([
    ['an observe source', { mode: 'observe' }, ['observe-source']],
    ['a subscription with no queue', SUBSCRIPTION, ['no-direct-target']],
    [
      'unknown duplicate detection',
      { entity: { ...KNOWN, duplicateDetection: undefined } },
      ['duplicate-detection-unknown'],
    ],
    ['unknown sessions', { entity: { ...KNOWN, requiresSession: undefined } }, ['sessions-unknown']],
    ['unknown expiry', { entity: { ...KNOWN, deadLettersOnExpiry: undefined } }, ['expiry-unknown']],
    [
      'a session entity',
      { mode: 'observe', entity: { ...KNOWN, requiresSession: true } },
      ['observe-source', 'sessions-unsupported'],
    ],
    ['nothing known', { entity: {} }, ['duplicate-detection-unknown', 'sessions-unknown', 'expiry-unknown']],
  ])('%s blocks', (_what, entry, expected) => {
    expect(codes(entry)).toEqual(expected.map((code) => `block ${code}`));
  });

  test('a discard needs a source that is held, and nothing of a target', () => {
    expect(codes({ ...SUBSCRIPTION, entity: {} }, 'discard')).toEqual([]);
    expect(codes({ mode: 'observe', entity: {} }, 'discard')).toEqual(['block observe-source']);
  });

  test('every finding says what to do', () => {
    for (const { message } of sourceFindings(aSource({ mode: 'observe', ...SUBSCRIPTION, entity: {} }), 'replay')) {
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
    ['sent just inside', { enqueuedAt: minutesAgo(10) + 1 }, true],
    ['sent exactly a window ago', { enqueuedAt: minutesAgo(10) }, false],
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
    expect(isInDuplicateWindow(source, aLetter(letter), NOW)).toBe(known);
  });

  it.each([false, undefined])('does not exist when detection is %s', (duplicateDetection) => {
    const plain = aSource({ entity: { ...KNOWN, duplicateDetection } });
    expect(isInDuplicateWindow(plain, aLetter({ enqueuedAt: NOW }), NOW)).toBe(false);
  });
});

describe('a letter is refused or let through', () => {
  const count = (n: number) => ({ replay: { count: n, planId: undefined, of: undefined, at: undefined } });
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
    ['as large as fits', { entity: { ...KNOWN, maxMessageBytes: 2000 } }, body(1600), undefined],
    ['a byte too large', { entity: { ...KNOWN, maxMessageBytes: 2000 } }, body(1601), 'too-large'],
    ['in the duplicate window', { entity: { ...KNOWN, duplicateDetection: 'P1D' } }, {}, 'duplicate-window'],
  ])('%s', (_what, entry, letter, reason) => {
    expect(refusal(aSource({ entity: KNOWN, ...entry }), CHOICES, aLetter(letter), NOW)).toBe(reason);
  });

  test('with a new id the duplicate window does not matter', () => {
    const source = aSource({ entity: { ...KNOWN, duplicateDetection: 'P1D' } });
    expect(refusal(source, { ...CHOICES, onDuplicate: 'new-id' }, aLetter(), NOW)).toBeUndefined();
  });

  test('advice fix-first is heeded unless the operator says that it is fixed', () => {
    const source = aSource({ entity: KNOWN });
    const broken = aRecord({}, { advice: 'fix-first' });
    expect(plannedRefusal(source, 'replay', CHOICES, broken, NOW)).toBe('fix-first');
    expect(plannedRefusal(source, 'replay', { ...CHOICES, includeFixFirst: true }, broken, NOW)).toBeUndefined();
    for (const advice of ['replay', 'investigate'] as const) {
      expect(plannedRefusal(source, 'replay', CHOICES, aRecord({}, { advice }), NOW)).toBeUndefined();
    }
  });

  test('including fix-first overrides nothing else', () => {
    const choices = { ...CHOICES, includeFixFirst: true };
    const record = aRecord(count(3), { advice: 'fix-first' });
    expect(plannedRefusal(aSource({ entity: KNOWN }), 'replay', choices, record, NOW)).toBe('over-limit');
  });

  test('a discard takes every letter', () => {
    const record = aRecord({ ...count(99), body: { kind: 'none', bytes: 0, hash: '' } }, { advice: 'fix-first' });
    expect(plannedRefusal(aSource({ entity: {} }), 'discard', CHOICES, record, NOW)).toBeUndefined();
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
    const drops = aSource({ entity: { ...KNOWN, deadLettersOnExpiry: false } });
    const mortal = aLetter({ timeToLive: 60_000 });
    expect(countExpiry([], drops, mortal)).toMatchObject([{ code: 'expiry-drops', level: 'warn', letters: 1 }]);
    expect(countExpiry(countExpiry([], drops, mortal), drops, mortal)).toMatchObject([{ letters: 2 }]);
    expect(countExpiry([], drops, aLetter())).toEqual([]);
    expect(countExpiry([], aSource({ entity: KNOWN }), mortal)).toEqual([]);
  });

  test('the findings given are not changed', () => {
    const findings = Object.freeze(countSkip([], 'no-body').map(Object.freeze)) as Finding[];
    expect(countSkip(findings, 'no-body')[0]?.letters).toBe(2);
    expect(findings[0]?.letters).toBe(1);
  });
});
