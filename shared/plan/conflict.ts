/** Plans over the same letters: one that begins must know what the others have begun. */
import { OfficeError } from '../errors.ts';
import type { PlanId, SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import { type ChunkLetter, CLOSED_STATES, type PlanHead } from '../records/plan.ts';
import { begunPlans, unendedChunks } from '../store/inFlight.ts';

/** What another plan has done with a letter of this one. */
interface Claim {
  readonly plan: PlanHead;
  /** The message it did it with; unknown where only the number was kept. */
  readonly identity: string | undefined;
  /** Begun and not ended: that plan may still end it. Else it may have sent the letter, and will do nothing more. */
  readonly isOpen: boolean;
}

/**
 * Refuses to let a plan begin or go on over letters that another plan has begun to send or to remove, or that another may have
 * sent without this one being told when it was made. To be asked under the source's lease, so that no other plan begins
 * meanwhile. Throws `DLO_LETTERS_UNENDED`, which names the other plan.
 */
export async function refuseUnended(office: Office, head: PlanHead): Promise<void> {
  if (isCopying(head)) return;
  const claims = await claimsOfOthers(office, head);
  if (claims.size === 0) return;
  const ignored = () => {}; // the run stops where it finds it
  for await (const chunk of office.store.plans.chunks(head.id, { unfinished: true, onUnreadable: ignored })) {
    if (chunk.state === 'sent') continue; // its letters are where they should be; what remains doubles nothing
    const met = chunk.letters.flatMap((letter) => {
      const claim = claimOn(claims, letter);
      // What is marked was known when this plan was made.
      return claim !== undefined && (claim.isOpen || !chunk.maybeDuplicate) ? [claim] : [];
    });
    const [first] = met;
    if (first !== undefined) throw refusal(head.id, first, met.length);
  }
}

function claimOn(claims: ReadonlyMap<SequenceNumber, Claim>, { number, identity }: ChunkLetter): Claim | undefined {
  const claim = claims.get(number);
  return claim?.identity === undefined || claim.identity === identity ? claim : undefined;
}

async function claimsOfOthers({ store }: Office, head: PlanHead): Promise<Map<SequenceNumber, Claim>> {
  const claims = new Map<SequenceNumber, Claim>();
  const add = (number: SequenceNumber, claim: Claim) => {
    if (claims.get(number)?.isOpen !== true) claims.set(number, claim);
  };
  const plans = (await begunPlans(store, head.source)).filter((other) => isConcerned(head, other));
  for await (const { head: plan, chunk, isGivenUp } of unendedChunks(store, plans)) {
    for (const { number, identity } of chunk.letters) add(number, { plan, identity, isOpen: !isGivenUp });
  }
  for (const plan of plans) {
    if (plan.counts.maybeDuplicate === 0) continue;
    const ignored = () => {};
    for await (const { number, fate, maybeDuplicate } of store.plans.exceptions(plan.id, { onUnreadable: ignored })) {
      const isGone = fate.kind === 'skipped' && fate.reason === 'gone';
      if (maybeDuplicate && !isGone) add(number, { plan, identity: undefined, isOpen: false });
    }
  }
  return claims;
}

/** Whether what `other` has done can matter to `head`: letters that it marked before this plan was made are told by the findings. */
function isConcerned(head: PlanHead, other: PlanHead): boolean {
  if (other.id === head.id || isCopying(other)) return false;
  if (!CLOSED_STATES.includes(other.state)) return true;
  return other.action === 'replay' && (other.finishedAt ?? 0) >= head.createdAt;
}

/** Copies in a sandbox double nothing. */
function isCopying({ action, choices }: PlanHead): boolean {
  return action === 'replay' && choices.target === 'sandbox';
}

function refusal(id: PlanId, { plan, isOpen }: Claim, letters: number): OfficeError {
  const what = isOpen
    ? `plan ${plan.id} (${plan.state}) has begun with ${letters} letters of plan ${id} and has not ended them`
    : `plan ${plan.id} (${plan.state}) may have sent ${letters} letters of plan ${id}, and ended after that was made`;
  return new OfficeError('DLO_LETTERS_UNENDED', what, { data: { plan: plan.id, state: plan.state, letters } });
}
