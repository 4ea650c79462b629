/** Forgetting: records of letters that have left, old groups, closed plans, old audit, and sources that are no more. */
import type { Source } from '../catalog.ts';
import { errorText, isOfficeError } from '../errors.ts';
import { type PlanId, planCreatedAt, type SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { expireIfOld, isClosed } from '../plan/control.ts';
import { LONGEST_WINDOW } from '../plan/duplicates.ts';
import { triageOf } from '../records/triage.ts';
import { tellCleanupFailed } from '../telemetry/tell.ts';

const DAY = 86_400_000;
/** Most rows that one run removes of one kind; the next run goes on. */
const MAX_ROWS = 5000;
const SOURCES_AT_ONCE = 8;
/** How many months back old audit is looked for; an office may have been off for a while. */
const AUDIT_MONTHS = 14;

/** Removes what need not be kept any longer, source by source, then old audit entries. */
export async function forgetAll(office: Office, sources: readonly Source[]): Promise<void> {
  const now = office.clock();
  const known = new Set<SourceKey>(office.catalog.sources.map(({ key }) => key));
  await forgetTriage(office, sources, now - office.catalog.keepAuditFor); // first: it keeps groups
  for (const source of sources) {
    try {
      await office.store.letters.forgetClosed(source.key, now - source.keepRecordsFor, MAX_ROWS);
      await office.store.snapshots.forget(source.key, now - 30 * DAY, MAX_ROWS);
      await forgetGroups(office, source.key, now - source.keepRecordsFor, known.has(source.key));
      await forgetPlans(office, source.key, now - office.catalog.keepAuditFor);
      if (!known.has(source.key) && (await isForgotten(office, source.key))) {
        await office.store.sources.forget(source.key);
      }
    } catch (error) {
      tellCleanupFailed(office, source);
      office.log(`forget ${source.name}: failed: ${errorText(error)}`);
    }
  }
  await office.store.sends.forget(now - LONGEST_WINDOW - DAY, MAX_ROWS);
  await office.store.audit.forget(now - office.catalog.keepAuditFor, AUDIT_MONTHS);
}

/**
 * Causes that have not struck for as long as records are kept, and of which nobody has said anything; of a source that left the
 * catalog all of them, once its last letter is forgotten.
 */
async function forgetGroups({ store }: Office, source: SourceKey, before: number, isKnown: boolean): Promise<void> {
  const { groups, unreadable } = await store.groups.list(source);
  if (groups.size + unreadable.length === 0) return;
  if (!isKnown && (await store.letters.isEmpty(source))) {
    await store.groups.remove(source, [...groups.keys(), ...unreadable]);
    return;
  }
  const old = [...groups.values()].filter(({ group }) => group.open === 0 && group.lastSeen < before);
  if (old.length === 0) return;
  const said = await store.triage.all();
  const forgotten = old.filter(({ group }) => triageOf(said, group) === undefined);
  await store.groups.remove(
    source,
    forgotten.map(({ group }) => group.fingerprint),
  );
}

/** Triage names people. It goes when it is as old as the oldest audit and its cause has no group in any source any more. */
async function forgetTriage(office: Office, sources: readonly Source[], before: number): Promise<void> {
  const { store } = office;
  try {
    const old = [...(await store.triage.all()).values()].filter(({ changedAt }) => changedAt < before);
    if (old.length === 0) return;
    const lists = await inParallel(sources, ({ key }) => store.groups.list(key), SOURCES_AT_ONCE);
    const groups = lists.flatMap((list) => [...list.groups.values()].map(({ group }) => group));
    const alive = groups.filter(({ open, lastSeen }) => open > 0 || lastSeen >= before);
    const wanted = new Set(alive.flatMap(({ fingerprint, formerly }) => [fingerprint, ...formerly]));
    for (const { fingerprint } of old) if (!wanted.has(fingerprint)) await store.triage.remove(fingerprint);
  } catch (error) {
    office.log(`forget triage: failed: ${errorText(error)}`);
  }
}

/** Whether nothing is kept of a source any more. Its own row is the last to go: by it the others are found. */
async function isForgotten({ store }: Office, source: SourceKey): Promise<boolean> {
  if (await store.sources.hasPlans(source)) return false;
  return (
    (await store.letters.isEmpty(source)) && (await store.groups.isEmpty(source)) && store.snapshots.isEmpty(source)
  );
}

/** A plan whose row cannot be read does not keep those behind it from being forgotten, nor is it kept for ever itself. */
async function isUnderWay(office: Office, id: PlanId): Promise<boolean> {
  try {
    const found = await office.store.plans.head(id);
    return found !== undefined && !isClosed((await expireIfOld(office, found)).head);
  } catch (error) {
    if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return false;
    throw error;
  }
}

async function forgetPlans(office: Office, source: SourceKey, before: number): Promise<void> {
  for await (const id of office.store.sources.plans(source)) {
    if (planCreatedAt(id) >= before) continue;
    if (await isUnderWay(office, id)) continue;
    await office.store.plans.remove(id);
    await office.store.sources.unindexPlan(source, id);
  }
}
