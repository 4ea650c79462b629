import { none, route } from '../../shared/http/route.ts';
import { resumeAnswer, resumeBody } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const resumeDiscard = route({
  name: 'resumeDiscard',
  method: 'POST',
  path: 'plans/{id}/discard/resume',
  right: 'discard',
  summary: 'Goes on with a paused discard: more of its letters are removed for good.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: resumeBody,
  handle: (office, input) => resumeAnswer(office, 'discard', input),
});
