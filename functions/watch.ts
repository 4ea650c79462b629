import { app } from '@azure/functions';
import type { Front } from './front.ts';
import { guarded } from './guarded.ts';

/** Every minute: goes on with runs that nobody is working on. */
export function registerWatch(front: Front): void {
  const handler = guarded(front, 'watch', ({ office, work }) => work.watchRuns(office));
  app.timer('watch', { schedule: '30 * * * * *', handler });
}
