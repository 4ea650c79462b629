/** Looks at the front of a target, for signs that somebody consumes what was sent there. */
import { isMistake } from '../../errors.ts';
import { isCopyOf, type Letter, type PlanId, sequenceNumber } from '../../letter.ts';
import type { Namespace } from './namespace.ts';
import { readLetter } from './readLetter.ts';

/** A bounded look: a backlog longer than this hides the plan's messages, and then nothing is claimed. */
const MAX_PEEKED = 1000;
const PAGE = 250;

/**
 * Whether messages of that plan, or only copies of `sent`, wait in `entity`. `unknown` when it may not be peeked (a topic, or no right to listen), or
 * when more waits there than was looked at. Locks and changes nothing.
 */
export async function lookForWaiting(
  namespace: Namespace,
  entity: string,
  planId: PlanId,
  sent?: readonly Letter[],
): Promise<'yes' | 'no' | 'unknown'> {
  const isOurs = (letter: Letter) =>
    letter.replay.planId === planId && (sent === undefined || sent.some((original) => isCopyOf(letter, original)));
  try {
    return await namespace.use('peek', async (line) => {
      const node = await line.management(entity);
      let from = sequenceNumber(0n);
      for (let seen = 0; seen < MAX_PEEKED; ) {
        const page = (await node.peek(from, PAGE, false)).map(readLetter);
        if (page.length === 0) return 'no';
        if (page.some(isOurs)) return 'yes';
        seen += page.length;
        from = sequenceNumber(page.reduce((max, letter) => bigger(max, BigInt(letter.sequenceNumber)), 0n) + 1n);
      }
      return 'unknown';
    });
  } catch (error) {
    if (isMistake(error)) throw error;
    // Not an error of the run: the look is a courtesy, and a run must not depend on a right it does not need.
    return 'unknown';
  }
}

function bigger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
