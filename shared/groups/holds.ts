/** Groups on hold: whoever looks into a cause can be sure that nobody sends its letters back or removes them meanwhile. */
import type { Fingerprint } from '../classify/fingerprint.ts';
import type { SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { Choices, Finding, PlanHead } from '../plan/plan.ts';
import { countOnHold } from '../plan/preflight.ts';

/** Groups on hold now, but for those that the plan includes by name. Throws `DLO_STORE_UNAVAILABLE`. */
export async function activeHolds(office: Office, choices: Choices): Promise<ReadonlySet<Fingerprint>> {
  const holds = new Set<Fingerprint>();
  for (const { fingerprint, state } of (await office.store.triage.all()).values()) {
    if (state === 'on-hold' && !choices.includeOnHold?.includes(fingerprint)) holds.add(fingerprint);
  }
  return holds;
}

/**
 * Letters of a plan that have been put on hold since it was made and are not sent yet, as a finding that blocks. By what their
 * records say now; nearly always there is no hold, and this is one read.
 */
export async function heldSince(office: Office, head: PlanHead): Promise<Finding[]> {
  const groups = new Map<SequenceNumber, Fingerprint>();
  for (const fingerprint of await activeHolds(office, head.choices)) {
    for await (const number of office.store.letters.numbersOf(head.source, fingerprint))
      groups.set(number, fingerprint);
  }
  if (groups.size === 0) return [];
  let findings: Finding[] = [];
  for await (const chunk of office.store.plans.chunks(head.id, { unfinished: true })) {
    if (chunk.state === 'sent') continue; // in the target already: completing it is all that is left
    for (const { number } of chunk.letters) {
      const group = groups.get(number);
      if (group !== undefined) findings = countOnHold(findings, group, 'block');
    }
  }
  return findings;
}
