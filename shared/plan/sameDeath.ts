import type { Office } from '../office.ts';
import type { PlanHead } from '../records/plan.ts';

/** Letters looked at: enough for a sign, few enough for a run that is about to end. */
const LOOKED_AT = 5;

const HINT =
  ', for the same reason and under the same message ids: not mended, or a consumer remembers ids (then plan with messageId "new")';

/**
 * What it may mean that letters of a plan came back, to be put behind what is said of them: words where all that are looked at died
 * again of the same reason under the same message id, else nothing. Throws `DLO_STORE_UNAVAILABLE`.
 */
export async function hintOfReturned(office: Office, head: PlanHead): Promise<string> {
  const { letters, plans } = office.store;
  let looked = 0;
  for await (const { source, number, of } of plans.returned(head.id)) {
    if (looked++ >= LOOKED_AT) break;
    if (of === undefined) return '';
    const [before, after] = await Promise.all([letters.get(head.source, of), letters.get(source, number)]);
    const isSame =
      before?.letter.messageId !== undefined &&
      before.letter.messageId === after?.letter.messageId &&
      before.fingerprint === after.fingerprint;
    if (!isSame) return '';
  }
  return looked === 0 ? '' : HINT;
}
