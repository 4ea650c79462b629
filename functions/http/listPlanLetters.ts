import { z } from 'zod';
import { planLetters } from '../../shared/desk/plans.ts';
import { route } from '../../shared/http/route.ts';
import { continuation, planPath, top } from '../../shared/http/schemas.ts';

export const listPlanLetters = route({
  name: 'listPlanLetters',
  method: 'GET',
  path: 'plans/{id}/letters',
  right: 'read',
  summary: 'The letters of a plan, each with its fate, and those that came back.',
  needsOperator: false,
  params: planPath,
  query: z.strictObject({ top, continuation }),
  handle: async (office, { params, query }) => ({
    status: 200,
    body: await planLetters(office, params.id, query.top, query.continuation),
  }),
});
