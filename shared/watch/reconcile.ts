import type { Source } from '../catalog.ts';
import { errorText } from '../errors.ts';
import { recount } from '../groups/keep.ts';
import type { Office } from '../office.ts';
import { takeSnapshot } from './collect.ts';
import { sourcesToClean } from './managedSources.ts';
import { type Survey, survey } from './survey.ts';

/** Brings the records of one source in line with its dead-letter queue, and its groups with the records. Changes no letter. */
export async function reconcile(office: Office, source: Source): Promise<Survey> {
  const queue = await office.broker.open(source);
  try {
    const result = await survey(office, source, queue);
    await recount(office, source);
    await takeSnapshot(office, source);
    return result;
  } finally {
    await queue.close();
  }
}

/** Reconciles every source, also those that left the catalog while letters were still there; one that fails does not keep the next from its turn. */
export async function reconcileAll(office: Office): Promise<void> {
  for (const source of await sourcesToClean(office)) {
    try {
      const { present, recorded, reopened, gone } = await reconcile(office, source);
      office.log(
        `reconcile ${source.name}: ${present} there, ${recorded} newly recorded, ${reopened} open again, ${gone} gone`,
      );
    } catch (error) {
      office.log(`reconcile ${source.name}: failed: ${errorText(error)}`);
    }
  }
}
