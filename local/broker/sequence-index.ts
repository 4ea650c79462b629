/** What the index orders: an item with a 64-bit sequence number that says itself when it has left. */
export interface Sequenced {
  readonly sequenceNumber: bigint;
  gone: boolean;
}

/**
 * All items of an entity in sequence order, for paging by number. Leaving costs nothing: an item is marked as gone and
 * swept out when half of the index is. Arrivals are nearly always at the end; a dead-letter queue keeps the numbers of
 * its main queue, so there they also come in between, and are sorted in when somebody asks.
 */
export class SequenceIndex<T extends Sequenced> {
  #items: T[] = [];
  #gone = 0;
  #sorted = true;

  add(item: T): void {
    const last = this.#items.at(-1);
    if (last && last.sequenceNumber > item.sequenceNumber) this.#sorted = false;
    this.#items.push(item);
  }

  /** To be called once for every item whose `gone` was just set. */
  left(): void {
    this.#gone++;
    if (this.#gone * 2 <= this.#items.length || this.#gone < 64) return;
    this.#items = this.#items.filter((item) => !item.gone);
    this.#gone = 0;
  }

  /** Up to `count` present items from number `from` (inclusive) on, of those that match. */
  from(from: bigint, count: number, matches: (item: T) => boolean = () => true): T[] {
    this.#sort();
    const found: T[] = [];
    for (let at = this.#lowerBound(from); at < this.#items.length && found.length < count; at++) {
      const item = this.#items[at] as T;
      if (!item.gone && matches(item)) found.push(item);
    }
    return found;
  }

  /** Sorting when somebody asks costs what one insertion in the right place would, for any number of arrivals. */
  #sort(): void {
    if (this.#sorted) return;
    this.#items.sort((a, b) =>
      a.sequenceNumber < b.sequenceNumber ? -1 : a.sequenceNumber > b.sequenceNumber ? 1 : 0,
    );
    this.#sorted = true;
  }

  #lowerBound(number: bigint): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#items[middle] as T).sequenceNumber < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
