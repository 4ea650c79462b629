/** What stands in the way of everybody when a row was written by other hands, made good by the watchdog. */
import type { PlanId, SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import type { PlanHead } from '../records/plan.ts';
import { begunPlans } from '../store/inFlight.ts';
import { markUnclear } from './ending.ts';

/** Makes rows of sources good that cannot be read: without them nothing can be run, stopped or cleaned up there. */
export async function repairSources(office: Office): Promise<void> {
  const { store, clock, leaseMs } = office;
  const keys: string[] = [];
  await store.sources.all((key) => keys.push(key));
  for (const key of keys as SourceKey[]) {
    const running = (await begunPlans(store, key)).find(isActive);
    const columns = await store.sources.repair(key, running?.id, clock(), leaseMs);
    if (columns.length > 0)
      office.log(`watch ${key}: its row could not be read (${columns.join(', ')}); it was made good`);
  }
}

/** Whether a run is under way, sending or watching. */
export function isActive({ state }: PlanHead): boolean {
  return state === 'running' || state === 'observing';
}

/** Frees a source that is held by a plan whose head cannot be read: nobody can run it. What it may have sent is marked. */
export async function freeFrom(office: Office, source: SourceKey, id: PlanId): Promise<void> {
  const found = await office.store.plans.salvage(id);
  if (found !== undefined) await markUnclear(office, { ...found.head, source });
  await office.store.sources.vacate(source, id, office.clock());
  office.log(
    `watch ${id}: its row cannot be read (${found?.unreadable.join(', ') ?? ''}); its source is free, cancel it`,
  );
}
