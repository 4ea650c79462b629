import { app } from '@azure/functions';
import type { Front } from './front.ts';

/** From the end of the first call until its answer has left the process, ms. */
const AFTER_FIRST_CALL = 250;
/** Without any call, ms. */
const WITHOUT_CALL = 5000;

/**
 * Loads telemetry behind the first call (or a while after the start, if none comes) and sends the last of it when the host
 * ends the app. Loading keeps the process busy for as long as it lasts: no start and no first answer waits for it.
 */
export function registerTelemetry({ telemetry }: Front): void {
  if (!telemetry.isOn) return;
  const startIn = (ms: number) => setTimeout(() => telemetry.start(), ms).unref();
  startIn(WITHOUT_CALL);
  const first = app.hook.postInvocation(() => {
    first.dispose();
    startIn(AFTER_FIRST_CALL);
  });
  app.hook.appTerminate(() => telemetry.close());
}
