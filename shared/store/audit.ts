/**
 * Table `audit`: append-only. An entry is written before the act (`open`) and closed after it; one that stays open tells
 * that the office stopped in between. PartitionKey month (UTC), RowKey newest first.
 */
import { z } from 'zod';
import type { Fingerprint } from '../classify/fingerprint.ts';
import type { PlanId, SequenceNumber, SourceKey } from '../letter.ts';
import { parsePlanId } from '../letter.ts';
import type { StorageConnection } from './connection.ts';
import { descendingKey, fingerprintCell, readable, time } from './rows.ts';
import { isRefused, MAX_STEPS, odata, type RowWrite, Table } from './table.ts';

/** What is audited. */
export const OPERATIONS = [
  'plan.create',
  'plan.run',
  'plan.pause',
  'plan.resume',
  'plan.cancel',
  'plan.finish',
  'plan.halt',
  'chunk.replay',
  'chunk.discard',
  'body.read',
  'source.reclassify',
  'stop',
  'group.triage',
  'expire',
  'letters.reopen',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** One entry. Times are ms since 1970. */
export interface AuditEntry {
  readonly key: string;
  readonly at: number;
  readonly operator: string;
  readonly operation: Operation;
  readonly source: SourceKey | undefined;
  readonly sourceName: string;
  readonly planId: PlanId | undefined;
  /** Fingerprint of the group concerned. */
  readonly group: Fingerprint | undefined;
  /** Sequence numbers concerned; as many as fit. */
  readonly letters: readonly string[];
  readonly letterCount: number;
  readonly outcome: string;
  readonly closedAt: number | undefined;
}

/** What the caller knows before the act. */
export interface AuditOpening {
  readonly at: number;
  readonly operator: string;
  readonly operation: Operation;
  readonly source?: { readonly key: SourceKey; readonly name: string };
  readonly planId?: PlanId;
  readonly group?: Fingerprint;
  readonly letters?: readonly SequenceNumber[];
}

/** The audit table. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class AuditStore {
  readonly #table: Table;
  readonly #newId: () => string;

  constructor(connection: StorageConnection, newId: () => string) {
    this.#table = new Table(connection, 'audit');
    this.#newId = newId;
  }

  /** Writes an open entry. Returns its key for {@link close}. */
  open(entry: AuditOpening): Promise<string> {
    return this.#add(entry, { outcome: 'open' });
  }

  async #add(entry: AuditOpening, end: { readonly outcome: string; readonly closedAt?: Date }): Promise<string> {
    const partitionKey = month(entry.at);
    const rowKey = `${descendingKey(entry.at)}-${this.#newId()}`;
    const letters = entry.letters ?? [];
    // Its key is new, so this adds a row; an insert that is tried again after a lost answer would find its own.
    await this.#put({
      partitionKey,
      rowKey,
      at: new Date(entry.at),
      operator: entry.operator.slice(0, 200),
      operation: entry.operation,
      source: entry.source?.key,
      sourceName: entry.source?.name ?? '',
      planId: entry.planId,
      group: entry.group,
      letters: letters.slice(0, 500).join(','),
      letterCount: letters.length,
      ...end,
    });
    return `${partitionKey}/${rowKey}`;
  }

  /** Closes an entry with its outcome, at most 1,000 characters. */
  async close(key: string, outcome: string, at: number): Promise<void> {
    const [partitionKey = '', rowKey = ''] = key.split('/');
    await this.#put({ partitionKey, rowKey, outcome: cut(outcome), closedAt: new Date(at) });
  }

  /** An outcome may quote strangers: where the store will never take it, the entry is written without it. */
  async #put(row: RowWrite): Promise<void> {
    try {
      await this.#table.merge(row);
    } catch (error) {
      if (!isRefused(error) || row.closedAt === undefined) throw error;
      await this.#table.merge({ ...row, outcome: 'closed; the store did not take the words of its outcome' });
    }
  }

  /** An entry for something that needs no second half. */
  async note(entry: AuditOpening, outcome: string): Promise<void> {
    await this.#add(entry, { outcome: cut(outcome), closedAt: new Date(entry.at) });
  }

  /**
   * Entries newest first, from `before` back at most `months` months; of one source or plan if given. In place of an entry
   * that cannot be read stands `undefined`: it hides none of the others, and is not hidden itself.
   */
  async *list(options: {
    before: number;
    months: number;
    source?: SourceKey;
    planId?: PlanId;
  }): AsyncGenerator<AuditEntry | undefined> {
    const day = new Date(options.before);
    for (let back = 0; back < options.months; back++) {
      const partition = month(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() - back, 1));
      const parts = [odata`PartitionKey eq ${partition} and RowKey gt ${descendingKey(options.before)}`];
      if (options.source !== undefined) parts.push(odata`source eq ${options.source}`);
      if (options.planId !== undefined) parts.push(odata`planId eq ${options.planId}`);
      for await (const row of this.#table.query(parts.join(' and '), { pageSize: 200 })) {
        yield readable(entrySchema, row);
      }
    }
  }

  /** Removes entries of a month that has passed entirely before `before`. Returns how many. */
  async forget(before: number, monthsBack: number): Promise<number> {
    const day = new Date(before);
    let removed = 0;
    for (let back = 1; back <= monthsBack; back++) {
      const partition = month(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() - back, 1));
      const keys: string[] = [];
      const select = ['PartitionKey', 'RowKey'];
      for await (const row of this.#table.query(odata`PartitionKey eq ${partition}`, { select })) keys.push(row.rowKey);
      for (let i = 0; i < keys.length; i += MAX_STEPS) {
        const part = keys.slice(i, i + MAX_STEPS);
        await this.#table.transact(part.map((rowKey) => ({ kind: 'delete', partitionKey: partition, rowKey })));
      }
      removed += keys.length;
    }
    return removed;
  }
}

function cut(outcome: string): string {
  return outcome.slice(0, 1000);
}

function month(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}

const entrySchema = z
  .object({
    partitionKey: z.string(),
    rowKey: z.string(),
    at: time,
    operator: z.string(),
    operation: z.enum(OPERATIONS),
    source: z
      .string()
      .transform((key) => key as SourceKey)
      .optional(),
    sourceName: z.string(),
    planId: z
      .string()
      .transform((text) => parsePlanId(text))
      .optional(),
    group: fingerprintCell.optional(),
    letters: z.string(),
    letterCount: z.number(),
    outcome: z.string(),
    closedAt: time.optional(),
  })
  .transform(
    ({ partitionKey, rowKey, letters, ...row }): AuditEntry => ({
      ...row,
      key: `${partitionKey}/${rowKey}`,
      source: row.source,
      planId: row.planId,
      group: row.group,
      closedAt: row.closedAt,
      letters: letters === '' ? [] : letters.split(','),
    }),
  );
