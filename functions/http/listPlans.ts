import { z } from 'zod';
import { allKeys, listPlans as list } from '../../shared/desk/plans.ts';
import { none, route } from '../../shared/http/route.ts';
import { top } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';
import { PLAN_STATES } from '../../shared/records/plan.ts';

export const listPlans = route({
  name: 'listPlans',
  method: 'GET',
  path: 'plans',
  right: 'read',
  summary: 'Plans, newest first, by source and state.',
  needsOperator: false,
  params: none,
  query: z.strictObject({
    source: z.string().min(1).max(200).optional(),
    state: z.enum(PLAN_STATES).optional(),
    top,
  }),
  handle: async (office, { query }) => {
    const sources = query.source === undefined ? await allKeys(office) : [sourceNamed(office, query.source).key];
    const { heads, unreadable } = await list(office, sources, query.state, query.top);
    return { status: 200, body: { plans: heads.map(planView), unreadable } };
  },
});
