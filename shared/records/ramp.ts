/**
 * How fast a run may go and when it stops itself, decided from values. A run begins with a few letters, waits to see whether
 * they come back, and only then sends more: a cause that was not fixed costs one letter, not forty thousand.
 */
import { z } from 'zod';
import type { Source } from '../catalog.ts';
import { duration } from '../duration.ts';

const rampSchema = z.strictObject({
  /** Letters of each step; after the last one everything. */
  steps: z.array(z.number().int().min(1).max(1_000_000)).min(1).max(10).optional(),
  /** How long each step is watched. */
  observe: duration.refine((ms) => ms <= 86_400_000, 'must be at most a day').optional(),
  /** Share of a step that may come back; more halts the run. In the first step any one halts it. */
  haltAbove: z.number().min(0).max(1).optional(),
});

/** What the caller of a run may say about its pace. */
export const paceSchema = z.strictObject({
  /** Letters a second; without it as fast as the broker takes them. */
  rate: z.number().min(0.1).max(100_000).optional(),
  /** `false`: all at once. */
  ramp: z.union([z.literal(false), rampSchema]).optional(),
});

/** The pace of a run. */
export interface Pace {
  /** Letters a second; 0 is no limit. */
  readonly rate: number;
  readonly ramp:
    | { readonly steps: readonly number[]; readonly observeMs: number; readonly haltAbove: number }
    | undefined;
}

/** Where a run is in its ramp. Times are ms since 1970. */
export interface Progress {
  readonly step: number;
  /** Letters done before this step began. */
  readonly doneBefore: number;
  /** Letters that had come back before this step began. */
  readonly returnedBefore: number;
  /** When the step's letters were all sent; 0 while they are being sent. */
  readonly observedFrom: number;
  /** From when the rate is counted, and how many letters were done by then. */
  readonly pacedFrom: number;
  readonly pacedDone: number;
}

const DEFAULT_STEPS = [1, 5, 20];
const DEFAULT_HALT = 0.1;
const MINUTE = 60_000;
/** After this many observation times without a sign of a consumer the run pauses. */
export const PATIENCE = 4;

/** The pace of a run as it was asked for, completed with defaults. What cannot come back (a discard, a copy in a sandbox) needs no ramp. */
export function paceOf(source: Source, asked: z.infer<typeof paceSchema>, canReturn: boolean): Pace {
  const { rate = 0, ramp = {} } = asked;
  if (ramp === false || !canReturn) return { rate, ramp: undefined };
  const observeMs = ramp.observe ?? observationTime(source);
  return { rate, ramp: { steps: ramp.steps ?? DEFAULT_STEPS, observeMs, haltAbove: ramp.haltAbove ?? DEFAULT_HALT } };
}

/** How long a letter may need to die again: every delivery may take a whole lock. 15 minutes where that is not known. */
function observationTime({ entity }: Source): number {
  const { lockDuration, maxDeliveryCount } = entity;
  return lockDuration === undefined || maxDeliveryCount === undefined
    ? 15 * MINUTE
    : lockDuration * maxDeliveryCount + MINUTE;
}

/** The beginning of a run or of its continuation after a pause: small again. */
export function beginProgress(done: number, returned: number, now: number): Progress {
  return { step: 0, doneBefore: done, returnedBefore: returned, observedFrom: 0, pacedFrom: now, pacedDone: done };
}

/** The step behind `progress`. */
export function nextStep(progress: Progress, done: number, returned: number, now: number): Progress {
  return { ...beginProgress(done, returned, now), step: progress.step + 1 };
}

/** What a run does next. */
export type Gate =
  /** Send at most that many letters. */
  | { readonly kind: 'send'; readonly max: number }
  /** Too early by the rate; ms. */
  | { readonly kind: 'pace'; readonly delayMs: number }
  /** The step is sent: watch it. `over`: its time has passed. */
  | { readonly kind: 'observe'; readonly over: boolean }
  | { readonly kind: 'halt'; readonly why: string };

/** What comes before every chunk: has too much come back, is the step full, is it too early? */
export function gate(pace: Pace, progress: Progress, done: number, returned: number, now: number): Gate {
  const { rate, ramp } = pace;
  const sent = done - progress.doneBefore;
  const back = returned - progress.returnedBefore;
  if (ramp !== undefined && isTooMuch(ramp.haltAbove, progress.step, sent, back)) {
    return { kind: 'halt', why: `${back} of the ${sent} letters of step ${progress.step + 1} came back` };
  }
  const size = ramp?.steps[progress.step] ?? Number.POSITIVE_INFINITY;
  if (ramp !== undefined && sent >= size) {
    return { kind: 'observe', over: progress.observedFrom > 0 && now - progress.observedFrom >= ramp.observeMs };
  }
  if (rate === 0) return { kind: 'send', max: size - sent };
  const delayMs = progress.pacedFrom + ((done - progress.pacedDone) / rate) * 1000 - now;
  // A chunk is sent in one go and then paid for: at most what the rate allows in two seconds, but at least one.
  return delayMs > 0
    ? { kind: 'pace', delayMs }
    : { kind: 'send', max: Math.min(size - sent, Math.max(1, Math.floor(rate * 2))) };
}

function isTooMuch(haltAbove: number, step: number, sent: number, back: number): boolean {
  return back > 0 && (step === 0 || back > sent * haltAbove);
}
