import { none, route } from '../../shared/http/route.ts';
import { pauseAnswer } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const pausePlan = route({
  name: 'pausePlan',
  method: 'POST',
  path: 'plans/{id}/pause',
  right: 'replay',
  summary: 'Pauses a run, a replay or a discard, after the chunk in flight. Pausing what is paused does nothing.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: none,
  handle: pauseAnswer,
});
