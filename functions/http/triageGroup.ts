import { setTriage } from '../../shared/desk/groups.ts';
import { groupView } from '../../shared/http/groupViews.ts';
import { none, route } from '../../shared/http/route.ts';
import { groupPath } from '../../shared/http/schemas.ts';
import { triageSchema } from '../../shared/records/triage.ts';

export const triageGroup = route({
  name: 'triageGroup',
  method: 'POST',
  path: 'groups/{fingerprint}/triage',
  // A hold stops the replays of others, and lifting one lets them go: who may only look must be able to do neither.
  right: 'replay',
  summary:
    'Says who looks after a cause, and whether it is on hold or resolved. `on-hold` keeps its letters out of plans.',
  needsOperator: true,
  params: groupPath,
  query: none,
  body: triageSchema,
  handle: async (office, { params, body, operator }) => {
    const found = await setTriage(office, params.fingerprint, body, operator);
    return { status: 200, body: groupView(found) };
  },
});
