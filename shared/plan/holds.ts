/** Groups on hold: whoever looks into a cause can be sure that nobody sends its letters back or removes them meanwhile. */
import { type Fingerprint, isCurrent } from '../classify/fingerprint.ts';
import type { SequenceNumber, SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { type Held, Holds } from '../records/onHold.ts';
import type { Choices, Finding, PlanHead } from '../records/plan.ts';
import { countOnHold } from './preflight.ts';

/** Groups on hold now, but for those that the choices include by name. Throws `DLO_STORE_UNAVAILABLE`. */
export async function activeHolds({ store }: Office, source: SourceKey, choices: Choices): Promise<Holds> {
  const said = await store.triage.all();
  // Rare, and only for some time after an update: a hold under a fingerprint of an earlier version.
  const isFormer = [...said.values()].some(({ fingerprint, state }) => state === 'on-hold' && !isCurrent(fingerprint));
  const groups = isFormer ? [...(await store.groups.list(source)).groups.values()] : [];
  const former = new Map(groups.map(({ group }) => [group.fingerprint, group.formerly]));
  return new Holds(said, former, choices.includeOnHold);
}

/**
 * Letters of a plan that have been put on hold since it was made and are not sent yet, as a finding that blocks. By what their
 * records say now; nearly always there is no hold, and this is one read.
 */
export async function heldSince(office: Office, head: PlanHead): Promise<Finding[]> {
  const { letters, plans } = office.store;
  const holds = await activeHolds(office, head.source, head.choices);
  if (holds.groups.length === 0) return [];
  const held = new Map<SequenceNumber, Fingerprint>();
  const note = ({ number, ...letter }: Held & { readonly number: SequenceNumber }) => {
    const group = holds.of(letter);
    if (group !== undefined) held.set(number, group);
  };
  for (const group of holds.groups) for await (const letter of letters.ofGroup(head.source, group)) note(letter);
  for await (const letter of letters.outdated(head.source)) note(letter);
  if (held.size === 0) return [];
  let findings: Finding[] = [];
  for await (const chunk of plans.chunks(head.id, { unfinished: true })) {
    if (chunk.state === 'sent') continue; // in the target already: completing it is all that is left
    for (const { number } of chunk.letters) {
      const group = held.get(number);
      if (group !== undefined) findings = countOnHold(findings, group, 'block');
    }
  }
  return findings;
}
