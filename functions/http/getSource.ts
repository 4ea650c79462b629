import { sourceStatus } from '../../shared/desk/sources.ts';
import { none, route } from '../../shared/http/route.ts';
import { sourcePath } from '../../shared/http/schemas.ts';
import { sourceView } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';

export const getSource = route({
  name: 'getSource',
  method: 'GET',
  path: 'sources/{source}',
  right: 'read',
  summary: 'One source: owner, counts, oldest letter, growth, health, and who holds it.',
  needsOperator: false,
  params: sourcePath,
  query: none,
  handle: async (office, { params }) => ({
    status: 200,
    body: sourceView(await sourceStatus(office, sourceNamed(office, params.source))),
  }),
});
