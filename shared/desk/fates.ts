/** The fates of a plan's letters, as they are listed. */
import type { Chunk, Exception, PlanHead } from '../records/plan.ts';

/** Letters of a chunk with their fates; those with a fate of their own are told by {@link exceptionView}. */
export function chunkLetters(head: PlanHead, chunk: Chunk) {
  const stopped = head.state === 'cancelled' || head.state === 'expired';
  const fate = chunk.state === 'done' ? 'done' : stopped ? 'left' : 'pending';
  // Left behind after it was sent: its first letter was never seen in the subscription.
  const isLeftSent = fate === 'left' && chunk.state === 'sent' && head.action === 'replay';
  const maybeDuplicate = chunk.maybeDuplicate || (chunk.state === 'sending' && fate !== 'done') || isLeftSent;
  return chunk.letters.map(({ number }) => ({
    sequenceNumber: number as string,
    fate: fate as string,
    reason: fate === 'left' ? (head.state as string) : null,
    maybeDuplicate,
  }));
}

export function exceptionView({ number, fate, maybeDuplicate }: Exception) {
  return { sequenceNumber: number as string, fate: fate.kind as string, reason: fate.reason as string, maybeDuplicate };
}
