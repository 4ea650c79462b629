import { allStatuses } from '../../shared/desk/sources.ts';
import { none, route } from '../../shared/http/route.ts';
import { sourceView } from '../../shared/http/views.ts';

export const listSources = route({
  name: 'listSources',
  method: 'GET',
  path: 'sources',
  right: 'read',
  summary: 'Every source: owner, counts, oldest letter, growth, health.',
  needsOperator: false,
  params: none,
  query: none,
  handle: async (office) => {
    const statuses = await allStatuses(office);
    return { status: 200, body: { sources: statuses.map(sourceView) } };
  },
});
