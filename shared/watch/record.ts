import type { Source } from '../catalog.ts';
import { classify } from '../classify/index.ts';
import { countLetters } from '../groups/keep.ts';
import type { Letter } from '../letter.ts';
import type { Office } from '../office.ts';

/**
 * Classifies letters and records them; the one way in which trigger, timer and reconcile do it. A letter that an
 * earlier plan sent back is tied to that plan. Throws `DLO_STORE_UNAVAILABLE`; recording again is harmless.
 */
export async function recordLetters(office: Office, source: Source, letters: readonly Letter[]): Promise<void> {
  if (letters.length === 0) return;
  const now = office.clock();
  const classified = letters.map((letter) => ({ letter, classification: classify(letter, office.dialects) }));
  const recorded = await office.store.letters.record(source.key, classified, now);
  await countLetters(office, source, classified, recorded, now);
  for (const { letter, classification } of classified) {
    if (letter.replay.planId === undefined) continue;
    await office.store.plans.addReturned(letter.replay.planId, {
      source: source.key,
      number: letter.sequenceNumber,
      of: letter.replay.of,
      reason: classification.evidence.reason ?? '',
      at: now,
    });
  }
}
