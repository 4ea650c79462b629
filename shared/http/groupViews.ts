/** How groups and their triage are shown. */
import type { CauseSummary } from '../desk/causes.ts';
import { type Example, examplesOf, type Overview, traitsOf } from '../desk/groups.ts';
import { type Counted, type Group, mainOf } from '../records/group.ts';
import type { Triage } from '../records/triage.ts';
import { OVERFLOW } from '../store/groups.ts';
import { iso } from '../timeText.ts';

/** Most letters shown as examples. */
const MAX_EXAMPLES = 10;

/** A cause over its sources. */
export function groupView(found: Overview) {
  const { group, share, bySource } = found;
  const { category, advice, advices } = traitsOf(found);
  return {
    // The causes beyond the limit share a row, and have no fingerprint that a letter has.
    fingerprint: group.fingerprint === OVERFLOW ? null : group.fingerprint,
    cause: group.cause,
    category: category ?? null,
    advice: advice ?? null,
    open: group.open,
    count: group.total,
    share: Math.round(share * 10_000) / 10_000,
    firstSeen: iso(group.firstSeen),
    lastSeen: iso(group.lastSeen),
    categories: counts(group.categories, 'category'),
    advices: counts(advices, 'advice'),
    sent: group.sent,
    returned: group.returned,
    lastReturned: iso(group.lastReturned),
    messageTypes: counts(group.messageTypes, 'messageType'),
    sources: bySource.map(({ source, group: part }) => ({
      source: source.name,
      open: part.open,
      count: part.total,
      firstSeen: iso(part.firstSeen),
      lastSeen: iso(part.lastSeen),
    })),
    trend: trendView(group),
    examples: examplesOf(found, MAX_EXAMPLES).map(exampleView),
    triage: triageView(found),
    // Names of before the rules for fingerprints changed, and what such a one has become.
    formerly: group.formerly,
    now: found.now,
  };
}

/** A cause with its open letters, as a line of the summary. */
export function causeLine(line: CauseSummary) {
  const { group, count, firstSeen, lastSeen, advices, replays, sources, state, regressedSince } = line;
  return {
    key: group.fingerprint,
    count,
    firstSeen: iso(firstSeen),
    lastSeen: iso(lastSeen),
    cause: group.cause,
    category: mainOf(group.categories) ?? null,
    advice: mainOf(advices) ?? null,
    advices: counts(advices, 'advice'),
    sent: replays.sent,
    returned: replays.returned,
    sources: sources.map(({ name }) => name),
    state,
    regressedSince: iso(regressedSince),
  };
}

function exampleView({ source, number }: Example) {
  return { source: source.name, sequenceNumber: number };
}

function counts(counted: Counted, name: string) {
  return counted.map(([key, count]) => ({ [name]: key, count }));
}

/** Letters first seen per 5 minutes; intervals without any are left out. */
function trendView({ trend }: Group) {
  return trend.map(([from, count]) => ({ from: iso(from), count }));
}

function triageView({ state, regressedSince, triage, group }: Overview) {
  const { owner = '', note = '', bug = '', changedAt, changedBy = '' }: Partial<Triage> = triage ?? {};
  return {
    state,
    /** Where it was said of what an earlier version called it. */
    from: triage === undefined || triage.fingerprint === group.fingerprint ? null : triage.fingerprint,
    owner: owner || null,
    note: note || null,
    bug: bug || null,
    by: changedBy || null,
    at: iso(changedAt),
    resolvedAt: iso(triage?.resolvedAt),
    regressedSince: iso(regressedSince),
  };
}
