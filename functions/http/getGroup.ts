import { getGroup as get } from '../../shared/desk/groups.ts';
import { groupView } from '../../shared/http/groupViews.ts';
import { none, route } from '../../shared/http/route.ts';
import { groupPath } from '../../shared/http/schemas.ts';

export const getGroup = route({
  name: 'getGroup',
  method: 'GET',
  path: 'groups/{fingerprint}',
  right: 'read',
  summary: 'One cause over all sources: counts, trend, message types, examples, and what was said of it.',
  needsOperator: false,
  params: groupPath,
  query: none,
  handle: async (office, { params }) => ({ status: 200, body: groupView(await get(office, params.fingerprint)) }),
});
