/** How the sources are doing, from what the last passes noted. */
import type { Source } from '../catalog.ts';
import { type Counted, differsFor } from '../counter.ts';
import { errorText, incompletePackage, isMistake, isOfficeError } from '../errors.ts';
import type { Office } from '../office.ts';
import type { Snapshot } from '../store/snapshots.ts';
import type { SourceRow } from '../store/sources.ts';
import { DIFFERS_AFTER, isStale, oldest, passText } from '../watch/freshness.ts';

const QUARTER = 15 * 60_000;

/** What is wrong with a source: its passes fail, or do not come, the broker counts other letters, or what is noted cannot be read. */
export interface SourceProblem {
  readonly kind: 'failing' | 'stale' | 'counter' | 'unreadable';
  /** For who may read: it names the source. */
  readonly text: string;
}

/** A source with its newest counts. */
export interface SourceStatus {
  readonly source: Source;
  readonly row: SourceRow | undefined;
  readonly snapshot: Snapshot | undefined;
  /** Letters more than a quarter of an hour ago; `undefined` without a snapshot that old. */
  readonly growth: number | undefined;
  /** Why it is not well; empty when it is. */
  readonly problems: readonly SourceProblem[];
}

/** Status of one source. Throws `DLO_STORE_UNAVAILABLE`, `DLO_RECORD_UNREADABLE`. */
export async function sourceStatus(office: Office, source: Source): Promise<SourceStatus> {
  const now = office.clock();
  const [row, snapshot, earlier] = await Promise.all([
    office.store.sources.get(source.key),
    office.store.snapshots.at(source.key, now),
    office.store.snapshots.at(source.key, now - QUARTER),
  ]);
  // Between two counts of other times lies another growth, and between a count and itself none.
  const isOfNow = snapshot !== undefined && !isStale(snapshot.at, now);
  const isOfThen = earlier !== undefined && !isStale(earlier.at, now - QUARTER);
  const growth = isOfNow && isOfThen ? snapshot.open - earlier.open : undefined;
  return { source, row, snapshot, growth, problems: problemsOf(source, row, now) };
}

/** Status of every source. What is noted of one and cannot be read is its problem, not that of the others. */
export async function allStatuses(office: Office): Promise<SourceStatus[]> {
  return Promise.all(
    office.catalog.sources.map(async (source): Promise<SourceStatus> => {
      try {
        return await sourceStatus(office, source);
      } catch (error) {
        if (!isOfficeError(error, 'DLO_RECORD_UNREADABLE')) throw error;
        return {
          source,
          row: undefined,
          snapshot: undefined,
          growth: undefined,
          problems: [{ kind: 'unreadable', text: error.message }],
        };
      }
    }),
  );
}

function problemsOf({ name }: Source, row: SourceRow | undefined, now: number): SourceProblem[] {
  const problems: SourceProblem[] = [];
  if (row?.passError) problems.push({ kind: 'failing', text: `the last pass failed: ${row.passError}` });
  if (isStale(row?.passedAt, now)) problems.push({ kind: 'stale', text: passText(name, row?.passedAt, now) });
  if (row?.counted && differsFor(row.counted) > DIFFERS_AFTER) {
    problems.push({ kind: 'counter', text: counterText(row.counted) });
  }
  return problems;
}

function counterText(counted: Counted): string {
  const { count = 0, open } = counted;
  const minutes = Math.floor(differsFor(counted) / 60_000);
  const seen = open === 0 ? 'none is' : `${open} ${open === 1 ? 'is' : 'are'}`;
  return `Service Bus counts ${count} dead letters, ${seen} on record; they have differed for ${minutes} minutes`;
}

export type Health = 'Healthy' | 'Degraded' | 'Unhealthy';

/** The office's health. `problems` names no sources: the probe needs no right. */
export interface HealthReport {
  readonly status: Health;
  readonly problems: readonly string[];
  readonly sources: { readonly all: number; readonly degraded: number };
  /** When the oldest of the last passes had completed, ms since 1970. */
  readonly asOf: number | undefined;
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
    const problems = [isMistake(error) ? programProblem(error) : 'the store does not answer'];
    office.log(`health: ${problems[0]}: ${errorText(error)}`);
    return { status: 'Unhealthy', problems, sources: { all, degraded: all }, asOf: undefined };
  }
  const degraded = statuses.filter(({ problems }) => problems.length > 0).length;
  const told = { sources: { all, degraded }, asOf: oldest(statuses.map(({ row }) => row?.passedAt)) };
  const failing = withProblem(statuses, 'failing').length;
  const unreadable = withProblem(statuses, 'unreadable').length;
  const counters = withProblem(statuses, 'counter').length;
  const isUnhealthy = all > 0 && failing === all;
  const problems = [
    ...(isUnhealthy ? ['no source can be collected'] : []),
    ...(failing > 0 && !isUnhealthy ? [`the last pass over ${failing} of ${all} sources failed`] : []),
    ...staleTexts(withProblem(statuses, 'stale'), all, office.clock()),
    ...(counters > 0 ? [`Service Bus counts other letters in ${counters} of ${all} sources than are on record`] : []),
    ...(unreadable > 0 ? [`what is noted of ${unreadable} of ${all} sources cannot be read`] : []),
  ];
  return { status: isUnhealthy ? 'Unhealthy' : degraded === 0 ? 'Healthy' : 'Degraded', problems, ...told };
}

/** Tells no more than that a mistake is there, unless the package is to blame: the probe needs no right. */
function programProblem(error: unknown): string {
  return incompletePackage(error)?.message ?? 'the program has a mistake; the log says which';
}

function withProblem(statuses: readonly SourceStatus[], kind: SourceProblem['kind']): SourceStatus[] {
  return statuses.filter(({ problems }) => problems.some((one) => one.kind === kind));
}

/** How long nobody has looked, of the sources that were looked at once and of those that never were. */
function staleTexts(stale: readonly SourceStatus[], all: number, now: number): string[] {
  const times = stale.map(({ row }) => row?.passedAt);
  const known = times.filter((at) => at !== undefined);
  const texts: string[] = [];
  if (known.length > 0) texts.push(passText(`${known.length} of ${all} sources`, oldest(known), now));
  const never = times.length - known.length;
  if (never > 0) texts.push(passText(`${never} of ${all} sources`, undefined, now));
  return texts;
}
