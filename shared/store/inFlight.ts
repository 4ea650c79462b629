import type { SourceKey } from '../letter.ts';
import { type Chunk, CLOSED_STATES, type PlanHead } from '../plan/plan.ts';
import type { Store } from './index.ts';

/** A chunk that a run began and did not end. */
export interface UnendedChunk {
  readonly head: PlanHead;
  readonly chunk: Chunk;
  /** Whether its plan will not end it any more. */
  readonly isGivenUp: boolean;
}

/**
 * Chunks of a source's plans that a run began and did not end: their letters may be in a target, or were decided to leave, and
 * still be in the dead-letter queue. Rows that cannot be read are passed over.
 */
export async function* unendedChunks(
  { plans, sources }: Pick<Store, 'plans' | 'sources'>,
  source: SourceKey,
): AsyncGenerator<UnendedChunk> {
  for await (const id of sources.plans(source)) {
    const head = await plans.readableHead(id);
    if (head === undefined || head.startedAt === undefined || head.state === 'finished') continue;
    const ignored = () => {};
    for await (const chunk of plans.chunks(id, { unfinished: true, onUnreadable: ignored })) {
      // One that was refused after an unknown outcome is planned again, and may have been divided or moved since.
      if (chunk.state === 'planned' && !chunk.maybeDuplicate) continue;
      yield { head, chunk, isGivenUp: CLOSED_STATES.includes(head.state) };
    }
  }
}
