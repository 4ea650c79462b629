import { app } from '@azure/functions';
import { errorText } from '../shared/errors.ts';
import { RUNS_QUEUE } from '../shared/store/runsQueue.ts';
import type { Back, Front } from './front.ts';
import { guarded } from './guarded.ts';

/** Goes on with a plan when its queue message becomes visible: preparing, running, or waiting for locks. */
export function registerContinue(front: Front): void {
  const handler = (message: unknown) => guarded(front, 'continue', (back) => goOn(back, message))();
  app.storageQueue('continue', { queueName: RUNS_QUEUE, connection: 'AzureWebJobsStorage', handler });
}

async function goOn({ office, work }: Back, message: unknown): Promise<void> {
  const parsed = work.continuationSchema.safeParse(message);
  if (!parsed.success) {
    office.log('continue: a queue message is not a continuation and was dropped');
    return;
  }
  try {
    await work.continuePlan(office, parsed.data.planId);
  } catch (error) {
    // Not thrown: the watchdog enqueues the run again, and keeps doing so when the queue would have given up.
    office.log(`continue ${parsed.data.planId}: failed, the watchdog goes on: ${errorText(error)}`);
  }
}
