/** Where the broker reads the time from. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number;
}

/**
 * The real time plus an offset that a test moves forward. Locks and times to live follow this clock; access tokens do
 * not, because clients sign them by their own, real clock.
 */
export class MovableClock implements Clock {
  readonly #real: () => number;
  readonly #listeners = new Set<() => void>();
  #offset = 0;

  constructor(real: () => number = Date.now) {
    this.#real = real;
  }

  now(): number {
    return Math.floor(this.#real() + this.#offset);
  }

  /** Moves the clock forward by `ms` milliseconds; whatever falls due has happened when this returns. */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`a broker clock only moves forward, not by ${ms} ms`);
    this.#offset += ms;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Calls `listener` after every move; returns how to stop that. */
  onMove(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
