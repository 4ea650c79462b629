import { app } from '@azure/functions';
import type { Front } from './front.ts';
import { guarded } from './guarded.ts';

/** Every night: brings records and dead-letter queues in line. */
export function registerReconcile(front: Front): void {
  const handler = guarded(front, 'reconcile', ({ office, work }) => work.reconcileAll(office));
  app.timer('reconcile', { schedule: '0 17 3 * * *', handler });
}
