import { describe, expect, it, test } from 'vitest';
import type { Fingerprint } from '../../shared/classify/fingerprint.ts';
import { Holds } from '../../shared/records/onHold.ts';
import {
  changed,
  changeText,
  shownState,
  type Triage,
  type TriageChange,
  triageOf,
  triageSchema,
} from '../../shared/records/triage.ts';
import { NOW } from '../harness/values.ts';

const BY = { fingerprint: 'f1-aaaaaaaaaaaaaaaaaaaaaa' as Fingerprint, cause: 'E: boom', at: NOW, operator: 'ada' };
const later = { ...BY, at: NOW + 1000, operator: 'grace' };
const HELD = changed(undefined, { state: 'on-hold', owner: 'ada', note: 'n', bug: 'https://bugs.example.org/1' }, BY);
const RESOLVED = changed(undefined, { state: 'resolved' }, BY);

describe('a change', () => {
  test('of nothing before says who and when', () => {
    expect(HELD).toEqual({
      fingerprint: BY.fingerprint,
      cause: 'E: boom',
      state: 'on-hold',
      owner: 'ada',
      note: 'n',
      bug: 'https://bugs.example.org/1',
      changedAt: NOW,
      changedBy: 'ada',
      resolvedAt: undefined,
      regressedAt: undefined,
    });
  });

  test('leaves what it does not name, and null takes away', () => {
    expect(changed(HELD, { owner: 'grace' }, later)).toMatchObject({
      state: 'on-hold',
      owner: 'grace',
      note: 'n',
      changedBy: 'grace',
    });
    expect(changed(HELD, { owner: null, bug: null, note: null }, later)).toMatchObject({
      state: 'on-hold',
      owner: '',
      note: '',
      bug: '',
    });
  });

  const regressed: Triage = { ...RESOLVED, regressedAt: NOW + 500 };
  it.each<[string, Triage, TriageChange, Partial<Triage>]>([
    ['resolving', HELD, { state: 'resolved' }, { state: 'resolved', resolvedAt: later.at, regressedAt: undefined }],
    [
      'resolving again after a regression',
      regressed,
      { state: 'resolved' },
      { resolvedAt: later.at, regressedAt: undefined },
    ],
    ['a note to a regression', regressed, { note: 'seen' }, { resolvedAt: NOW, regressedAt: NOW + 500 }],
    ['opening again', regressed, { state: 'open' }, { state: 'open', resolvedAt: undefined, regressedAt: undefined }],
    ['a hold after it was resolved', RESOLVED, { state: 'on-hold' }, { state: 'on-hold', resolvedAt: undefined }],
  ])('%s', (_what, before, change, after) => {
    expect(changed(before, change, later)).toMatchObject(after);
  });

  test('in words for the audit, without the note', () => {
    expect(changeText(undefined, HELD)).toBe(
      'on-hold (was open); owner: ada; bug: https://bugs.example.org/1; note changed',
    );
    expect(changeText(HELD, changed(HELD, { state: 'open', owner: null, note: null }, later))).toBe(
      'open (was on-hold); owner: none; note removed',
    );
  });
});

describe('what is shown', () => {
  it.each<[string, Triage | undefined, number | undefined, string, number | undefined]>([
    ['nothing said', undefined, NOW, 'open', undefined],
    ['on hold, and growing', HELD, NOW + 5, 'on-hold', undefined],
    ['resolved, nothing since', RESOLVED, NOW, 'resolved', undefined],
    ['resolved, no letter left at all', RESOLVED, undefined, 'resolved', undefined],
    ['resolved, noted when it came back', { ...RESOLVED, regressedAt: NOW + 7 }, NOW + 9, 'regressed', NOW + 7],
    ['resolved, back without a note of when', RESOLVED, NOW + 9, 'regressed', NOW + 9],
    [
      'opened again: no regression any more',
      { ...RESOLVED, state: 'open', regressedAt: NOW },
      NOW + 9,
      'open',
      undefined,
    ],
  ])('%s', (_what, triage, lastSeen, state, regressedSince) => {
    expect(shownState(triage, lastSeen)).toEqual({ state, regressedSince });
  });
});

describe('at the door', () => {
  it.each<unknown>([
    { state: 'on-hold' },
    { owner: 'Ada Lovelace' },
    { owner: null, note: null, bug: null },
    { note: 'two\nlines' },
    { bug: 'https://bugs.example.org/browse/SHOP-1?x=1#y' },
    { bug: 'http://intranet/1' },
  ])('%j is taken', (change) => {
    expect(triageSchema.safeParse(change).success).toBe(true);
  });

  it.each<unknown>([
    {},
    { state: 'regressed' },
    { state: 'On-Hold' },
    { state: null },
    { owner: 'two\nlines' },
    { owner: 'x'.repeat(101) },
    { note: 'x'.repeat(2001) },
    { note: 7 },
    { bug: 'javascript:alert(1)' },
    { bug: 'ftp://example.org/1' },
    { bug: 'SHOP-1' },
    { bug: 'https://example.org/ <script>' },
    { bug: `https://example.org/${'x'.repeat(1000)}` },
    { state: 'open', force: true },
    [],
    null,
    'on-hold',
  ])('%j is refused', (change) => {
    expect(triageSchema.safeParse(change).success).toBe(false);
  });
});

describe('what was said of a cause under a fingerprint of an earlier version', () => {
  const fingerprint = (name: string) => name.padEnd(25, 'x') as Fingerprint;
  const [now, one, two] = [fingerprint('f2-now'), fingerprint('f1-one'), fingerprint('f1-two')];
  const said = (name: Fingerprint, change: TriageChange, at: number) =>
    [name, changed(undefined, change, { ...BY, fingerprint: name, at })] as const;

  it.each<[string, (readonly [Fingerprint, Triage])[], Fingerprint | undefined]>([
    ['nothing was said', [], undefined],
    ['it counts', [said(one, { state: 'resolved' }, 1)], one],
    ['what is said of it now comes first', [said(one, { state: 'on-hold' }, 9), said(now, { state: 'open' }, 1)], now],
    ['of several a hold comes first', [said(one, { state: 'on-hold' }, 1), said(two, { state: 'resolved' }, 9)], one],
    ['of several else the last', [said(one, { owner: 'ada' }, 1), said(two, { owner: 'li' }, 9)], two],
  ])('%s', (_what, all, wanted) => {
    expect(triageOf(new Map(all), { fingerprint: now, formerly: [one, two] })?.fingerprint).toBe(wanted);
  });

  test('holds a letter by its own former group and by those of its group, unless the plan includes one of the names', () => {
    const held = new Map([said(one, { state: 'on-hold' }, 1)]);
    const links = new Map([[now, [one]]]);
    expect(new Holds(held, new Map()).of({ fingerprint: now, formerly: one })).toBe(one);
    expect(new Holds(held, new Map()).of({ fingerprint: now, formerly: two })).toBeUndefined();
    expect(new Holds(held, links).of({ fingerprint: now, formerly: two })).toBe(one);
    expect(new Holds(held, links).groups).toEqual([one, now]);
    for (const included of [one, now]) {
      expect(new Holds(held, links, [included]).of({ fingerprint: now, formerly: one })).toBeUndefined();
    }
    // Whoever names the old group does not name what was put on hold by its new name since.
    const anew = new Map([...held, said(now, { state: 'on-hold' }, 2)]);
    expect(new Holds(anew, links, [one]).of({ fingerprint: now, formerly: one })).toBe(now);
  });
});
