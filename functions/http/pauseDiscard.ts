import { none, route } from '../../shared/http/route.ts';
import { pauseAnswer } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const pauseDiscard = route({
  name: 'pauseDiscard',
  method: 'POST',
  path: 'plans/{id}/discard/pause',
  right: 'discard',
  summary: 'The same for who has the right to discard alone.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: none,
  handle: pauseAnswer,
});
