import { none, route } from '../../shared/http/route.ts';
import { cancelAnswer } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const cancelDiscard = route({
  name: 'cancelDiscard',
  method: 'POST',
  path: 'plans/{id}/discard/cancel',
  right: 'discard',
  summary: 'Ends a discard: letters not removed yet stay where they are.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: none,
  handle: (office, input) => cancelAnswer(office, 'discard', input),
});
