/**
 * What the office tells, in one place, so that it can be seen that none of it is personal: names from the catalog, numbers of
 * letters, ids of plans, words of the office's own, counts and times. Nothing that a sender wrote, and no text of an error:
 * either may quote a person. Nothing here throws.
 */
import type { Source } from '../catalog.ts';
import { CATEGORIES, type Classification } from '../classify/evidence.ts';
import { causeOf } from '../classify/fingerprint.ts';
import { errorText } from '../errors.ts';
import type { Letter, PlanId, SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterFate } from '../records/letterRecord.ts';
import type { PlanHead } from '../records/plan.ts';
import { EVENTS, METRICS } from '../signals.ts';
import type { Recorded } from '../store/letters.ts';
import type { Snapshot } from '../store/snapshots.ts';

const QUARTER = 15 * 60_000;

/** After a pass that completed: the source was looked at just now. */
export function tellPassed(office: Office, source: Source): void {
  if (isInCatalog(office, source.key)) office.telemetry.gauge(METRICS.snapshotAge, 0, { source: source.name });
}

/** After a count: how a source stands. Only of sources in the catalog, whose alerts there are; reads one earlier snapshot. */
export async function tellSnapshot(office: Office, source: Source, snapshot: Snapshot): Promise<void> {
  const { telemetry } = office;
  if (!telemetry.isOn || !isInCatalog(office, source.key)) return;
  const of = { source: source.name };
  const age = snapshot.oldest === undefined ? 0 : snapshot.at - snapshot.oldest;
  for (const category of categoriesToTell(office, source.key, snapshot)) {
    telemetry.gauge(METRICS.open, snapshot.byCategory[category] ?? 0, { ...of, category });
  }
  telemetry.gauge(METRICS.oldestAge, age / 1000, of);
  if (source.retainFor !== undefined) telemetry.gauge(METRICS.retentionUsed, age / source.retainFor, of);
  await guarded(office, async () => {
    const earlier = await office.store.snapshots.at(source.key, snapshot.at - QUARTER);
    if (earlier !== undefined) telemetry.gauge(METRICS.growth, snapshot.open - earlier.open, of);
  });
}

/**
 * Categories with letters, and those that had some when this process told last: a zero is told once, so that a curve goes down,
 * and not every minute for each of them, as each value costs.
 */
function categoriesToTell(office: Office, key: SourceKey, { byCategory }: Snapshot): string[] {
  const before = told.get(office) ?? new Map<SourceKey, ReadonlySet<string>>();
  told.set(office, before);
  const now = new Set(CATEGORIES.filter((category) => (byCategory[category] ?? 0) > 0));
  const all = new Set<string>([...now, ...(before.get(key) ?? [])]);
  before.set(key, now);
  return [...all];
}
const told = new WeakMap<Office, Map<SourceKey, ReadonlySet<string>>>();

/** After a pass that failed: since when nobody has seen the source. Nothing where that is not known. */
export async function tellPassFailed(office: Office, source: Source): Promise<void> {
  const { telemetry } = office;
  if (!telemetry.isOn || !isInCatalog(office, source.key)) return;
  await guarded(office, async () => {
    const now = office.clock();
    const last = (await office.store.sources.get(source.key))?.passedAt;
    if (last !== undefined) telemetry.gauge(METRICS.snapshotAge, (now - last) / 1000, { source: source.name });
  });
}

/** Letters that were recorded. What was known already has been told before. `recorded`: in the order of `classified`. */
export function tellRecorded(
  { telemetry }: Office,
  source: Source,
  classified: readonly { letter: Letter; classification: Classification }[],
  recorded: readonly Recorded[],
): void {
  if (!telemetry.isOn) return;
  classified.forEach(({ letter, classification }, i) => {
    if (recorded[i] === 'known') return;
    const { category, advice, rule, error, evidence } = classification;
    telemetry.event(EVENTS.classified, {
      source: source.name,
      sequenceNumber: letter.sequenceNumber,
      category,
      advice,
      rule,
      reason: publicReason(letter.reason),
      fingerprint: causeOf(evidence, source.key).fingerprint,
      replayCount: letter.replay.count,
    });
    if (error !== undefined) telemetry.count(METRICS.classifierErrors, 1, { source: source.name });
  });
}

/** Reasons that Service Bus writes itself ("Overview of Service Bus dead-letter queues"). */
const BROKERS_REASONS = [
  'MaxDeliveryCountExceeded',
  'TTLExpiredException',
  'HeaderSizeExceeded',
  'Session ID is null',
  'MaxTransferHopCountExceeded',
];

/** The reason where it is one of the broker's own; an application's may say anything. */
function publicReason(reason: string | undefined): string {
  const text = reason?.trim().replace(/\.$/, '').toLowerCase() ?? '';
  return text === '' ? 'none' : (BROKERS_REASONS.find((own) => own.toLowerCase() === text) ?? 'application');
}

/** A letter that a run sent back has come back. */
export function tellReturned({ telemetry }: Office, source: Source): void {
  telemetry.count(METRICS.returned, 1, { source: source.name });
}

/** Letters that were recorded as having left and are still there. */
export function tellReopened({ telemetry }: Office, source: Source, letters: number): void {
  telemetry.count(METRICS.reopened, letters, { source: source.name });
}

/** Letters that have left a source, and how. */
export function tellLeft({ telemetry }: Office, source: Pick<Source, 'name'>, fate: LetterFate, letters: number): void {
  telemetry.count(METRICS.removed, letters, { source: source.name, fate });
}

/** A cleanup has removed letters of a source, or tried to. */
export function tellExpired({ telemetry }: Office, source: Source, removed: number, left: number): void {
  if (removed + left > 0) telemetry.event(EVENTS.expired, { source: source.name, removed, left });
}

/** A cleanup has failed; what is past its retention is still there. */
export function tellCleanupFailed({ telemetry }: Office, source: Source): void {
  telemetry.count(METRICS.expiryFailures, 1, { source: source.name });
}

/**
 * A run has ended or stopped. To be called by who wrote that into the journal, and after that: of several instances only one
 * can. A plan that was cancelled or expired before it ran was no run.
 */
export async function tellRun(office: Office, head: PlanHead): Promise<void> {
  const { telemetry } = office;
  if (!telemetry.isOn || head.startedAt === undefined) return;
  const { id: planId, sourceName: source, state: outcome, action, counts, stateReason } = head;
  telemetry.count(METRICS.runs, 1, { source, outcome });
  if (outcome === 'paused') return;
  const returned = await countReturned(office, planId);
  if (outcome === 'halted') {
    // The ramp's word, made of numbers.
    telemetry.event(EVENTS.runHalted, { source, planId, why: stateReason, done: counts.done, ...returned });
    return;
  }
  const { planned, done, skipped, failed, left } = counts;
  const seconds = ((head.finishedAt ?? office.clock()) - head.startedAt) / 1000;
  const how = { planned, done, skipped, failed, left, ...returned, seconds };
  telemetry.event(EVENTS.runFinished, { source, planId, action, outcome, ...how });
}

async function countReturned(office: Office, id: PlanId): Promise<{ returned?: number }> {
  let returned: { returned?: number } = {};
  await guarded(office, async () => {
    returned = { returned: await office.store.plans.countReturned(id) };
  });
  return returned;
}

function isInCatalog(office: Office, key: SourceKey): boolean {
  return office.catalog.sources.some((source) => source.key === key);
}

/** What is read only to be told: when the store fails, that is told elsewhere. */
async function guarded(office: Office, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    office.log(`telemetry: a signal is missing: ${errorText(error, 200)}`);
  }
}
