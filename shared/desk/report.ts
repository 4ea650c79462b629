/** The account of a run, to be pasted into an incident report. */

import type { PlanId } from '../letter.ts';
import type { Office } from '../office.ts';
import { expireIfOld } from '../plan/control.ts';
import { loadPlan } from '../plan/journal.ts';
import { countsText } from '../plan/run.ts';
import type { PlanHead } from '../records/plan.ts';
import { iso } from '../timeText.ts';

/** Most letters told one by one. */
const MAX_TOLD = 50;

/** What became of a plan. */
export interface RunReport {
  readonly head: PlanHead;
  /** Letters with a fate of their own, by fate and reason. */
  readonly otherwise: Readonly<Record<string, number>>;
  /** Letters that came back, by their new reason. */
  readonly returned: Readonly<Record<string, number>>;
  /** The first of them. */
  readonly returnedLetters: readonly { of: string | null; sequenceNumber: string; reason: string; at: string | null }[];
}

/** Gathers the report of a plan. Throws `DLO_PLAN_UNKNOWN`. */
export async function reportOn(office: Office, id: PlanId): Promise<RunReport> {
  const { head } = await expireIfOld(office, await loadPlan(office, id));
  const otherwise = new Map<string, number>();
  const onUnreadable = () => otherwise.set('unreadable', (otherwise.get('unreadable') ?? 0) + 1);
  for await (const { fate } of office.store.plans.exceptions(id, { onUnreadable })) {
    const key = `${fate.kind}: ${fate.reason}`;
    otherwise.set(key, (otherwise.get(key) ?? 0) + 1);
  }
  const returned = new Map<string, number>();
  const returnedLetters: { of: string | null; sequenceNumber: string; reason: string; at: string | null }[] = [];
  for await (const { of, number, reason, at } of office.store.plans.returned(id)) {
    returned.set(reason, (returned.get(reason) ?? 0) + 1);
    if (returnedLetters.length < MAX_TOLD) {
      returnedLetters.push({ of: of ?? null, sequenceNumber: number, reason, at: iso(at) });
    }
  }
  return {
    head,
    otherwise: Object.fromEntries(otherwise),
    returned: Object.fromEntries(returned),
    returnedLetters,
  };
}

/** The report as text, a line a fact. */
export function reportText({ head, otherwise, returned }: RunReport): string {
  const back = Object.values(returned).reduce((sum, count) => sum + count, 0);
  const lines = [
    `${head.action === 'replay' ? 'Replay' : 'Discard'} ${head.id} of ${head.sourceName}: ${head.state}`,
    ...(head.stateReason ? [`Because: ${head.stateReason}`] : []),
    ...(head.target ? [`Sent to: ${head.target}`] : []),
    `Selection: ${head.selection}`,
    `Planned ${iso(head.createdAt)} by ${head.createdBy}`,
    ...(head.startedAt === undefined ? ['Never started'] : [`Started ${iso(head.startedAt)} by ${head.startedBy}`]),
    ...(head.finishedAt === undefined ? [] : [`Ended ${iso(head.finishedAt)}`]),
    `Letters: ${countsText(head.counts)}`,
    ...Object.entries(otherwise).map(([why, count]) => `  ${count} ${why}`),
    `Came back: ${back}`,
    ...Object.entries(returned).map(([reason, count]) => `  ${count} ${reason || '(no reason)'}`),
  ];
  return `${lines.join('\n')}\n`;
}
