import { none, route } from '../../shared/http/route.ts';
import { planPath } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';
import { pausePlan as pause } from '../../shared/plan/control.ts';

export const pausePlan = route({
  name: 'pausePlan',
  method: 'POST',
  path: 'plans/{id}/pause',
  right: 'replay',
  summary: 'Pauses a run after the chunk in flight. Pausing what is paused does nothing.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: none,
  handle: async (office, { params, operator }) => {
    const head = await pause(office, params.id, operator);
    return { status: head.request === 'none' ? 200 : 202, body: planView(head) };
  },
});
