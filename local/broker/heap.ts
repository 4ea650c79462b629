/** A binary heap: the smallest item first. Owners skip what is no longer valid, and clear it out now and then. */
export class Heap<T> {
  #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent] as T;
      if (!this.#before(item, above)) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return top;
    items[0] = last;
    this.#sink(0);
    return top;
  }

  /** Drops every item for which `keep` is false. */
  retain(keep: (item: T) => boolean): void {
    this.#items = this.#items.filter(keep);
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at--) this.#sink(at);
  }

  #sink(from: number): void {
    const items = this.#items;
    const item = items[from] as T;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#before(items[child + 1] as T, items[child] as T)) child++;
      if (!this.#before(items[child] as T, item)) break;
      items[at] = items[child] as T;
      at = child;
    }
    items[at] = item;
  }
}
