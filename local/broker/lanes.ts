/**
 * Messages lined up for delivery, in the order of their numbers. An entity with sessions has a lane for each session,
 * any other just one. Messages that are gone stay in their lane until they are met or cleared out.
 */
import { Heap } from './heap.ts';

/** What a lane orders: an item with its place by number, that says itself when it has left. */
export interface Ranked {
  readonly sequenceNumber: bigint;
  /** Place within the partition. Partitions have no order among each other: the lower rank comes first. */
  readonly rank: number;
  gone: boolean;
}

export class Lanes<T extends Ranked> {
  readonly #lanes = new Map<string, Heap<T>>();

  push(item: T, lane: string): void {
    let heap = this.#lanes.get(lane);
    if (!heap) {
      heap = new Heap<T>(before);
      this.#lanes.set(lane, heap);
    }
    heap.push(item);
  }

  /** The first item of a lane, which stays there. */
  first(lane: string): T | undefined {
    const heap = this.#lanes.get(lane);
    if (!heap) return undefined;
    while (heap.peek()?.gone) heap.pop();
    if (heap.size === 0) this.#lanes.delete(lane);
    return heap.peek();
  }

  /** Takes the first item out of a lane. */
  next(lane: string): T | undefined {
    const item = this.first(lane);
    if (item) this.#lanes.get(lane)?.pop();
    return item;
  }

  /** Names of the lanes that may hold something, the one that was empty last at the end. */
  names(): Iterable<string> {
    return this.#lanes.keys();
  }

  /** Drops everything that is gone. */
  clearOut(): void {
    for (const [name, heap] of this.#lanes) {
      heap.retain((item) => !item.gone);
      if (heap.size === 0) this.#lanes.delete(name);
    }
  }
}

function before(a: Ranked, b: Ranked): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.sequenceNumber < b.sequenceNumber);
}
