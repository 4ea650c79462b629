/** What administration remembers of entities beside how they behave: when, and what was only meant to be shown. */

/** Settings without effect on this broker, as the client wrote them. */
export type Shown = Readonly<Record<string, string>>;

export interface Note {
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly shown: Shown;
}

export class Notes {
  readonly #notes = new Map<string, Note>();
  readonly #start: number;

  /** `start`: when the entities of the configuration came to be. */
  constructor(start: number) {
    this.#start = start;
  }

  of(path: string): Note {
    return this.#notes.get(path.toLowerCase()) ?? { createdAt: this.#start, updatedAt: this.#start, shown: {} };
  }

  created(path: string, now: number, shown: Shown): void {
    this.#notes.set(path.toLowerCase(), { createdAt: now, updatedAt: now, shown });
  }

  updated(path: string, now: number, shown: Shown): void {
    this.#notes.set(path.toLowerCase(), { ...this.of(path), updatedAt: now, shown });
  }

  /** `path` in lower case. */
  removed(path: string): void {
    for (const key of this.#notes.keys())
      if (key === path || key.startsWith(`${path}/subscriptions/`)) this.#notes.delete(key);
  }
}
