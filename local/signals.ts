/** Being told to stop: Ctrl-C, a terminal that closes, `kill`. */
import { constants } from 'node:os';

/** The reason of an aborted {@link stopSignal}. */
export class Stopped extends Error {
  override name = 'Stopped';
  /** Exit code by convention: 128 and the signal's number. */
  readonly exitCode: number;

  constructor(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') {
    super(`stopped by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** Longest time that tidying up may take, ms. */
const LIMIT_MS = 20_000;

/** How often it is checked whether the parent is still there, ms. */
const PARENT_CHECK_MS = 500;

/**
 * Aborted by the first signal. More of them change nothing: npm passes on the Ctrl-C that the terminal has already sent to
 * every process, and the second must not cut the tidying up short.
 */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') => {
    if (controller.signal.aborted) return;
    const stopped = new Stopped(signal);
    setTimeout(() => process.exit(stopped.exitCode), LIMIT_MS).unref();
    controller.abort(stopped);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal));
  // npm runs scripts in a shell, and a shell that is terminated does not pass it on: its end is the only sign.
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) stop('SIGTERM');
    }, PARENT_CHECK_MS).unref();
  }
  return controller.signal;
}

/** Rejects with the signal's reason once it is aborted; else never settles. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
