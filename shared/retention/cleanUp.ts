import type { Office } from '../office.ts';
import { tellCleanupFailed } from '../telemetry/tell.ts';
import { sourcesToClean } from '../watch/managedSources.ts';
import { expireAll } from './expire.ts';
import { forgetAll } from './forget.ts';

/** One retention cleanup over all sources: letters past their time, then records, plans and audit past theirs. */
export async function cleanUp(office: Office): Promise<void> {
  try {
    const sources = await sourcesToClean(office);
    await expireAll(office, sources);
    await forgetAll(office, sources);
  } catch (error) {
    // What failed is not one source's: no source can be relied on to be clean.
    for (const source of office.catalog.sources) tellCleanupFailed(office, source);
    throw error;
  }
}
