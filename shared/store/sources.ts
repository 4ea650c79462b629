/**
 * Table `sources`: one row a source (who occupies it, the lease, the last pass), and an index of its plans.
 * PartitionKey source key; RowKey `source`, or `plan:<newest first>`.
 */
import { z } from 'zod';
import type { Counted } from '../counter.ts';
import { OfficeError } from '../errors.ts';
import { type PlanId, parsePlanId, planCreatedAt, type SourceKey } from '../letter.ts';
import type { StorageConnection } from './connection.ts';
import { checked, descendingKey, readable, time } from './rows.ts';
import { type Cell, isRefused, odata, StoreConflict, type StoredRow, Table } from './table.ts';

/** Who may change letters of a source: a run by its plan, or the retention cleanup. */
export type Occupant = PlanId | 'expire';

/** The right to change letters of one source until `until` (ms since 1970). */
export interface Lease {
  readonly source: SourceKey;
  readonly occupant: Occupant;
  /** Names this holding of the lease, not the holder: a second process for the same run gets another token. */
  readonly token: string;
  readonly until: number;
}

/** What the row of a source tells. */
export interface SourceRow {
  readonly key: SourceKey;
  readonly name: string;
  /** Left the catalog, but still has letters or records here. */
  readonly retired: boolean;
  /** The catalog entry as last seen, for a source that left. JSON. */
  readonly entry: string;
  readonly occupant: Occupant | undefined;
  readonly occupiedSince: number | undefined;
  readonly leaseToken: string;
  readonly leaseUntil: number;
  readonly passedAt: number | undefined;
  readonly passError: string;
  /** The broker's count beside the office's, as of the last pass that completed. */
  readonly counted: Counted | undefined;
  readonly etag: string;
}

const SOURCE = 'source';
const NEVER = new Date(0);

const rowSchema = z
  .object({
    partitionKey: z.string().transform((key) => key as SourceKey),
    etag: z.string(),
    name: z.string().default(''),
    retired: z.boolean().default(false),
    entry: z.string().default(''),
    occupant: z.string().default(''),
    occupiedSince: time.optional(),
    leaseToken: z.string().default(''),
    leaseUntil: time.default(0),
    passedAt: time.optional(),
    passError: z.string().default(''),
    /** Absent in rows written before the broker's counter was read. A row is not lost for what is only shown. */
    countedAt: time.optional().catch(undefined),
    counter: z.number().min(0).optional().catch(undefined),
    counterUnread: z.string().default('').catch(''),
    countedOpen: z.number().default(0).catch(0),
    differsSince: time
      .optional()
      .catch(undefined)
      .transform((at) => at || undefined),
  })
  .transform(
    ({
      partitionKey,
      occupant,
      countedAt: at,
      counter: count,
      counterUnread: unread,
      countedOpen: open,
      differsSince,
      ...row
    }): SourceRow => ({
      ...row,
      key: partitionKey,
      occupiedSince: row.occupiedSince,
      passedAt: row.passedAt,
      occupant: occupant === 'expire' ? occupant : parsePlanId(occupant),
      counted: at === undefined ? undefined : { at, count, unread, open, differsSince },
    }),
  );

/** The sources table. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class SourceStore {
  readonly #table: Table;
  readonly #newToken: () => string;

  constructor(connection: StorageConnection, newToken: () => string) {
    this.#table = new Table(connection, 'sources');
    this.#newToken = newToken;
  }

  async get(source: SourceKey): Promise<SourceRow | undefined> {
    const row = await this.#table.get(source, SOURCE);
    return row && read(row);
  }

  /**
   * Every source that was ever managed and is not empty yet. Rows that cannot be read are passed over, so that the others
   * have their turn; `onUnreadable` is told their keys.
   */
  async all(onUnreadable: (key: string) => void = () => {}): Promise<SourceRow[]> {
    const rows: SourceRow[] = [];
    for await (const row of this.#table.query(odata`RowKey eq ${SOURCE}`)) {
      const source = readable(rowSchema, row);
      if (source === undefined) onUnreadable(row.partitionKey);
      else rows.push(source);
    }
    return rows;
  }

  /**
   * Makes the row of a source good where it cannot be read. Who has the lease is not known then: it is waited for, `ms` from
   * `now`. `occupant` has the source if the row does not say. Returns the columns that could not be read.
   */
  async repair(source: SourceKey, occupant: Occupant | undefined, now: number, ms: number): Promise<string[]> {
    const row = await this.#table.get(source, SOURCE);
    const parsed = row && rowSchema.safeParse(row);
    if (row === undefined || parsed === undefined || parsed.success) return [];
    const columns = [...new Set(parsed.error.issues.map(({ path }) => String(path[0])))];
    const good: Record<string, Cell> = {
      name: '',
      retired: false,
      entry: '',
      occupant: occupant ?? '',
      occupiedSince: new Date(now),
      leaseToken: '',
      leaseUntil: new Date(now + ms),
      passedAt: NEVER,
      passError: '',
    };
    const cells = Object.fromEntries(columns.map((column) => [column, good[column]]));
    try {
      await this.#table.merge({ partitionKey: source, rowKey: SOURCE, ...cells }, row.etag);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error; // somebody wrote it meanwhile: the next time
    }
    return columns;
  }

  /** Notes that a source has left the catalog; it stays until it is empty. */
  async retire(source: SourceKey): Promise<void> {
    await this.#table.merge({ partitionKey: source, rowKey: SOURCE, retired: true });
  }

  /** Forgets a retired source. */
  async forget(source: SourceKey): Promise<void> {
    await this.#table.remove(source, SOURCE);
  }

  /** Notes a collecting pass over a source of the catalog and how it ended (`error` empty: well), and what was counted in it. */
  async passed(
    source: { key: SourceKey; name: string; declared: string },
    at: number,
    error: string,
    counted?: Counted,
  ): Promise<void> {
    const row = {
      partitionKey: source.key,
      rowKey: SOURCE,
      name: source.name,
      entry: source.declared.slice(0, 30_000),
      retired: false,
      passError: error.slice(0, 1000),
      ...(error === '' && { passedAt: new Date(at) }),
      ...(counted !== undefined && countedCells(counted)),
    };
    try {
      await this.#table.merge(row);
    } catch (refused) {
      if (!isRefused(refused)) throw refused;
      // What failed may quote strangers.
      await this.#table.merge({ ...row, passError: error && 'it failed; the store does not take the words of why' });
    }
  }

  /**
   * Takes the source for `occupant` and the lease for `ms` from `now`. Throws `DLO_SOURCE_BUSY`, telling who has it, when
   * another occupant is there or this one's lease is held by another process.
   *
   * A run stays the occupant between its slices, without a lease; a cleanup that crashed does not outlive its lease.
   */
  async acquire(source: SourceKey, occupant: Occupant, now: number, ms: number): Promise<Lease> {
    const lease: Lease = { source, occupant, token: this.#newToken(), until: now + ms };
    for (;;) {
      const row = await this.#table.get(source, SOURCE);
      const current = row && read(row);
      // The write before this one may have gone through though its answer was lost.
      if (current?.leaseToken === lease.token) return lease;
      if (current !== undefined) refuseIfHeld(current, occupant, now);
      const since = current?.occupant === occupant && current.occupiedSince ? current.occupiedSince : now;
      const cells = {
        partitionKey: source,
        rowKey: SOURCE,
        occupant,
        occupiedSince: new Date(since),
        leaseToken: lease.token,
        leaseUntil: new Date(lease.until),
      };
      try {
        if (row === undefined) await this.#table.insert(cells);
        else await this.#table.merge(cells, row.etag);
        return lease;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error; // somebody was faster: look again
      }
    }
  }

  /** Prolongs a lease. Throws `DLO_SOURCE_BUSY` when it has passed to somebody else. */
  async renew(lease: Lease, now: number, ms: number): Promise<Lease> {
    const renewed = { ...lease, until: now + ms };
    await this.#changeOwn(lease, { leaseUntil: new Date(renewed.until) });
    return renewed;
  }

  /** Gives the lease back; with `leave`, the source too. Does nothing when it has passed to somebody else. */
  async release(lease: Lease, leave: boolean): Promise<void> {
    try {
      await this.#changeOwn(lease, { leaseUntil: NEVER, leaseToken: '', ...(leave && { occupant: '' }) });
    } catch (error) {
      if (!(error instanceof OfficeError) || error.code !== 'DLO_SOURCE_BUSY') throw error;
    }
  }

  /** Frees a source that `occupant` still occupies without a lease. */
  async vacate(source: SourceKey, occupant: Occupant, now: number): Promise<void> {
    const row = await this.#table.get(source, SOURCE);
    const current = row && read(row);
    if (row === undefined || current?.occupant !== occupant || current.leaseUntil > now) return;
    try {
      await this.#table.merge({ partitionKey: source, rowKey: SOURCE, occupant: '', leaseToken: '' }, row.etag);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error; // somebody took it meanwhile: then it is theirs
    }
  }

  async #changeOwn(lease: Lease, cells: Record<string, Date | string>): Promise<void> {
    for (;;) {
      const row = await this.#table.get(lease.source, SOURCE);
      const current = row && read(row);
      if (row === undefined || current?.leaseToken !== lease.token) throw busy(lease.source, current);
      try {
        await this.#table.merge({ partitionKey: lease.source, rowKey: SOURCE, ...cells }, row.etag);
        return;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error; // another column changed: look again
      }
    }
  }

  /** Adds a plan to the index of its source. */
  async indexPlan(source: SourceKey, planId: PlanId): Promise<void> {
    await this.#table.merge({ partitionKey: source, rowKey: planKey(planId), planId });
  }

  /** Takes a plan out of the index. */
  async unindexPlan(source: SourceKey, planId: PlanId): Promise<void> {
    await this.#table.remove(source, planKey(planId));
  }

  /** Whether a source has plans. */
  async hasPlans(source: SourceKey): Promise<boolean> {
    return this.#table.hasAny(odata`PartitionKey eq ${source} and RowKey ge 'plan:' and RowKey lt 'plan;'`);
  }

  /** Ids of a source's plans, newest first. */
  async *plans(source: SourceKey): AsyncGenerator<PlanId> {
    const filter = odata`PartitionKey eq ${source} and RowKey ge 'plan:' and RowKey lt 'plan;'`;
    for await (const row of this.#table.query(filter, { pageSize: 100 })) {
      const planId = typeof row.planId === 'string' ? parsePlanId(row.planId) : undefined;
      if (planId !== undefined) yield planId;
    }
  }
}

/** A merge cannot take a number or time away, so a missing one is written as what is never one. */
function countedCells({ at, count, unread, open, differsSince }: Counted) {
  return {
    countedAt: new Date(at),
    counter: count ?? NO_COUNT,
    counterUnread: unread.slice(0, 1000),
    countedOpen: open,
    differsSince: differsSince === undefined ? NEVER : new Date(differsSince),
  };
}
const NO_COUNT = -1;

function planKey(planId: PlanId): string {
  return `plan:${descendingKey(planCreatedAt(planId))}:${planId}`;
}

function read(row: StoredRow): SourceRow {
  return checked(rowSchema, row, 'sources');
}

function refuseIfHeld(row: SourceRow, occupant: Occupant, now: number): void {
  const leased = row.leaseUntil > now;
  const sameRun = row.occupant === occupant && occupant !== 'expire';
  if (row.occupant === undefined || (sameRun && !leased)) return;
  if (row.occupant === 'expire' && !leased) return;
  throw busy(row.key, row);
}

function busy(source: SourceKey, row: SourceRow | undefined): OfficeError {
  const holder = row?.occupant === 'expire' ? 'the retention cleanup' : `the run of plan ${row?.occupant ?? 'unknown'}`;
  return new OfficeError('DLO_SOURCE_BUSY', `the source is held by ${holder}`, {
    data: {
      source,
      holder: row?.occupant ?? null,
      since: row?.occupiedSince === undefined ? null : new Date(row.occupiedSince).toISOString(),
      leaseUntil: row === undefined ? null : new Date(row.leaseUntil).toISOString(),
    },
  });
}
