/** What became of a cause's letters that were sent back, and what follows from it. Values only. */
import type { Advice } from '../classify/evidence.ts';
import type { Counted } from './group.ts';
import type { Triage } from './triage.ts';

/** Letters of a cause that were sent back, of those on record. */
export interface Replays {
  readonly sent: number;
  /** Of these, the ones that died again, whatever of. */
  readonly returned: number;
  /** When the last of them was seen again, ms since 1970. */
  readonly lastReturned: number | undefined;
}

/** Whether sending back did not help; until somebody says that the cause is resolved, and then until one comes back again. */
export function didNotHelp({ returned, lastReturned }: Replays, triage: Triage | undefined): boolean {
  if (returned === 0) return false;
  return triage?.resolvedAt === undefined || lastReturned === undefined || lastReturned > triage.resolvedAt;
}

/** Advice for a cause: what came back although it was to be sent back has to be looked at. */
export function advicesFor(advices: Counted<Advice>, isBack: boolean): Counted<Advice> {
  if (!isBack) return advices;
  const counts = new Map<Advice, number>();
  for (const [advice, count] of advices) {
    const told = advice === 'replay' ? 'investigate' : advice;
    counts.set(told, (counts.get(told) ?? 0) + count);
  }
  return [...counts].sort(([, n], [, m]) => m - n);
}
