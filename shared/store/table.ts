/** One Azure table, seen as rows with keys. Speaks the table SDK's words, so that nobody else must; every failure leaves it translated. */
import type { TableClient, TableEntity, TransactionAction } from '@azure/data-tables';
import { errorText, isMistake, isOfficeError, OfficeError } from '../errors.ts';
import type { StorageConnection } from './connection.ts';

export { odata } from './odata.ts';

/** A row as stored: its keys, its version, and columns that the reader still has to check. */
export interface StoredRow {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly etag: string;
  readonly [column: string]: unknown;
}

/** What a cell can hold. `undefined` leaves a column as it is. */
export type Cell = string | number | boolean | Date | undefined;

/** Columns to write under a key. */
export type RowWrite = { readonly partitionKey: string; readonly rowKey: string } & { readonly [column: string]: Cell };

/** One step of a transaction. `replace` drops every column not given. `merge` with an etag fails when the row has changed; without one it creates or merges. */
export type Step =
  | { readonly kind: 'insert'; readonly row: RowWrite }
  | { readonly kind: 'replace'; readonly row: RowWrite }
  | { readonly kind: 'merge'; readonly row: RowWrite; readonly etag?: string | undefined }
  | { readonly kind: 'delete'; readonly partitionKey: string; readonly rowKey: string };

/** A conditional write lost: the row exists already, is gone, or has changed since it was read. Nothing was written. */
export class StoreConflict extends Error {
  override readonly name = 'StoreConflict';
}

/**
 * Whether the store will never take a write as it is: something in it is too large or not in its form (400 of any kind, 413;
 * Microsoft, "Table storage error codes"). Everything else may go well the next time.
 */
export function isRefused(error: unknown): error is OfficeError {
  return isOfficeError(error, 'DLO_ROW_REFUSED');
}

/** Largest number of steps in one transaction (Azure Tables). */
export const MAX_STEPS = 100;

/** One table; created when first written to. Writes throw `DLO_ROW_REFUSED` for what the store will never take, see {@link isRefused}. */
export class Table {
  readonly #open: () => Promise<TableClient>;
  #client: Promise<TableClient> | undefined;

  constructor(connection: StorageConnection, name: string) {
    this.#open = async () => {
      const { openTable } = await import('./tableClient.ts');
      const client = await openTable(connection, name);
      await client.createTable();
      return client;
    };
  }

  /** The row, or `undefined`. Throws `DLO_STORE_UNAVAILABLE`. */
  async get(partitionKey: string, rowKey: string): Promise<StoredRow | undefined> {
    try {
      return (await (await this.#ready()).getEntity(partitionKey, rowKey)) as unknown as StoredRow;
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw translated(error);
    }
  }

  /** Adds a row. Throws {@link StoreConflict} when there is one. */
  async insert(row: RowWrite): Promise<void> {
    await this.#do((client) => client.createEntity(row as TableEntity));
  }

  /** Writes the given columns, leaving others. With `etag`, only if the row is still that version. Returns the new version. */
  async merge(row: RowWrite, etag?: string): Promise<string> {
    const answer = await this.#do((client) =>
      etag === undefined
        ? client.upsertEntity(row as TableEntity, 'Merge')
        : client.updateEntity(row as TableEntity, 'Merge', { etag }),
    );
    return answer.etag ?? '';
  }

  /** Removes the row if it is there; with `etag`, only if it is still that version. */
  async remove(partitionKey: string, rowKey: string, etag?: string): Promise<void> {
    try {
      await this.#do((client) => client.deleteEntity(partitionKey, rowKey, etag === undefined ? {} : { etag }));
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }

  /** All steps or none, in one partition, at most {@link MAX_STEPS}. Returns the new version of each row, in order. */
  async transact(steps: readonly Step[]): Promise<string[]> {
    const answer = await this.#do((client) => client.submitTransaction(steps.map(toAction)));
    return answer.subResponses.map((part) => part.etag ?? '');
  }

  /** Rows that match an OData filter, in key order, page by page as they are read. */
  async *query(filter: string, options: { select?: string[]; pageSize?: number } = {}): AsyncGenerator<StoredRow> {
    let continuation: string | undefined;
    do {
      const page = await this.page(filter, { ...options, continuation });
      yield* page.rows;
      continuation = page.continuation;
    } while (continuation !== undefined);
  }

  /** Whether any row matches. */
  async hasAny(filter: string): Promise<boolean> {
    for await (const _row of this.query(filter, { select: ['PartitionKey', 'RowKey'], pageSize: 1 })) return true;
    return false;
  }

  /** One page. A page may be empty and still have a continuation (Azure Tables). */
  async page(
    filter: string,
    options: { select?: string[]; pageSize?: number; continuation?: string | undefined },
  ): Promise<{ rows: StoredRow[]; continuation: string | undefined }> {
    try {
      const client = await this.#ready();
      const queryOptions = { filter, ...(options.select && { select: options.select }) };
      const pages = client.listEntities({ queryOptions }).byPage({
        maxPageSize: options.pageSize ?? 1000,
        ...(options.continuation !== undefined && { continuationToken: options.continuation }),
      });
      const { value } = await pages.next();
      const rows = (value ?? []) as unknown as StoredRow[] & { continuationToken?: string };
      return { rows, continuation: rows.continuationToken };
    } catch (error) {
      throw translated(error);
    }
  }

  async #do<Result>(act: (client: TableClient) => Promise<Result>): Promise<Result> {
    let client: TableClient;
    try {
      client = await this.#ready();
    } catch (error) {
      throw translated(error);
    }
    try {
      return await act(client);
    } catch (error) {
      const status = statusOf(error);
      if (status !== 400 && status !== 413) throw translated(error);
      throw new OfficeError('DLO_ROW_REFUSED', `the table store refuses: ${errorText(error, 300)}`, { cause: error });
    }
  }

  #ready(): Promise<TableClient> {
    this.#client ??= this.#open().catch((error: unknown) => {
      this.#client = undefined; // the next caller tries again
      throw error;
    });
    return this.#client;
  }
}

function toAction(step: Step): TransactionAction {
  if (step.kind === 'delete') return ['delete', { partitionKey: step.partitionKey, rowKey: step.rowKey }];
  const row = step.row as TableEntity;
  if (step.kind === 'insert') return ['create', row];
  if (step.kind === 'replace') return ['upsert', row, 'Replace'];
  return step.etag === undefined ? ['upsert', row, 'Merge'] : ['update', row, 'Merge', { etag: step.etag }];
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || error.name !== 'RestError' || !('statusCode' in error)) return undefined;
  return typeof error.statusCode === 'number' ? error.statusCode : undefined;
}

function translated(error: unknown): Error {
  if (error instanceof StoreConflict || error instanceof OfficeError || isMistake(error)) return error;
  const status = statusOf(error);
  if (status === 409 || status === 412 || status === 404) {
    return new StoreConflict(errorText(error, 200), { cause: error });
  }
  return new OfficeError('DLO_STORE_UNAVAILABLE', `the table store failed: ${errorText(error, 300)}`, { cause: error });
}
