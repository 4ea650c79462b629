import { none, route } from '../../shared/http/route.ts';
import { resumeAnswer, resumeBody } from '../../shared/http/run.ts';
import { planPath } from '../../shared/http/schemas.ts';

export const resumePlan = route({
  name: 'resumePlan',
  method: 'POST',
  path: 'plans/{id}/resume',
  right: 'replay',
  summary: 'Goes on with a paused replay, or with one that nobody works on.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: resumeBody,
  handle: (office, input) => resumeAnswer(office, 'replay', input),
});
