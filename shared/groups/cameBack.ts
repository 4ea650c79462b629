import type { Fingerprint } from '../classify/fingerprint.ts';
import type { SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { didNotHelp } from '../records/replays.ts';
import { triageOf } from '../records/triage.ts';

/** Causes of a source whose letters have died again after they were sent back. Throws `DLO_STORE_UNAVAILABLE`. */
export async function causesThatCameBack(
  { store }: Pick<Office, 'store'>,
  source: SourceKey,
): Promise<ReadonlySet<Fingerprint>> {
  const causes = new Set<Fingerprint>();
  const triages = await store.triage.all();
  for (const { group } of (await store.groups.list(source)).groups.values()) {
    if (didNotHelp(group, triageOf(triages, group))) causes.add(group.fingerprint);
  }
  return causes;
}
