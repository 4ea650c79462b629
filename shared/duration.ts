import { z } from 'zod';

const FORM = /^P(?=\d|T\d)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,7})?)S)?)?$/;
const UNITS = [604_800_000, 86_400_000, 3_600_000, 60_000, 1000];

/**
 * Milliseconds of an ISO 8601 duration of weeks, days, hours, minutes and seconds (`P14D`, `PT1M30S`); else `undefined`.
 * Seconds have up to seven decimals, as .NET writes its ticks (`P10675199DT2H48M5.4775807S`); the rest of one is rounded.
 */
export function parseDuration(text: string): number | undefined {
  const match = FORM.exec(text);
  if (!match) return undefined;
  const ms = UNITS.reduce((sum, unit, i) => sum + Number(match[i + 1] ?? 0) * unit, 0);
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined;
}

/** An ISO 8601 duration in JSON, milliseconds after parsing. */
export const duration = z.string().transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 duration such as PT30S, PT1H or P14D' });
  return z.NEVER;
});
