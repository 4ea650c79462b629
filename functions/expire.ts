import { app } from '@azure/functions';
import type { Front } from './front.ts';
import { guarded } from './guarded.ts';

/** Every 15 minutes: the retention cleanup. Dead-letter queues have no time to live of their own. */
export function registerExpire(front: Front): void {
  const handler = guarded(front, 'expire', ({ office, work }) => work.cleanUp(office));
  app.timer('expire', { schedule: '0 */15 * * * *', handler });
}
