import { app } from '@azure/functions';
import { errorText } from '../shared/errors.ts';
import type { Office } from '../shared/office.ts';
import { continuePlan } from '../shared/plan/control.ts';
import { continuationSchema, RUNS_QUEUE } from '../shared/store/runs.ts';

/** Goes on with a plan when its queue message becomes visible: preparing, running, or waiting for locks. */
export function registerContinue(office: Office): void {
  app.storageQueue('continue', {
    queueName: RUNS_QUEUE,
    connection: 'AzureWebJobsStorage',
    handler: async (message: unknown) => {
      const parsed = continuationSchema.safeParse(message);
      if (!parsed.success) {
        office.log('continue: a queue message is not a continuation and was dropped');
        return;
      }
      try {
        await continuePlan(office, parsed.data.planId);
      } catch (error) {
        // Not thrown: the watchdog enqueues the run again, and keeps doing so when the queue would have given up.
        office.log(`continue ${parsed.data.planId}: failed, the watchdog goes on: ${errorText(error)}`);
      }
    },
  });
}
