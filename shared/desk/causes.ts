/** What the open letters died of, counted now, and the head line over it. */
import type { Source } from '../catalog.ts';
import type { Fingerprint } from '../classify/fingerprint.ts';
import { type CauseLine, headLine } from '../groups/headLine.ts';
import type { Office } from '../office.ts';
import { addTo, type Group, groupOf, mergeGroups } from '../records/group.ts';
import { advicesFor, didNotHelp, type Replays } from '../records/replays.ts';
import { shownState, triageOf } from '../records/triage.ts';

/** A cause with its open letters. */
export interface CauseSummary extends CauseLine {
  readonly group: Group;
  readonly replays: Replays;
}

/** Causes, most frequent first, the sentence over them, and how many records could not be read. */
export interface Causes {
  readonly causes: readonly CauseSummary[];
  readonly headLine: string;
  readonly unreadable: number;
}

/** Counts the open letters of `sources` by their cause. Throws `DLO_STORE_UNAVAILABLE`. */
export async function summariseCauses(office: Office, sources: readonly Source[]): Promise<Causes> {
  const all = new Map<Fingerprint, { group: Group; sources: Source[] }>();
  const kept = new Map<Fingerprint, Group>();
  let unreadable = 0;
  const options = { openOnly: true, onUnreadable: () => unreadable++ };
  for (const source of sources) {
    const here = new Map<Fingerprint, Group>();
    // What was sent back before is not among the open letters; the groups know of it.
    for (const { group } of (await office.store.groups.list(source.key)).groups.values()) addTo(kept, group);
    for await (const sighting of office.store.letters.sightings(source.key, options)) addTo(here, groupOf(sighting));
    for (const [fingerprint, group] of here) {
      const known = all.get(fingerprint);
      if (known === undefined) all.set(fingerprint, { group, sources: [source] });
      else all.set(fingerprint, { group: mergeGroups(known.group, group), sources: [...known.sources, source] });
    }
  }
  const triages = await office.store.triage.all();
  const causes = [...all.values()]
    .map(({ group, sources: where }): CauseSummary => {
      const triage = triageOf(triages, group);
      const replays: Replays = kept.get(group.fingerprint) ?? group;
      return {
        ...shownState(triage, group.lastSeen),
        group,
        replays,
        cause: group.cause,
        count: group.open,
        firstSeen: group.firstSeen,
        lastSeen: group.lastSeen,
        advices: advicesFor(group.advices, didNotHelp(replays, triage)),
        sources: where.map(({ name, of }) => ({ name, kind: of.kind })),
      };
    })
    .sort((a, b) => b.count - a.count || (a.group.fingerprint < b.group.fingerprint ? -1 : 1));
  const unread = unreadable === 0 ? '' : ` ${unreadable} more record${unreadable === 1 ? '' : 's'} cannot be read.`;
  return { causes, headLine: `${headLine(causes, office.clock())}${unread}`, unreadable };
}
