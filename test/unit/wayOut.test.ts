import { describe, expect, it } from 'vitest';
import { chosenBy, Judge, type WayOut, withLetter } from '../../cli/wayOut.ts';
import type { SequenceNumber } from '../../shared/letter.ts';
import { completeFacts } from '../../shared/plan/preflight.ts';
import { aLetter, aSource, NOW, PLAN_ID } from '../harness/values.ts';

const MINUTE = 60_000;
const entity = { requiresSession: false, deadLettersOnExpiry: true };

function way(options: Parameters<typeof chosenBy>[0], duplicateDetection: false | string = 'PT10M'): WayOut {
  const source = aSource({ entity: { ...entity, duplicateDetection } });
  const facts = completeFacts(source, { from: 'none' });
  return { source, to: 'orders', choices: chosenBy(options).choices, facts, findings: [] };
}
const old = (number: string, messageId: string) =>
  aLetter({ sequenceNumber: number as SequenceNumber, messageId, enqueuedAt: NOW - 86_400_000 });

describe('letters that go out without the office', () => {
  it('are judged by the ids that this command has sent, too', () => {
    const judge = new Judge(way({}), PLAN_ID);
    expect(judge.verdict(old('1', 'a'), NOW)).toMatchObject({ change: {} });
    expect(judge.verdict(old('2', 'b'), NOW)).toMatchObject({ change: {} });
    expect(judge.verdict(old('3', 'a'), NOW + MINUTE)).toMatchObject({ stays: 'duplicate-window' });
    expect(judge.verdict(old('4', 'a'), NOW + 20 * MINUTE)).toMatchObject({ change: {} });
  });

  it('have new ids where the old ones would be dropped, and only there', () => {
    const judge = new Judge(way({ 'on-duplicate': 'new-id' }), PLAN_ID);
    expect(judge.verdict(old('1', 'a'), NOW)).toMatchObject({ change: {} });
    expect(judge.verdict(old('2', 'a'), NOW)).toMatchObject({
      change: { newMessageId: `${PLAN_ID}:2` },
      isRepeated: true,
    });
    const all = new Judge(way({ 'message-id': 'new' }, false), PLAN_ID);
    expect(all.verdict(old('1', 'a'), NOW)).toMatchObject({ change: { newMessageId: `${PLAN_ID}:1` } });
    const alike = new Judge(way({ 'on-duplicate': 'new-id' }, false), PLAN_ID);
    for (const number of ['1', '2'])
      expect(alike.verdict(old(number, 'a'), NOW)).toEqual({ change: {}, isRepeated: false });
  });

  it('are counted by what stands against them', () => {
    const own = way({});
    const judge = new Judge(own, PLAN_ID);
    const letters = [old('1', 'a'), old('2', 'a'), { ...old('3', 'c'), replay: { ...old('3', 'c').replay, count: 3 } }];
    const findings = letters.reduce(
      (all, letter) => withLetter(all, own, letter, judge.verdict(letter, NOW)),
      own.findings,
    );
    expect(findings.map(({ code, letters: count }) => [code, count])).toEqual([
      ['repeated-id', 1],
      ['over-limit', 1],
    ]);
  });
});
