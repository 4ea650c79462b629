import { getPlan as get } from '../../shared/desk/plans.ts';
import { none, route } from '../../shared/http/route.ts';
import { planPath } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';
import { iso } from '../../shared/timeText.ts';

export const getPlan = route({
  name: 'getPlan',
  method: 'GET',
  path: 'plans/{id}',
  right: 'read',
  summary: 'One plan: what is planned, how far it is, how many letters came back.',
  needsOperator: false,
  params: planPath,
  query: none,
  handle: async (office, { params }) => {
    const { head, returned, asOf } = await get(office, params.id);
    return { status: 200, body: { ...planView(head), returned, asOf: iso(asOf) } };
  },
});
