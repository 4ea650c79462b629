/** Chance that comes again: the same seed throws the same numbers (splitmix32). */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    this.next(); // neighbouring seeds begin alike
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state ^ (this.#state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.int(0, items.length - 1)] ?? items[0];
  }

  /** Dice of their own, so that what one part throws does not shift another. */
  fork(): Dice {
    return new Dice(Math.floor(this.next() * 4_294_967_296));
  }
}
