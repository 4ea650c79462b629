import { getGroup as get } from '../../shared/desk/groups.ts';
import { groupView } from '../../shared/http/groupViews.ts';
import { none, route } from '../../shared/http/route.ts';
import { groupPath } from '../../shared/http/schemas.ts';
import { iso } from '../../shared/timeText.ts';
import { asOf } from '../../shared/watch/freshness.ts';

export const getGroup = route({
  name: 'getGroup',
  method: 'GET',
  path: 'groups/{fingerprint}',
  right: 'read',
  summary: 'One cause over all sources: counts, trend, message types, examples, and what was said of it.',
  needsOperator: false,
  params: groupPath,
  query: none,
  handle: async (office, { params }) => {
    const at = await asOf(office, office.catalog.sources);
    return { status: 200, body: { asOf: iso(at), ...groupView(await get(office, params.fingerprint)) } };
  },
});
