import { none, route } from '../../shared/http/route.ts';
import { sourcePath } from '../../shared/http/schemas.ts';
import { sourceNamed } from '../../shared/office.ts';
import { collect } from '../../shared/watch/collect.ts';

export const collectNow = route({
  name: 'collectNow',
  method: 'POST',
  path: 'sources/{source}/collect',
  right: 'read',
  summary: 'Collects a source now instead of at the next minute.',
  needsOperator: false,
  params: sourcePath,
  query: none,
  body: none,
  handle: async (office, { params }) => ({
    status: 200,
    body: await collect(office, sourceNamed(office, params.source)),
  }),
});
