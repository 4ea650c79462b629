/** Timer triggers: NCRONTAB schedules in UTC. */
import { setTimeout as delay } from 'node:timers/promises';
import { Cron } from 'croner';
import type { LoadedFunction } from './app.ts';
import type { TypedData } from './core.ts';
import type { Invoker } from './invoke.ts';

/** A schedule: when it is due next after a moment. */
export interface Schedule {
  next(after: Date): Date | null;
}

/**
 * Parses an NCRONTAB expression: six fields with seconds first, five accepted. Day of month and day of week must both
 * match (NCrontab's rule; Unix cron lets either do), and nothing beyond lists, ranges, steps and names is known.
 *
 * @throws Error that says what is wrong.
 */
export function parseSchedule(expression: string): Schedule {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6) {
    throw new Error(`The schedule "${expression}" must have six fields (seconds first), or five.`);
  }
  const isKnown = fields.every((field, index) => {
    const names = index >= fields.length - 2;
    return names ? /^[\d*,/a-z-]+$/i.test(field) : /^[\d*,/-]+$/.test(field);
  });
  const weekDay = fields.at(-1) ?? '';
  // In croner a week day of 7 is Sunday and L means "last"; NCrontab refuses both.
  if (!isKnown || /(^|[,-])7/.test(weekDay) || /\dL|^L|#/i.test(weekDay)) {
    throw new Error(`The schedule "${expression}" is not an NCRONTAB expression.`);
  }
  try {
    const cron = new Cron(fields.join(' '), { timezone: 'UTC', domAndDow: true, mode: '5-or-6-parts', paused: true });
    return { next: (after) => cron.nextRun(after) };
  } catch (cause) {
    throw new Error(`The schedule "${expression}" is not an NCRONTAB expression: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** A timer function with its parsed trigger. */
export interface TimerFunction {
  target: LoadedFunction;
  schedule: Schedule;
  runOnStartup: boolean;
}

/** Reads the timer trigger of `target`. Throws when the schedule is invalid. */
export function toTimerFunction(target: LoadedFunction): TimerFunction {
  const { schedule, runOnStartup } = target.trigger;
  return { target, schedule: parseSchedule(String(schedule)), runOnStartup: runOnStartup === true };
}

/** What the real host hands to a timer function. */
export function timerData(timer: TimerFunction, now: Date): TypedData {
  const next = timer.schedule.next(now) ?? now;
  const status = { Last: now.toISOString(), Next: next.toISOString(), LastUpdated: now.toISOString() };
  return {
    json: JSON.stringify({ Schedule: { AdjustForDST: true }, ScheduleStatus: status, IsPastDue: false }),
  };
}

const longestDelay = 2 ** 31 - 1;

/**
 * Runs `timer` on its schedule until `signal` aborts. A run is awaited before the next time is looked for, so a timer
 * never overlaps itself and times missed meanwhile are skipped.
 */
export async function runTimer(timer: TimerFunction, invoker: Invoker, signal: AbortSignal): Promise<void> {
  const run = async () => {
    // A failing run is logged by the invoker; the timer goes on, as in Azure.
    await invoker.invoke(timer.target, { data: timerData(timer, new Date()) }).catch(() => {});
  };
  if (timer.runOnStartup) await run();
  while (!signal.aborted) {
    const due = timer.schedule.next(new Date());
    if (!due) return;
    for (let left = due.getTime() - Date.now(); left > 0; left = due.getTime() - Date.now()) {
      await delay(Math.min(left, longestDelay), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
    }
    await run();
  }
}
