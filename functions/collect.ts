import { app } from '@azure/functions';
import type { Office } from '../shared/office.ts';
import { collectAll } from '../shared/watch/collect.ts';
import { guarded } from './guarded.ts';

/** Every minute: the guarantee that no letter stays unseen, whatever the trigger does. */
export function registerCollect(office: Office): void {
  app.timer('collect', { schedule: '0 * * * * *', handler: guarded(office, 'collect', () => collectAll(office)) });
}
