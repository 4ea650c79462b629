import type { PlanId } from '../letter.ts';
import type { Chunk } from '../records/plan.ts';
import type { PlanStore } from '../store/plans.ts';

/**
 * The chunks of a plan that are not done, in the order of their keys, read ahead by a page. Only the run that holds the lease
 * changes chunks, so what was read stays true until it rearranges some, which it has to tell by {@link reread}.
 */
export class Upcoming {
  readonly #plans: PlanStore;
  readonly #id: PlanId;
  /** Key up to which every chunk is done, or in the target and being completed. */
  #behind: string | undefined;
  #read: AsyncGenerator<Chunk> | undefined;
  #first: Chunk | undefined;

  constructor(plans: PlanStore, id: PlanId) {
    this.#plans = plans;
    this.#id = id;
  }

  /**
   * The first chunk that is not done and was not passed. Chunks are worked on in the order of their keys and one in flight
   * blocks those behind it, so a chunk in flight is always the first.
   */
  async first(): Promise<Chunk | undefined> {
    while (this.#first === undefined) {
      const isFresh = this.#read === undefined;
      const after = this.#behind === undefined ? {} : { after: this.#behind };
      this.#read ??= this.#plans.chunks(this.#id, { unfinished: true, ...after });
      this.#first = (await this.#read.next()).value ?? undefined;
      if (this.#first !== undefined) break;
      this.#read = undefined;
      // Some may have been moved behind the others since this reading began: only a new one shows that none is left.
      if (isFresh) return undefined;
    }
    return this.#first;
  }

  /** The chunk with this key, and all before it, are done or being completed. */
  pass(key: string): void {
    if (this.#behind === undefined || this.#behind < key) this.#behind = key;
    if (this.#first !== undefined && this.#first.key <= key) this.#first = undefined;
  }

  /** Chunks were divided, moved or changed. */
  reread(): void {
    this.#read = undefined;
    this.#first = undefined;
  }
}
