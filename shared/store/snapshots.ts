/** Table `snapshots`: how many letters a source held, minute by minute. PartitionKey source key, RowKey newest first. */
import { z } from 'zod';
import type { SourceKey } from '../letter.ts';
import type { StorageConnection } from './connection.ts';
import { checked, descendingKey, json, time } from './rows.ts';
import { MAX_STEPS, odata, Table } from './table.ts';

/** Counts of a source at one moment. Times are ms since 1970. */
export interface Snapshot {
  readonly at: number;
  readonly open: number;
  readonly byCategory: Readonly<Record<string, number>>;
  /** When the oldest open letter was first seen. */
  readonly oldest: number | undefined;
}

const rowSchema = z
  .object({ at: time, open: z.number(), byCategory: json(z.record(z.string(), z.number())), oldest: time.optional() })
  .transform((row): Snapshot => ({ ...row, oldest: row.oldest }));

/** The snapshots table. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class SnapshotStore {
  readonly #table: Table;

  constructor(connection: StorageConnection) {
    this.#table = new Table(connection, 'snapshots');
  }

  async add(source: SourceKey, snapshot: Snapshot): Promise<void> {
    await this.#table.merge({
      partitionKey: source,
      rowKey: descendingKey(snapshot.at),
      at: new Date(snapshot.at),
      open: snapshot.open,
      byCategory: JSON.stringify(snapshot.byCategory),
      oldest: snapshot.oldest === undefined ? undefined : new Date(snapshot.oldest),
    });
  }

  /** The newest snapshot taken at or before `at`, or `undefined`. */
  async at(source: SourceKey, at: number): Promise<Snapshot | undefined> {
    const filter = odata`PartitionKey eq ${source} and RowKey ge ${descendingKey(at)}`;
    for await (const row of this.#table.query(filter, { pageSize: 1 })) return checked(rowSchema, row, 'snapshots');
    return undefined;
  }

  async isEmpty(source: SourceKey): Promise<boolean> {
    return !(await this.#table.hasAny(odata`PartitionKey eq ${source}`));
  }

  /** Removes snapshots older than `before`, at most `max`. */
  async forget(source: SourceKey, before: number, max: number): Promise<number> {
    const keys: string[] = [];
    const filter = odata`PartitionKey eq ${source} and RowKey gt ${descendingKey(before)}`;
    for await (const row of this.#table.query(filter, { select: ['PartitionKey', 'RowKey'] })) {
      keys.push(row.rowKey);
      if (keys.length >= max) break;
    }
    for (let i = 0; i < keys.length; i += MAX_STEPS) {
      const part = keys.slice(i, i + MAX_STEPS);
      await this.#table.transact(part.map((rowKey) => ({ kind: 'delete', partitionKey: source, rowKey })));
    }
    return keys.length;
  }
}
