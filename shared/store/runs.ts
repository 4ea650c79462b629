/** Queue `runs`: the continuations of preparing and running plans. */
import type { QueueServiceClient } from '@azure/storage-queue';
import { z } from 'zod';
import { errorText, isMistake, OfficeError } from '../errors.ts';
import { type PlanId, parsePlanId } from '../letter.ts';
import type { StorageConnection } from './connection.ts';
import { RUNS_QUEUE } from './runsQueue.ts';

/** A queue message: go on with this plan. What to do follows from the plan's own state. */
export const continuationSchema = z.strictObject({
  planId: z.string().transform((text, context): PlanId => {
    const id = parsePlanId(text);
    if (id !== undefined) return id;
    context.addIssue({ code: 'custom', message: 'is not a plan id' });
    return z.NEVER;
  }),
});

/** The continuation queue. */
export class RunQueue {
  readonly #open: () => Promise<QueueServiceClient>;
  #client: Promise<QueueServiceClient> | undefined;

  constructor(connection: StorageConnection) {
    this.#open = async () => (await import('./queueClient.ts')).openQueues(connection);
  }

  /** Asks for the plan to be continued in `delayMs` milliseconds. Throws `DLO_STORE_UNAVAILABLE`. */
  async enqueue(planId: PlanId, delayMs: number): Promise<void> {
    try {
      this.#client ??= this.#open();
      const queue = (await this.#client).getQueueClient(RUNS_QUEUE);
      // The host reads queue messages as base64 unless it is told otherwise.
      const text = Buffer.from(JSON.stringify({ planId })).toString('base64');
      const visibilityTimeout = Math.ceil(delayMs / 1000);
      try {
        await queue.sendMessage(text, { visibilityTimeout });
      } catch (error) {
        if ((error as { statusCode?: unknown }).statusCode !== 404) throw error;
        await queue.createIfNotExists();
        await queue.sendMessage(text, { visibilityTimeout });
      }
    } catch (cause) {
      if (isMistake(cause)) throw cause;
      const message = `the queue "${RUNS_QUEUE}" failed: ${errorText(cause, 300)}`;
      throw new OfficeError('DLO_STORE_UNAVAILABLE', message, { cause });
    }
  }
}
