/** Name of the queue of continuations; the trigger binds to it. */
export const RUNS_QUEUE = 'runs';
