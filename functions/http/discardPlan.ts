import { none, route } from '../../shared/http/route.ts';
import { runAnswer, runBody } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const discardPlan = route({
  name: 'discardPlan',
  method: 'POST',
  path: 'plans/{id}/discard',
  right: 'discard',
  summary: 'Runs a discard plan, once: its letters are removed for good. A function of its own, so a right of its own.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: runBody,
  handle: (office, input) => runAnswer(office, 'discard', input),
});
