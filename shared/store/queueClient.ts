/** The client of the queue service. The only file that needs the queue SDK, which takes long to load: imported when first used. */
import { QueueServiceClient } from '@azure/storage-queue';
import type { StorageConnection } from './connection.ts';

const OPTIONS = { retryOptions: { maxTries: 3, retryDelayInMs: 200, maxRetryDelayInMs: 1000 } };

/** Opens the client; connects to nothing yet. */
export async function openQueues(connection: StorageConnection): Promise<QueueServiceClient> {
  return connection.kind === 'identity'
    ? new QueueServiceClient(connection.url, await connection.credential(), OPTIONS)
    : QueueServiceClient.fromConnectionString(connection.text, OPTIONS);
}
