import { OfficeError } from '../errors.ts';
import type { PlanId } from '../letter.ts';
import type { Office } from '../office.ts';
import type { PlanHead } from '../records/plan.ts';
import type { JournalRows, VersionedHead } from '../store/plans.ts';
import { StoreConflict } from '../store/table.ts';

/** Another process has taken over the run: whoever gets this must stop and write nothing more. */
export class TakenOver extends Error {
  override readonly name = 'TakenOver';
}

/** The plan's head. Throws `DLO_PLAN_UNKNOWN`. */
export async function loadPlan(office: Office, id: PlanId): Promise<VersionedHead> {
  const found = await office.store.plans.head(id);
  if (found === undefined) throw unknownPlan(id);
  return found;
}

/** What a call about a plan that is not there is answered with. */
export function unknownPlan(id: PlanId): OfficeError {
  return new OfficeError('DLO_PLAN_UNKNOWN', `there is no plan ${id}`);
}

/** A fresh name for one write. */
export function newWriteId(office: Office): string {
  return Buffer.from(office.random(12)).toString('base64url');
}

/**
 * A plan's journal as one writer sees it. Every write goes through {@link commit}, is conditional on the version of the
 * head that was read, and so on `runner` still being this one.
 */
export class Journal {
  readonly #office: Office;
  #current: VersionedHead;
  /** Writes follow one another: each is conditional on the version that the one before it made. */
  #last: Promise<void> = Promise.resolve();

  constructor(office: Office, current: VersionedHead) {
    this.#office = office;
    this.#current = current;
  }

  /** The head as last read or written. */
  get head(): PlanHead {
    return this.#current.head;
  }

  /**
   * Writes `change(head)` and the rows beside it. When an operator's request came in between, the head is read again and
   * the change is made on top of it. Throws {@link TakenOver} when the run has passed to another process.
   */
  commit(change: (head: PlanHead) => PlanHead, rows: JournalRows = {}): Promise<void> {
    const written = this.#last.then(() => this.#write(change, rows));
    this.#last = written.catch(() => {}); // its own caller is told
    return written;
  }

  async #write(change: (head: PlanHead) => PlanHead, rows: JournalRows): Promise<void> {
    const runner = this.#current.head.runner;
    const writeId = newWriteId(this.#office);
    for (;;) {
      const next = change(this.#current.head);
      try {
        const etag = await this.#office.store.plans.commit(next, this.#current.etag, writeId, rows);
        this.#current = { head: next, etag, writeId };
        return;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
      }
      const stored = await loadPlan(this.#office, this.#current.head.id);
      this.#current = stored;
      if (stored.writeId === writeId) return; // it was written, only the answer was lost
      if (stored.head.runner !== runner) throw new TakenOver(`plan ${stored.head.id} is run by somebody else now`);
    }
  }

  /** Reads the head again. Throws {@link TakenOver}. */
  async refresh(): Promise<PlanHead> {
    await this.#last;
    const runner = this.#current.head.runner;
    this.#current = await loadPlan(this.#office, this.#current.head.id);
    if (this.#current.head.runner !== runner) throw new TakenOver(`plan ${this.head.id} is run by somebody else now`);
    return this.head;
  }
}
