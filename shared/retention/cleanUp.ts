import type { Office } from '../office.ts';
import { expireAll } from './expire.ts';
import { forgetAll, sourcesToClean } from './forget.ts';

/** One retention cleanup over all sources: letters past their time, then records, plans and audit past theirs. */
export async function cleanUp(office: Office): Promise<void> {
  const sources = await sourcesToClean(office);
  await expireAll(office, sources);
  await forgetAll(office, sources);
}
