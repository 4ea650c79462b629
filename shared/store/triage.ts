/**
 * Triage, in the table `groups`: PartitionKey `triage` (no source's key, those have a `|`), RowKey fingerprint. Kept apart from the
 * groups of the sources, so that it outlives their letters and every recount.
 */
import { z } from 'zod';
import { type Fingerprint, parseFingerprint, VERSION } from '../classify/fingerprint.ts';
import { TRIAGE_STATES, type Triage } from '../records/triage.ts';
import type { StorageConnection } from './connection.ts';
import { GROUPS_TABLE } from './groups.ts';
import { readable, time } from './rows.ts';
import { odata, type RowWrite, StoreConflict, Table } from './table.ts';

const TRIAGE = 'triage';
/** A column once written cannot be emptied by a merge. */
const NEVER = new Date(0);

/** How long it is believed which causes of an earlier version have triage, ms. */
const FORMER_FOR = 60_000;

/** Triage with the version in which it was read. */
export interface StoredTriage {
  readonly triage: Triage;
  readonly etag: string;
}

/** The triage rows. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class TriageStore {
  readonly #table: Table;
  #former: { readonly at: number; readonly names: ReadonlySet<string> } = {
    at: Number.NEGATIVE_INFINITY,
    names: new Set(),
  };

  constructor(connection: StorageConnection) {
    this.#table = new Table(connection, GROUPS_TABLE);
  }

  async get(fingerprint: Fingerprint): Promise<StoredTriage | undefined> {
    const row = await this.#table.get(TRIAGE, fingerprint);
    const triage = row && readable(rowSchema, row);
    return row && triage && { triage, etag: row.etag };
  }

  /** All there is, by fingerprint. It is made by hand, so it is little. */
  async all(): Promise<Map<Fingerprint, Triage>> {
    const all = new Map<Fingerprint, Triage>();
    for await (const row of this.#table.query(odata`PartitionKey eq ${TRIAGE}`)) {
      const triage = readable(rowSchema, row);
      if (triage !== undefined) all.set(triage.fingerprint, triage);
    }
    return all;
  }

  /**
   * The first of some causes of an earlier version of which something was said, or `undefined`. Such causes become fewer and no more,
   * so that which there are is read now and then only; `now` is ms since 1970.
   */
  async former(fingerprints: readonly Fingerprint[], now: number): Promise<StoredTriage | undefined> {
    if (now - this.#former.at >= FORMER_FOR) {
      const names = new Set<string>();
      const filter = odata`PartitionKey eq ${TRIAGE} and RowKey lt ${VERSION}`;
      for await (const { rowKey } of this.#table.query(filter, { select: ['PartitionKey', 'RowKey'] }))
        names.add(rowKey);
      this.#former = { at: now, names };
    }
    for (const fingerprint of fingerprints.filter((one) => this.#former.names.has(one))) {
      const stored = await this.get(fingerprint);
      if (stored !== undefined) return stored;
    }
    return undefined;
  }

  /** Writes triage of a cause of which nothing was said, unless somebody says something meanwhile. */
  async take(triage: Triage): Promise<void> {
    try {
      await this.put(triage, undefined);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }

  /** Writes triage if it is still the version that was read (`undefined`: if there is none). Throws {@link StoreConflict}. */
  async put(triage: Triage, etag: string | undefined): Promise<void> {
    if (etag === undefined) await this.#table.insert(toRow(triage));
    else await this.#table.merge(toRow(triage), etag);
  }

  /** Notes that a resolved cause is back, unless somebody has changed its triage meanwhile. */
  async markRegressed({ triage, etag }: StoredTriage, at: number): Promise<void> {
    const row = { partitionKey: TRIAGE, rowKey: triage.fingerprint, regressedAt: new Date(at) };
    try {
      await this.#table.merge(row, etag);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }

  async remove(fingerprint: Fingerprint): Promise<void> {
    await this.#table.remove(TRIAGE, fingerprint);
  }
}

function toRow({ fingerprint, changedAt, resolvedAt, regressedAt, ...texts }: Triage): RowWrite {
  return {
    ...texts,
    partitionKey: TRIAGE,
    rowKey: fingerprint,
    changedAt: new Date(changedAt),
    resolvedAt: resolvedAt === undefined ? NEVER : new Date(resolvedAt),
    regressedAt: regressedAt === undefined ? NEVER : new Date(regressedAt),
  };
}

const text = z.string().catch('');
const moment = time.transform((at) => (at === 0 ? undefined : at)).catch(undefined);
/** Nothing but the key has to be right: whatever is wrong with a row, a hold must not be lifted by it. */
const rowSchema = z
  .object({
    rowKey: z.string().transform((key, context): Fingerprint => {
      const fingerprint = parseFingerprint(key);
      if (fingerprint !== undefined) return fingerprint;
      context.addIssue({ code: 'custom', message: 'is not a fingerprint' });
      return z.NEVER;
    }),
    cause: text,
    state: z.enum(TRIAGE_STATES).catch('on-hold'),
    owner: text,
    note: text,
    bug: text,
    changedAt: time.catch(0),
    changedBy: text,
    resolvedAt: moment,
    regressedAt: moment,
  })
  .transform(({ rowKey, ...row }): Triage => ({ ...row, fingerprint: rowKey }));
