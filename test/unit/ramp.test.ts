import fc from 'fast-check';
import { expect, it } from 'vitest';
import { beginProgress, type Gate, gate, nextStep, type Pace, paceOf } from '../../shared/records/ramp.ts';
import { aSource, NOW } from '../harness/values.ts';

const RAMP: Pace = { rate: 0, ramp: { steps: [1, 5, 20], observeMs: 1000, haltAbove: 0.1 } };
const START = beginProgress(0, 0, NOW);

it('begins with the first step, and then watches it', () => {
  expect(gate(RAMP, START, 0, 0, NOW)).toEqual({ kind: 'send', max: 1 });
  expect(gate(RAMP, START, 1, 0, NOW)).toEqual({ kind: 'observe', over: false });
  const watched = { ...START, observedFrom: NOW };
  expect(gate(RAMP, watched, 1, 0, NOW + 999)).toEqual({ kind: 'observe', over: false });
  expect(gate(RAMP, watched, 1, 0, NOW + 1000)).toEqual({ kind: 'observe', over: true });
});

it('goes on with larger steps and in the end with everything', () => {
  const second = nextStep(START, 1, 0, NOW);
  expect(gate(RAMP, second, 1, 0, NOW)).toEqual({ kind: 'send', max: 5 });
  expect(gate(RAMP, second, 4, 0, NOW)).toEqual({ kind: 'send', max: 2 });
  const last = nextStep(nextStep(second, 6, 0, NOW), 26, 0, NOW);
  expect(gate(RAMP, last, 26, 0, NOW)).toEqual({ kind: 'send', max: Number.POSITIVE_INFINITY });
});

it.each([
  ['one of the first step', 0, 1, 1, true],
  ['a tenth of a later step', 1, 20, 2, false],
  ['more than a tenth of a later step', 1, 20, 3, true],
  ['nothing', 1, 20, 0, false],
])('with %s back: halts or not', (_what, step, sent, back, halts) => {
  const ramp = { ...RAMP, ramp: { steps: [1, 100], observeMs: 1000, haltAbove: 0.1 } };
  expect(gate(ramp, { ...START, step }, sent, back, NOW).kind === 'halt').toBe(halts);
});

it('halts while it watches, as soon as too much is back', () => {
  expect(gate(RAMP, { ...START, observedFrom: NOW }, 1, 1, NOW + 10)).toMatchObject({ kind: 'halt' });
});

it('does not hold against a step what came back before it began', () => {
  expect(gate(RAMP, beginProgress(1, 1, NOW), 1, 1, NOW)).toEqual({ kind: 'send', max: 1 });
});

it('keeps the rate across slices: every letter is paid for with time', () => {
  const pace: Pace = { rate: 10, ramp: undefined };
  expect(gate(pace, START, 0, 0, NOW)).toEqual({ kind: 'send', max: 20 });
  expect(gate(pace, START, 20, 0, NOW)).toEqual({ kind: 'pace', delayMs: 2000 });
  expect(gate(pace, START, 20, 0, NOW + 1999)).toEqual({ kind: 'pace', delayMs: 1 });
  expect(gate(pace, START, 20, 0, NOW + 2000)).toEqual({ kind: 'send', max: 20 });
});

it('never sends more than the rate allows in any time, whatever the pauses', () => {
  const rates = fc.double({ min: 0.1, max: 1000, noNaN: true });
  fc.assert(
    fc.property(rates, fc.array(fc.integer({ min: 0, max: 10_000 }), { maxLength: 50 }), (rate, pauses) => {
      let now = NOW;
      let done = 0;
      for (const pause of pauses) {
        now += pause;
        const next: Gate = gate({ rate, ramp: undefined }, START, done, 0, now);
        if (next.kind === 'send') done += next.max;
        else if (next.kind === 'pace') now += next.delayMs;
        expect(done).toBeLessThanOrEqual(((now - NOW) / 1000) * rate + Math.max(1, rate * 2) + 1e-6);
      }
    }),
  );
});

it('watches as long as a letter may need to die again, 15 minutes where that is not known', () => {
  const known = aSource({ entity: { lockDuration: 'PT30S', maxDeliveryCount: 10 } });
  expect(paceOf(known, {}, true).ramp).toEqual({ steps: [1, 5, 20], observeMs: 360_000, haltAbove: 0.1 });
  expect(paceOf(aSource(), {}, true).ramp?.observeMs).toBe(900_000);
  expect(paceOf(known, { ramp: { observe: 5000, steps: [2], haltAbove: 0.5 }, rate: 7 }, true)).toEqual({
    rate: 7,
    ramp: { steps: [2], observeMs: 5000, haltAbove: 0.5 },
  });
});

it('has no ramp when it is switched off, nor for a discard', () => {
  expect(paceOf(aSource(), { ramp: false }, true)).toEqual({ rate: 0, ramp: undefined });
  expect(paceOf(aSource(), { rate: 5 }, false)).toEqual({ rate: 5, ramp: undefined });
});
