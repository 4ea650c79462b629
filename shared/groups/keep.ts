/**
 * Keeps the groups table in line with the letters: as letters are recorded, with every pass, and by a recount. Groups are a
 * summary: whatever goes wrong here is told to the log and repaired by the next recount, and keeps no letter from being recorded.
 */
import type { Classification } from '../classify/evidence.ts';
import { causeOf, type Fingerprint } from '../classify/fingerprint.ts';
import { formerFingerprint } from '../classify/former/fingerprint.ts';
import { errorText } from '../errors.ts';
import { compareSequenceNumbers, type Letter, type PlanId, type SequenceNumber, type SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { addTo, type Group, groupOf, mergeGroups, recounted, replayOf, TREND_STEP } from '../records/group.ts';
import { triageOf } from '../records/triage.ts';
import { UNGROUPED } from '../store/groupedRow.ts';
import { MAX_GROUPS, OVERFLOW, OVERFLOW_CAUSE, type StoredGroups } from '../store/groups.ts';
import type { Recorded, Tally } from '../store/letters.ts';

type Where = { readonly key: SourceKey; readonly name: string };

/** Counts letters that were recorded just now; those that were known have been counted before. Throws nothing. */
export async function countLetters(
  office: Office,
  source: Where,
  letters: readonly {
    readonly letter: Letter;
    readonly classification: Classification;
    readonly formerly?: Fingerprint;
  }[],
  recorded: readonly Recorded[],
  now: number,
): Promise<void> {
  try {
    const groups = new Map<Fingerprint, Group>();
    for (const [
      i,
      { letter, classification, formerly = formerFingerprint(classification.evidence) },
    ] of letters.entries()) {
      if (recorded[i] === 'known') continue;
      const { category, advice, evidence, label } = classification;
      const { fingerprint, words } = causeOf(evidence, source.key);
      const { messageType } = evidence;
      const seen = { number: letter.sequenceNumber, category, advice, messageType, at: now, open: true };
      addTo(groups, groupOf({ ...seen, fingerprint, cause: label ?? words, formerly }));
    }
    if (groups.size === 0) return;
    await Promise.all([
      office.store.groups.add(source.key, groups.values()),
      noteReturns(office, [...groups.values()], now),
    ]);
  } catch (error) {
    office.log(`groups ${source.name}: not counted, the next recount repairs it: ${errorText(error)}`);
  }
}

/**
 * Counts letters that a plan has sent, in the groups they had; after their chunk is closed in the journal, which happens once.
 * Should it not be done, the next recount does it. Throws nothing.
 */
export async function countSent(
  office: Office,
  source: Where,
  planId: PlanId,
  numbers: readonly SequenceNumber[],
): Promise<void> {
  const sorted = numbers.toSorted(compareSequenceNumbers);
  const [from, to] = [sorted[0], sorted.at(-1)];
  if (from === undefined || to === undefined) return;
  try {
    const sent = new Set(numbers);
    const groups = new Map<Fingerprint, Group>();
    for await (const sighting of office.store.letters.sightings(source.key, { sent: { planId, from, to } })) {
      if (sent.has(sighting.number)) addTo(groups, replayOf(sighting, 'sent'));
    }
    await office.store.groups.add(source.key, groups.values());
  } catch (error) {
    office.log(
      `groups ${source.name}: letters that were sent not counted, the next recount repairs it: ${errorText(error)}`,
    );
  }
}

/**
 * Counts letters that `planId` sent and that died again, in the groups they had when they were sent: those are the causes which
 * sending back did not help, whatever they died of now. Counted once, however often they are recorded. Throws nothing.
 */
export async function countReturned(
  office: Office,
  planId: PlanId,
  numbers: readonly SequenceNumber[],
  now: number,
): Promise<void> {
  try {
    const plan = (await office.store.plans.head(planId))?.head;
    // A copy in a sandbox was never to help.
    if (plan === undefined || plan.choices.target === 'sandbox') return;
    const groups = new Map<Fingerprint, Group>();
    for (const number of numbers) {
      const origin = await office.store.letters.markReturned(plan.source, number, planId, now);
      if (origin !== undefined) addTo(groups, replayOf(origin, 'returned'));
    }
    if (groups.size > 0) await office.store.groups.add(plan.source, groups.values());
  } catch (error) {
    office.log(
      `groups: letters that came back to plan ${planId} are not all counted, the next recount repairs it: ${errorText(error)}`,
    );
  }
}

/** Causes asked for one by one; for more of them everything that was said of any is less to read. */
const FEW = 3;

async function noteReturns(office: Office, groups: readonly Group[], now: number): Promise<void> {
  const said = groups.length > FEW ? await office.store.triage.all() : undefined;
  const doubtful = groups.filter((one) => said === undefined || triageOf(said, one)?.state === 'resolved');
  await inParallel(doubtful, (group) => noteReturn(office, group, now));
}

/** A cause that was called resolved and strikes again is back since its first letter. */
async function noteReturn({ store }: Office, group: Group, now: number): Promise<void> {
  const own = await store.triage.get(group.fingerprint);
  const stored = own ?? (await store.triage.former(group.formerly, now));
  if (stored?.triage.state !== 'resolved' || stored.triage.regressedAt !== undefined) return;
  if (now <= (stored.triage.resolvedAt ?? 0)) return;
  if (own !== undefined) return store.triage.markRegressed(own, now);
  // Said of what an earlier version called it, which may have become several causes: of this one alone it is not true any more.
  const { fingerprint, cause } = group;
  await store.triage.take({ ...stored.triage, fingerprint, cause, regressedAt: now });
}

/** The groups of a source before its letters are counted, or `undefined` when they cannot be read now. Throws nothing. */
export async function groupsBefore(office: Office, source: Where): Promise<StoredGroups | undefined> {
  try {
    return await office.store.groups.list(source.key);
  } catch (error) {
    office.log(`groups ${source.name}: not read, tried again next time: ${errorText(error)}`);
    return undefined;
  }
}

/**
 * Notes how many letters of each group are open, from a count of all of them; recounts the source where a group is missing.
 * `read` must have been read before the count. Throws nothing.
 */
export async function keepOpen(
  office: Office,
  source: Where,
  read: StoredGroups | undefined,
  { byFingerprint }: Tally,
): Promise<void> {
  if (read === undefined) return;
  try {
    const counts = new Map<Fingerprint, number>();
    const missing: number[] = [];
    for (const [fingerprint, count] of byFingerprint) {
      const isKept = read.groups.has(fingerprint);
      if (!isKept) missing.push(count);
      const key = isKept ? fingerprint : OVERFLOW;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
    if (byFingerprint.has(UNGROUPED) || read.unreadable.length > 0 || isWorthRecounting(missing, read)) {
      await recount(office, source);
    } else await office.store.groups.noteOpen(source.key, counts, read);
  } catch (error) {
    office.log(`groups ${source.name}: open letters not noted, tried again next time: ${errorText(error)}`);
  }
}

/** Where a source has all the groups it may have, only a cause that is larger than one of them is missed. */
function isWorthRecounting(missing: readonly number[], { groups }: StoredGroups): boolean {
  if (missing.length === 0) return false;
  const kept = [...groups.values()].filter(({ group }) => group.fingerprint !== OVERFLOW);
  if (kept.length < MAX_GROUPS) return true;
  const smallest = kept.reduce((least, { group }) => Math.min(least, group.open), Number.POSITIVE_INFINITY);
  return missing.some((count) => count > smallest);
}

/** Letters recorded less than this ago, ms, may be counted by their writer still. */
const UNSETTLED = 2 * TREND_STEP;
/** Tries of a recount while letters arrive. */
const MAX_RECOUNTS = 3;

/**
 * Makes the groups of a source anew from its letters. Groups of which no letter is on record are removed, unless somebody has
 * said something of their cause. Returns how many there are. Throws `DLO_STORE_UNAVAILABLE`.
 */
export async function recount(office: Office, source: Where): Promise<number> {
  const { groups: store, letters, triage } = office.store;
  for (let tries = 1; ; tries++) {
    const read = await store.list(source.key);
    const settledUntil = office.clock() - UNSETTLED;
    const counted = new Map<Fingerprint, Group>();
    for await (const sighting of letters.sightings(source.key)) addTo(counted, groupOf(sighting));
    const kept = withinLimit([...counted.values()]).map((group) => {
      const stored = read.groups.get(group.fingerprint);
      // Which causes are among the others changes with every recount, so what was counted of them is worth nothing.
      const isNew = stored === undefined || group.fingerprint === OVERFLOW;
      return isNew ? group : recounted(group, stored.group, settledUntil);
    });
    const names = new Set<string>(kept.map(({ fingerprint }) => fingerprint));
    const said = await triage.all();
    const empty = [...read.groups.values()]
      .filter(({ group }) => !names.has(group.fingerprint) && triageOf(said, group) !== undefined)
      .map(({ group }): Group => ({ ...group, total: 0, open: 0, trend: [], examples: [] }));
    for (const { fingerprint } of empty) names.add(fingerprint);
    const obsolete = [...read.groups.keys(), ...read.unreadable].filter((key) => !names.has(key));
    const isComplete = await store.replaceAll(source.key, [...kept, ...empty], read, obsolete);
    // What was refused was written meanwhile by somebody who recorded a letter: count again, with it.
    if (isComplete || tries >= MAX_RECOUNTS) return names.size;
  }
}

/** The largest groups, and the others as one: those with open letters before those without. */
function withinLimit(groups: readonly Group[]): Group[] {
  if (groups.length <= MAX_GROUPS) return [...groups];
  const sorted = groups.toSorted((a, b) => b.open - a.open || b.lastSeen - a.lastSeen);
  const others = sorted.slice(MAX_GROUPS).map((group) => ({ ...group, fingerprint: OVERFLOW, cause: OVERFLOW_CAUSE }));
  return [...sorted.slice(0, MAX_GROUPS), others.reduce(mergeGroups)];
}
