import { z } from 'zod';
import { listAudit as list } from '../../shared/desk/audit.ts';
import { none, route } from '../../shared/http/route.ts';
import { planPath, top } from '../../shared/http/schemas.ts';
import { auditView } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';
import { instant } from '../../shared/selection.ts';

export const listAudit = route({
  name: 'listAudit',
  method: 'GET',
  path: 'audit',
  right: 'read',
  summary: 'Who did what, newest first. `before` is the time from which to go back.',
  needsOperator: false,
  params: none,
  query: z.strictObject({
    source: z.string().min(1).max(200).optional(),
    plan: planPath.shape.id.optional(),
    before: instant.optional(),
    top,
  }),
  handle: async (office, { query }) => {
    const source = query.source === undefined ? undefined : sourceNamed(office, query.source).key;
    const { entries, unreadable } = await list(office, { source, planId: query.plan, before: query.before }, query.top);
    return { status: 200, body: { entries: entries.map(auditView), unreadable } };
  },
});
