/** Those who wait for something to happen in an entity. */
export class Listeners {
  readonly #listeners: (() => void)[] = [];
  #first = 0;

  /** Adds a listener; returns how to take it away again. */
  add(listener: () => void): () => void {
    this.#listeners.push(listener);
    return () => {
      const at = this.#listeners.indexOf(listener);
      if (at >= 0) this.#listeners.splice(at, 1);
    };
  }

  /** Tells all. Each time another one is asked first, so that one alone does not get everything. */
  notify(): void {
    const listeners = [...this.#listeners];
    this.#first++;
    for (let i = 0; i < listeners.length; i++) listeners[(this.#first + i) % listeners.length]?.();
  }
}
