import { app } from '@azure/functions';
import type { Office } from '../shared/office.ts';
import { watchRuns } from '../shared/plan/control.ts';
import { guarded } from './guarded.ts';

/** Every minute: goes on with runs that nobody is working on. */
export function registerWatch(office: Office): void {
  app.timer('watch', { schedule: '30 * * * * *', handler: guarded(office, 'watch', () => watchRuns(office)) });
}
