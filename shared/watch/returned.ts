import { type Source, sourceKey } from '../catalog.ts';
import { isOfficeError } from '../errors.ts';
import { isCopyOf, type Letter, type PlanId, type SequenceNumber, type SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../records/letterRecord.ts';

/**
 * Whether a letter is one that the plan it names has sent, and that died again: in the dead-letter queue of that plan's target,
 * under the number and with the message id of a letter that the plan got to. A message that was made of a replayed one carries
 * its properties, and must not stop the run that sent that one.
 */
export async function isReturned(office: Office, source: Source, letter: Letter, planId: PlanId): Promise<boolean> {
  const { of } = letter.replay;
  const plan = (await office.store.plans.salvage(planId))?.head;
  if (plan === undefined || of === undefined || !diesHere(source, plan)) return false;
  const original = await recordOf(office, plan.source, of);
  if (original !== undefined) {
    if (!isCopyOf(letter, original.letter)) return false;
    if (letter.messageId === undefined && letter.body.hash !== original.letter.body.hash) return false;
    if (original.closed?.planId === planId) return true;
  }
  // It can be back before its record is closed; of a copy in a sandbox, or sent by a run that could not make sure, it never is.
  return office.store.plans.hasBegun(planId, of);
}

/** Whether what is sent to the plan's target dies in the dead-letter queue of `source`. */
function diesHere(source: Source, plan: { readonly source: SourceKey; readonly target: string }): boolean {
  const [host = ''] = plan.source.split('|');
  const target = sourceKey(host, plan.target);
  if (source.key === target) return true;
  return source.of.kind === 'subscription' && sourceKey(source.namespace.host, source.of.topic) === target;
}

async function recordOf(office: Office, source: SourceKey, number: SequenceNumber): Promise<LetterRecord | undefined> {
  try {
    return await office.store.letters.get(source, number);
  } catch (error) {
    if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return undefined;
    throw error;
  }
}
