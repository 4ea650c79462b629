import { z } from 'zod';
import { CATEGORIES } from '../../shared/classify/evidence.ts';
import { listGroups as list } from '../../shared/desk/groups.ts';
import { groupView } from '../../shared/http/groupViews.ts';
import { none, route } from '../../shared/http/route.ts';
import { continuation, top } from '../../shared/http/schemas.ts';
import { sourceNamed } from '../../shared/office.ts';
import { SHOWN_STATES } from '../../shared/records/triage.ts';
import { iso } from '../../shared/timeText.ts';

export const listGroups = route({
  name: 'listGroups',
  method: 'GET',
  path: 'groups',
  right: 'read',
  summary: 'Causes over all sources or one, those with most open letters first; by category and triage state.',
  needsOperator: false,
  params: none,
  query: z.strictObject({
    source: z.string().min(1).max(200).optional(),
    category: z.enum(CATEGORIES).optional(),
    state: z.enum(SHOWN_STATES).optional(),
    top,
    continuation,
  }),
  handle: async (office, { query }) => {
    const { category, state, top, continuation } = query;
    const source = query.source === undefined ? undefined : sourceNamed(office, query.source);
    const page = await list(office, source, { category, state }, top, continuation);
    return {
      status: 200,
      body: {
        open: page.open,
        asOf: iso(page.asOf),
        groups: page.groups.map(groupView),
        unreadable: page.unreadable,
        continuation: page.continuation ?? null,
      },
    };
  },
});
