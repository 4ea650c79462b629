/** How the sources are doing, from what the last passes noted. */
import type { Source } from '../catalog.ts';
import { errorText, isOfficeError } from '../errors.ts';
import type { Office } from '../office.ts';
import type { Snapshot } from '../store/snapshots.ts';
import type { SourceRow } from '../store/sources.ts';

const MINUTE = 60_000;
/** A pass is due every minute; without one for this long, what is shown is old. */
const STALE = 15 * MINUTE;

/** A source with its newest counts. */
export interface SourceStatus {
  readonly source: Source;
  readonly row: SourceRow | undefined;
  readonly snapshot: Snapshot | undefined;
  /** Letters more than a quarter of an hour ago; `undefined` without a snapshot that old. */
  readonly growth: number | undefined;
  /** Why it is not well; empty when it is. */
  readonly problems: readonly string[];
}

/** Status of one source. Throws `DLO_STORE_UNAVAILABLE`, `DLO_RECORD_UNREADABLE`. */
export async function sourceStatus(office: Office, source: Source): Promise<SourceStatus> {
  const now = office.clock();
  const [row, snapshot, earlier] = await Promise.all([
    office.store.sources.get(source.key),
    office.store.snapshots.at(source.key, now),
    office.store.snapshots.at(source.key, now - 15 * MINUTE),
  ]);
  const growth = snapshot === undefined || earlier === undefined ? undefined : snapshot.open - earlier.open;
  return { source, row, snapshot, growth, problems: problemsOf(row, now) };
}

/** Status of every source. What is noted of one and cannot be read is its problem, not that of the others. */
export async function allStatuses(office: Office): Promise<SourceStatus[]> {
  return Promise.all(
    office.catalog.sources.map(async (source): Promise<SourceStatus> => {
      try {
        return await sourceStatus(office, source);
      } catch (error) {
        if (!isOfficeError(error, 'DLO_RECORD_UNREADABLE')) throw error;
        return { source, row: undefined, snapshot: undefined, growth: undefined, problems: [error.message] };
      }
    }),
  );
}

function problemsOf(row: SourceRow | undefined, now: number): string[] {
  const problems: string[] = [];
  if (row?.passError) problems.push(`the last pass failed: ${row.passError}`);
  if (row?.passedAt === undefined) problems.push('not collected yet');
  else if (now - row.passedAt > STALE) problems.push('not collected for 15 minutes');
  return problems;
}

export type Health = 'Healthy' | 'Degraded' | 'Unhealthy';

/** The office's health. `problems` names no sources: the probe needs no right. */
export interface HealthReport {
  readonly status: Health;
  readonly problems: readonly string[];
  readonly sources: { readonly all: number; readonly degraded: number };
}

/**
 * `Unhealthy`: the office cannot work at all. `Degraded`: a part cannot be relied on. Dead letters alone are never either:
 * they are the office's business, and no reason to take it out of rotation.
 */
export async function health(office: Office): Promise<HealthReport> {
  const all = office.catalog.sources.length;
  let statuses: SourceStatus[];
  try {
    statuses = await allStatuses(office);
  } catch (error) {
    office.log(`health: the store failed: ${errorText(error)}`);
    return { status: 'Unhealthy', problems: ['the store does not answer'], sources: { all, degraded: all } };
  }
  const degraded = statuses.filter(({ problems }) => problems.length > 0).length;
  const failing = statuses.filter(({ row }) => row?.passError).length;
  if (all > 0 && failing === all) {
    return { status: 'Unhealthy', problems: ['no source can be collected'], sources: { all, degraded } };
  }
  if (degraded === 0) return { status: 'Healthy', problems: [], sources: { all, degraded } };
  return {
    status: 'Degraded',
    problems: [`${degraded} of ${all} sources are not collected as they should be`],
    sources: { all, degraded },
  };
}
