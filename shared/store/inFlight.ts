import type { PlanId, SourceKey } from '../letter.ts';
import { inParallel } from '../parallel.ts';
import { type Chunk, CLOSED_STATES, type PlanHead } from '../records/plan.ts';
import type { Store } from './index.ts';

/** A chunk that a run began and did not end. */
export interface UnendedChunk {
  readonly head: PlanHead;
  readonly chunk: Chunk;
  /** Whether its plan will not end it any more. */
  readonly isGivenUp: boolean;
}

/** The plans of a source that were started at any time, newest first; of those that cannot be read, what can. */
export async function begunPlans(
  { plans, sources }: Pick<Store, 'plans' | 'sources'>,
  source: SourceKey,
): Promise<PlanHead[]> {
  const ids: PlanId[] = [];
  for await (const id of sources.plans(source)) ids.push(id);
  const heads = await inParallel(ids, (id) => plans.salvage(id));
  return heads.flatMap((found) => (found?.head.startedAt === undefined ? [] : [found.head]));
}

/**
 * Chunks of these plans that a run began and did not end: their letters may be in a target, or were decided to leave, and
 * still be in the dead-letter queue. Rows that cannot be read are passed over.
 */
export async function* unendedChunks(
  { plans }: Pick<Store, 'plans'>,
  heads: readonly PlanHead[],
): AsyncGenerator<UnendedChunk> {
  for (const head of heads) {
    if (head.state === 'finished') continue;
    const ignored = () => {};
    for await (const chunk of plans.chunks(head.id, { unfinished: true, onUnreadable: ignored })) {
      // One that was refused after an unknown outcome is planned again, and may have been divided or moved since.
      if (chunk.state === 'planned' && !chunk.maybeDuplicate) continue;
      yield { head, chunk, isGivenUp: CLOSED_STATES.includes(head.state) };
    }
  }
}
