/** The client of one table. The only file that needs the table SDK, which takes long to load: imported when first used. */
import { TableClient, type TableServiceClientOptions } from '@azure/data-tables';
import type { StorageConnection } from './connection.ts';

// Short, because a caller holds message locks while it waits; what is not written is done again by the caller.
const RETRIES: TableServiceClientOptions = {
  retryOptions: { maxRetries: 2, retryDelayInMs: 200, maxRetryDelayInMs: 1000 },
};

/** Opens the client; connects to nothing yet. */
export async function openTable(connection: StorageConnection, name: string): Promise<TableClient> {
  if (connection.kind === 'identity')
    return new TableClient(connection.url, name, await connection.credential(), RETRIES);
  const allowInsecureConnection = connection.url.startsWith('http:');
  return TableClient.fromConnectionString(connection.text, name, { ...RETRIES, allowInsecureConnection });
}
