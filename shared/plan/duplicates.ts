/** Which message ids a target would recognise and silently drop, decided from values. */
import type { Letter } from '../letter.ts';
import type { Choices, Facts } from '../records/plan.ts';

/**
 * A window ends by the broker's clock, and counts from when the broker took a send in: this much later or earlier than the office
 * thinks, ms.
 */
export const WINDOW_MARGIN = 60_000;

/** The longest window there can be, ms (Microsoft, "Duplicate detection"). */
export const LONGEST_WINDOW = 7 * 86_400_000;

/** Sends before this are surely forgotten by the target at `now` (ms since 1970), `undefined` where it detects no duplicates. */
export function windowStart(
  { duplicateDetection }: Pick<Facts, 'duplicateDetection'>,
  now: number,
): number | undefined {
  return duplicateDetection === undefined || duplicateDetection === false
    ? undefined
    : now - duplicateDetection - WINDOW_MARGIN;
}

/**
 * Whether the target may still know the message id of `letter` at `now`. It counts from the last send: the letter's own, a replay
 * of it, and `otherSend`, when the office knows of another one (ms since 1970). To a sandbox a letter itself was not sent.
 */
export function isInDuplicateWindow(
  facts: Pick<Facts, 'duplicateDetection'>,
  { target }: Pick<Choices, 'target'>,
  letter: Letter,
  now: number,
  otherSend = 0,
): boolean {
  const start = windowStart(facts, now);
  if (start === undefined || letter.messageId === undefined) return false;
  const ownSend = target === 'sandbox' ? 0 : Math.max(letter.enqueuedAt, letter.replay.at ?? 0);
  return Math.max(ownSend, otherSend) > start;
}
