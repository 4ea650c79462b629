/** Looking at groups, over all sources or one, and saying something of their causes. */
import type { Source } from '../catalog.ts';
import type { Category } from '../classify/evidence.ts';
import { type Fingerprint, isCurrent } from '../classify/fingerprint.ts';
import { errorText, OfficeError } from '../errors.ts';
import type { SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { type Group, mainOf, mergeGroups } from '../records/group.ts';
import { advicesFor, didNotHelp } from '../records/replays.ts';
import {
  changed,
  changeText,
  type ShownState,
  shownState,
  type Triage,
  type TriageChange,
  triageOf,
} from '../records/triage.ts';
import { OVERFLOW } from '../store/groups.ts';
import { StoreConflict } from '../store/table.ts';
import { asOf } from '../watch/freshness.ts';

/** A cause over several sources. */
export interface Overview {
  /** All sources together. `examples` are of no use here: a number is of a source. */
  readonly group: Group;
  /** What it is of all open letters that were looked at; 0 to 1. */
  readonly share: number;
  readonly bySource: readonly { readonly source: Source; readonly group: Group }[];
  /** What counts for it; that of another fingerprint where it was said before the rules for fingerprints changed. */
  readonly triage: Triage | undefined;
  /** Groups that letters of this one are in now, where an earlier version made it. */
  readonly now: readonly Fingerprint[];
  readonly state: ShownState;
  readonly regressedSince: number | undefined;
}

/** A letter of a group. */
export interface Example {
  readonly source: Source;
  readonly number: SequenceNumber;
}

/** Which groups to list. */
export interface GroupFilter {
  readonly category: Category | undefined;
  readonly state: ShownState | undefined;
}

/** A page of groups. */
export interface GroupPage {
  readonly groups: readonly Overview[];
  readonly open: number;
  /** Letters that come count at once, those that leave with the next pass. See `shared/watch/freshness.ts`. */
  readonly asOf: number | undefined;
  /** Rows that could not be read. */
  readonly unreadable: number;
  readonly continuation: string | undefined;
}

const SOURCES_AT_ONCE = 8;

/**
 * Causes of one source, or (`undefined`) of all, those with most open letters first. In the list of all is also what somebody has
 * said something of, though no letter of it is on record any more. Throws `DLO_BAD_REQUEST` for a continuation that is none.
 */
export async function listGroups(
  office: Office,
  source: Source | undefined,
  filter: GroupFilter,
  top: number,
  continuation: string | undefined,
): Promise<GroupPage> {
  const at = await asOf(office, source === undefined ? office.catalog.sources : [source]);
  const { overviews, open, unreadable } = await overviewsOf(office, source);
  const after = continuation === undefined ? undefined : placeOf(continuation);
  const fitting = overviews.filter(
    ({ group, state }) =>
      (filter.category === undefined || group.categories.some(([category]) => category === filter.category)) &&
      (filter.state === undefined || state === filter.state),
  );
  // By its place in the order, not by a count: groups that come and go meanwhile shift nothing.
  const rest = after === undefined ? fitting : fitting.filter(({ group }) => inOrder(after, group) < 0);
  const last = rest.length > top ? rest[top - 1] : undefined;
  const next = last && `${last.group.open}.${last.group.total}.${last.group.fingerprint}`;
  return { groups: rest.slice(0, top), open, asOf: at, unreadable, continuation: next };
}

/** One cause over all sources of the catalog, with letters of it. Throws `DLO_GROUP_UNKNOWN`. */
export async function getGroup(office: Office, fingerprint: Fingerprint): Promise<Overview> {
  const { overviews } = await overviewsOf(office, undefined);
  const found = overviews.find(({ group }) => group.fingerprint === fingerprint);
  if (found !== undefined) return found;
  const now = becameOf(overviews, fingerprint);
  if (now.length > 0) {
    const why = `the group ${fingerprint} is of an earlier version: its letters are in ${now.join(', ')} now`;
    throw new OfficeError('DLO_GROUP_UNKNOWN', why);
  }
  throw new OfficeError('DLO_GROUP_UNKNOWN', `no letter and no triage of the group ${fingerprint} is on record`);
}

async function overviewsOf(office: Office, only: Source | undefined) {
  const sources = only === undefined ? office.catalog.sources : [only];
  const triages = await office.store.triage.all();
  const read = await inParallel(sources, (source) => office.store.groups.list(source.key), SOURCES_AT_ONCE);
  const bySource = new Map<Fingerprint, { source: Source; group: Group }[]>();
  let open = 0;
  let unreadable = 0;
  for (const [i, source] of sources.entries()) {
    unreadable += read[i]?.unreadable.length ?? 0;
    for (const { group } of read[i]?.groups.values() ?? []) {
      open += group.open;
      bySource.set(group.fingerprint, [...(bySource.get(group.fingerprint) ?? []), { source, group }]);
    }
  }
  const overviews = [...bySource.values()].map((parts) => overview(parts, triages, open));
  for (const triage of triages.values()) {
    if (only === undefined && !bySource.has(triage.fingerprint)) overviews.push(overview([], triages, open, triage));
  }
  const linked = overviews.map((one) => ({ ...one, now: becameOf(overviews, one.group.fingerprint) }));
  return { overviews: linked.sort((a, b) => inOrder(a.group, b.group)), open, unreadable };
}

/** What letters of a group of an earlier version are in now, most open letters first. */
function becameOf(overviews: readonly Pick<Overview, 'group'>[], former: Fingerprint): Fingerprint[] {
  if (isCurrent(former)) return [];
  const parts = overviews.filter(({ group }) => group.formerly.includes(former));
  return parts.sort((a, b) => inOrder(a.group, b.group)).map(({ group }) => group.fingerprint);
}

function overview(
  parts: readonly { source: Source; group: Group }[],
  triages: ReadonlyMap<Fingerprint, Triage>,
  open: number,
  own?: Triage,
): Omit<Overview, 'now'> {
  const groups = parts.map(({ group }) => group).filter(({ total }) => total > 0);
  const group = groups.length > 0 ? groups.reduce(mergeGroups) : emptyGroup(parts[0]?.group, own);
  const triage = own ?? triageOf(triages, group);
  return {
    group,
    share: open === 0 ? 0 : group.open / open,
    bySource: parts.filter((part) => part.group.total > 0).sort((a, b) => b.group.open - a.group.open),
    triage,
    ...shownState(triage, groups.length === 0 ? undefined : group.lastSeen),
  };
}

/** What is left of a cause when its letters are forgotten. */
function emptyGroup(group: Group | undefined, triage: Triage | undefined): Group {
  const formerly = group?.formerly ?? [];
  const nothing = { total: 0, open: 0, trend: [], categories: [], advices: [], messageTypes: [], examples: [] };
  const replays = { sent: 0, returned: 0, lastReturned: undefined };
  const at = triage?.changedAt ?? 0;
  const fingerprint = group?.fingerprint ?? triage?.fingerprint ?? OVERFLOW;
  return {
    firstSeen: at,
    lastSeen: at,
    cause: triage?.cause ?? '',
    ...replays,
    ...group,
    ...nothing,
    formerly,
    fingerprint,
  };
}

type Place = Pick<Group, 'open' | 'total' | 'fingerprint'>;

/** Most open letters first. */
function inOrder(a: Place, b: Place): number {
  return (
    b.open - a.open || b.total - a.total || (a.fingerprint < b.fingerprint ? -1 : a.fingerprint > b.fingerprint ? 1 : 0)
  );
}

function placeOf(continuation: string): Place {
  const [, open, total, fingerprint] = /^(\d{1,15})\.(\d{1,15})\.([\w-]{1,30})$/.exec(continuation) ?? [];
  if (fingerprint !== undefined)
    return { open: Number(open), total: Number(total), fingerprint: fingerprint as Fingerprint };
  throw new OfficeError('DLO_BAD_REQUEST', 'query.continuation: is not one that a list has returned');
}

/** Letters of a cause, a few a source. */
export function examplesOf({ bySource }: Overview, max: number): Example[] {
  return bySource.flatMap(({ source, group }) => group.examples.map((number) => ({ source, number }))).slice(0, max);
}

/** Tries while others change the same triage. */
const MAX_TRIES = 5;

/**
 * Says something of a cause: who looks after it, that it is on hold, that it is resolved. For all sources; audited before it is done.
 * Throws `DLO_GROUP_UNKNOWN`, `DLO_CONTENDED`.
 */
export async function setTriage(
  office: Office,
  fingerprint: Fingerprint,
  change: TriageChange,
  operator: string,
): Promise<Overview> {
  const { group, triage } = await getGroup(office, fingerprint);
  const at = office.clock();
  const audit = await office.store.audit.open({ at, operator, operation: 'group.triage', group: fingerprint });
  try {
    for (let tries = 1; ; tries++) {
      const stored = await office.store.triage.get(fingerprint);
      // On top of what counts for it so far, also where that was said of it under another fingerprint.
      const before = stored?.triage ?? triage;
      const after = changed(before, change, { fingerprint, cause: group.cause, at, operator });
      try {
        await office.store.triage.put(after, stored?.etag);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        if (tries < MAX_TRIES) continue; // somebody else changed it: on top of that
        throw new OfficeError('DLO_CONTENDED', `the triage of ${fingerprint} is being changed by others`);
      }
      await office.store.audit.close(audit, changeText(before, after), office.clock());
      return await getGroup(office, fingerprint);
    }
  } catch (error) {
    await office.store.audit.close(audit, `refused: ${errorText(error, 200)}`, office.clock());
    throw error;
  }
}

/** The category most of its letters have, and the advice for the cause: it may know better than each of them. */
export function traitsOf({ group, triage }: Overview) {
  const advices = advicesFor(group.advices, didNotHelp(group, triage));
  return { category: mainOf(group.categories), advice: mainOf(advices), advices };
}
