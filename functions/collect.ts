import { app } from '@azure/functions';
import type { Front } from './front.ts';
import { guarded } from './guarded.ts';

/** Every minute: the guarantee that no letter stays unseen, whatever the trigger does. */
export function registerCollect(front: Front): void {
  const handler = guarded(front, 'collect', ({ office, work }) => work.collectAll(office));
  app.timer('collect', { schedule: '0 * * * * *', handler });
}
