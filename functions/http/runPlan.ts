import { none, route } from '../../shared/http/route.ts';
import { runAnswer, runBody } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const runPlan = route({
  name: 'runPlan',
  method: 'POST',
  path: 'plans/{id}/run',
  right: 'replay',
  summary: 'Runs a replay plan, once. 200 when it finished within `Prefer: wait=` seconds (at most 60), else 202.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: runBody,
  handle: (office, input) => runAnswer(office, 'replay', input),
});
