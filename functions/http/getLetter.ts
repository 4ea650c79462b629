import { historyOf } from '../../shared/desk/history.ts';
import { getLetter as get } from '../../shared/desk/letters.ts';
import { none, route } from '../../shared/http/route.ts';
import { letterPath } from '../../shared/http/schemas.ts';
import { historyView, letterView } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';

export const getLetter = route({
  name: 'getLetter',
  method: 'GET',
  path: 'sources/{source}/letters/{sequenceNumber}',
  right: 'read',
  summary: 'One letter: evidence, properties, and its earlier deaths. The body has a route and a right of its own.',
  needsOperator: false,
  params: letterPath,
  query: none,
  handle: async (office, { params }) => {
    const source = sourceNamed(office, params.source);
    const record = await get(office, source, params.sequenceNumber);
    const history = await historyOf(office, source, record);
    return { status: 200, body: { ...letterView(source, record), ...historyView(office.catalog, source, history) } };
  },
});
