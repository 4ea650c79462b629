import { none, route } from '../../shared/http/route.ts';
import { cancelAnswer } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const cancelPlan = route({
  name: 'cancelPlan',
  method: 'POST',
  path: 'plans/{id}/cancel',
  right: 'replay',
  summary:
    'Ends a replay, or any plan that has not run: letters not sent yet stay where they are. Cancelling what is cancelled does nothing.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: none,
  handle: (office, input) => cancelAnswer(office, 'replay', input),
});
