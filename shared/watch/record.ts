import type { ReadLetter } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { formerFingerprint } from '../classify/former/fingerprint.ts';
import { countLetters, countReturned } from '../groups/keep.ts';
import type { PlanId, SequenceNumber } from '../letter.ts';
import { shownOf } from '../mask.ts';
import type { Office } from '../office.ts';
import { tellRecorded, tellReturned } from '../telemetry/tell.ts';
import { isReturned } from './returned.ts';

/**
 * Classifies letters and records them; the one way in which trigger, timer and reconcile do it. A letter that an
 * earlier plan sent back is tied to that plan. Returns the numbers of those whose records say that they have left, for
 * {@link reopen}. Throws `DLO_STORE_UNAVAILABLE`; recording again is harmless.
 */
export async function recordLetters(
  office: Office,
  source: Source,
  read: readonly ReadLetter[],
): Promise<SequenceNumber[]> {
  if (read.length === 0) return [];
  const now = office.clock();
  const classified = read.map(({ letter, message }) => {
    const classification = office.classifier.classify(source, letter, () => office.broker.bodyOf(message));
    return { letter, classification, shown: shownOf(source, letter, classification) };
  });
  // Groups, signals and plans are told only what may be shown.
  const told = classified.map(({ classification, shown }) => ({
    ...shown,
    // An earlier version made its groups of all there is; it is no more than a name.
    formerly: formerFingerprint(classification.evidence),
  }));
  const met = await office.store.letters.record(source.key, classified, now);
  const recorded = met.map((one) => (one === 'closed' ? 'known' : one));
  await countLetters(office, source, told, recorded, now);
  tellRecorded(office, source, told, recorded);
  const returned = new Map<PlanId, SequenceNumber[]>();
  for (const [i, { letter, shown }] of classified.entries()) {
    const { planId, of } = letter.replay;
    if (planId === undefined || !(await isReturned(office, source, letter, planId))) continue;
    await office.store.plans.addReturned(planId, {
      source: source.key,
      number: letter.sequenceNumber,
      of,
      reason: shown.classification.evidence.reason ?? '',
      at: now,
    });
    if (of !== undefined) returned.set(planId, [...(returned.get(planId) ?? []), of]);
    if (recorded[i] !== 'known') tellReturned(office, source);
  }
  for (const [planId, numbers] of returned) await countReturned(office, planId, numbers, now);
  return read.filter((_one, i) => met[i] === 'closed').map(({ letter }) => letter.sequenceNumber);
}
