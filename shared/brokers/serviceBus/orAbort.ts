/** Gives up with the signal also what does not heed it; throws the signal's reason. */
export function orAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  // Whichever loses must not be an unhandled rejection.
  aborted.catch(() => {});
  work.catch(() => {});
  return Promise.race([work, aborted]);
}
