import { app } from '@azure/functions';
import type { Office } from '../shared/office.ts';
import { reconcileAll } from '../shared/watch/reconcile.ts';
import { guarded } from './guarded.ts';

/** Every night: brings records and dead-letter queues in line. */
export function registerReconcile(office: Office): void {
  app.timer('reconcile', {
    schedule: '0 17 3 * * *',
    handler: guarded(office, 'reconcile', () => reconcileAll(office)),
  });
}
