/**
 * Table `sends`: when an id was last sent to a target that detects duplicates, and by which plan for which letter. PartitionKey the
 * target's key (as a source's: namespace and entity), RowKey a digest of the message id, which may hold anything.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type PlanId, parsePlanId, parseSequenceNumber, type SequenceNumber, type SourceKey } from '../letter.ts';
import { inParallel } from '../parallel.ts';
import type { StorageConnection } from './connection.ts';
import { checked, time } from './rows.ts';
import { odata, type RowWrite, type Step, StoreConflict, type StoredRow, Table } from './table.ts';

/** One send of a message id: the last that is known. */
export interface Send {
  readonly id: IdDigest;
  /** ms since 1970; 0 when it was refused. */
  readonly at: number;
  readonly planId: PlanId | undefined;
  readonly number: SequenceNumber | undefined;
}

/** A send and the version of its row. */
export interface StoredSend extends Send {
  readonly etag: string;
}

/** A message id as this table knows it. */
export type IdDigest = string & { readonly idDigest?: never };

/** The digest of a message id. */
export function idDigest(messageId: string): IdDigest {
  return createHash('sha256').update(messageId).digest('base64url');
}

/** The table of sends. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class SendStore {
  readonly #table: Table;

  constructor(connection: StorageConnection) {
    this.#table = new Table(connection, 'sends');
  }

  /** When ids were last sent to `target` after `after` (ms since 1970). */
  async since(target: SourceKey, after: number): Promise<Map<IdDigest, number>> {
    const sent = new Map<IdDigest, number>();
    const filter = odata`PartitionKey eq ${target} and sentAt gt ${new Date(Math.max(after, 0))}`;
    for await (const row of this.#table.query(filter)) {
      const { id, at } = toSend(row);
      sent.set(id, at);
    }
    return sent;
  }

  /** The last sends of these ids, where one is known. */
  async get(target: SourceKey, ids: readonly IdDigest[]): Promise<Map<IdDigest, StoredSend>> {
    const rows = await inParallel([...new Set(ids)], (id) => this.#table.get(target, id));
    return new Map(rows.flatMap((row) => (row === undefined ? [] : [[row.rowKey, toSend(row)] as const])));
  }

  /**
   * Notes sends that are about to be made, at most a hundred of different ids, each only if what was known of its id (`etag`;
   * none: nothing) is still all: of two who want to send an id at the same moment one is refused. Throws {@link StoreConflict};
   * then none is noted. Gives the new versions in order.
   */
  async claim(target: SourceKey, sends: readonly (Send & { readonly etag: string | undefined })[]): Promise<string[]> {
    return this.#table.transact(
      sends.map(({ etag, ...send }): Step => {
        const row = toRow(target, send);
        return etag === undefined ? { kind: 'insert', row } : { kind: 'merge', row, etag };
      }),
    );
  }

  /** Takes claims back: nothing was sent. What somebody has changed since stays. */
  async withdraw(
    target: SourceKey,
    claims: readonly { readonly id: IdDigest; readonly etag: string }[],
  ): Promise<void> {
    const steps = claims.map(({ id, etag }): Step => {
      return { kind: 'merge', row: { partitionKey: target, rowKey: id, sentAt: new Date(0) }, etag };
    });
    try {
      if (steps.length > 0) await this.#table.transact(steps);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }

  /** Removes what was sent before `before` (ms since 1970), at most `max` rows; one that was sent again meanwhile stays. */
  async forget(before: number, max: number): Promise<void> {
    const old: StoredRow[] = [];
    const filter = odata`sentAt lt ${new Date(before)}`;
    for await (const row of this.#table.query(filter)) {
      if (old.push(row) >= max) break;
    }
    await inParallel(old, ({ partitionKey, rowKey, etag }) => this.#table.remove(partitionKey, rowKey, etag));
  }
}

const sendSchema = z.object({
  rowKey: z.string(),
  etag: z.string(),
  sentAt: time,
  planId: z.string().transform((text) => parsePlanId(text)),
  number: z.string().transform((text) => parseSequenceNumber(text)),
});

function toSend(row: StoredRow): StoredSend {
  const { rowKey, sentAt, ...plain } = checked(sendSchema, row, 'sends');
  return { ...plain, id: rowKey, at: sentAt };
}

function toRow(target: SourceKey, { id, at, planId, number }: Send): RowWrite {
  return { partitionKey: target, rowKey: id, sentAt: new Date(at), planId: planId ?? '', number: number ?? '' };
}
