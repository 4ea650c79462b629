import type { PlanId, SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import type { AuditEntry } from '../store/audit.ts';

/** How far back a list goes at most: entries are kept in months. */
const MONTHS = 14;

/** Audit entries, newest first, and how many on the way could not be read. */
export async function listAudit(
  office: Office,
  filter: { source?: SourceKey | undefined; planId?: PlanId | undefined; before?: number | undefined },
  top: number,
): Promise<{ entries: AuditEntry[]; unreadable: number }> {
  const entries: AuditEntry[] = [];
  let unreadable = 0;
  const options = {
    before: filter.before ?? office.clock() + 1000,
    months: MONTHS,
    ...(filter.source !== undefined && { source: filter.source }),
    ...(filter.planId !== undefined && { planId: filter.planId }),
  };
  for await (const entry of office.store.audit.list(options)) {
    if (entry === undefined) unreadable++;
    else entries.push(entry);
    if (entries.length >= top) break;
  }
  return { entries, unreadable };
}
