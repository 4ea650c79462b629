import { none, route } from '../../shared/http/route.ts';
import { planView } from '../../shared/http/views.ts';
import { stopAll } from '../../shared/plan/control.ts';

export const stop = route({
  name: 'stop',
  method: 'POST',
  path: 'stop',
  right: 'replay',
  summary: 'Pauses every run, discards too.',
  needsOperator: true,
  params: none,
  query: none,
  body: none,
  handle: async (office, { operator }) => {
    const { stopped, failed } = await stopAll(office, operator);
    return { status: 200, body: { plans: stopped.map(planView), failed } };
  },
});
