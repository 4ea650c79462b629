/** A letter as the office has it on record. */
import type { Classification } from '../classify/evidence.ts';
import type { Fingerprint } from '../classify/fingerprint.ts';
import type { Letter, PlanId, SourceKey } from '../letter.ts';

/** How a letter left. `gone`: it was not there any more, and not by the office's doing. */
export const FATES = ['replayed', 'discarded', 'expired', 'gone'] as const;
export type LetterFate = (typeof FATES)[number];

/** A letter as recorded. Bodies are never stored. Times are ms since 1970. */
export interface LetterRecord {
  readonly source: SourceKey;
  /** The office that recorded it. */
  readonly office: string;
  /** As read; `state` is what it was then. */
  readonly letter: Letter;
  readonly classification: Classification;
  /** Its group, and the cause in words. */
  readonly fingerprint: Fingerprint;
  readonly cause: string;
  /** Its group by the rules of an earlier version: what was said of that one counts for it still. */
  readonly formerly?: Fingerprint;
  readonly firstSeen: number;
  /** Columns that were cut to the table's limits. */
  readonly cut: readonly string[];
  /** Why the store did not take the whole record; then what the message says in words is not on it. */
  readonly refused?: string;
  /** Fields in which something was hidden when the record was written, see shared/mask.ts. */
  readonly hidden?: readonly string[];
  /** A plan that may have sent it already, although the letter is still here. */
  readonly maybeSentBy?: PlanId;
  /** Absent while the letter is open. */
  readonly closed?: { readonly fate: LetterFate; readonly at: number; readonly planId?: PlanId };
}
