import { app } from '@azure/functions';
import type { Office } from '../shared/office.ts';
import { cleanUp } from '../shared/retention/cleanUp.ts';
import { guarded } from './guarded.ts';

/** Every 15 minutes: the retention cleanup. Dead-letter queues have no time to live of their own. */
export function registerExpire(office: Office): void {
  app.timer('expire', { schedule: '0 */15 * * * *', handler: guarded(office, 'expire', () => cleanUp(office)) });
}
