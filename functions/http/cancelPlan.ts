import { none, route } from '../../shared/http/route.ts';
import { planPath } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';
import { cancelPlan as cancel } from '../../shared/plan/control.ts';

export const cancelPlan = route({
  name: 'cancelPlan',
  method: 'POST',
  path: 'plans/{id}/cancel',
  right: 'replay',
  summary: 'Ends a plan: letters not sent yet stay where they are. Cancelling what is cancelled does nothing.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: none,
  handle: async (office, { params, operator }) => {
    const head = await cancel(office, params.id, operator);
    return { status: head.request === 'none' ? 200 : 202, body: planView(head) };
  },
});
