/**
 * Duplicate detection: which message ids an entity stored lately. It knows ids and times only, so it goes on knowing
 * them when the messages themselves are long received, dead-lettered or forwarded.
 */
export class DuplicateHistory {
  readonly #window: number;
  /** When each id was stored, in that order: the window is one for all, so the oldest is always in front. */
  readonly #storedAt = new Map<string, number>();

  /** `window` in milliseconds. */
  constructor(window: number) {
    this.#window = window;
  }

  /**
   * Whether a message with this id was stored within the window; if not, it is from now on. A duplicate that is dropped
   * does not prolong the window: it was never stored.
   */
  isRepeated(id: string, now: number): boolean {
    this.#forget(now);
    if (this.#storedAt.has(id)) return true;
    this.#storedAt.set(id, now);
    return false;
  }

  clear(): void {
    this.#storedAt.clear();
  }

  #forget(now: number): void {
    for (const [id, at] of this.#storedAt) {
      if (at + this.#window > now) return;
      this.#storedAt.delete(id);
    }
  }
}
