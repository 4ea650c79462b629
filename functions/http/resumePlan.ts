import { z } from 'zod';
import { none, route } from '../../shared/http/route.ts';
import { planPath } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';
import { isClosed, resumePlan as resume } from '../../shared/plan/control.ts';

export const resumePlan = route({
  name: 'resumePlan',
  method: 'POST',
  path: 'plans/{id}/resume',
  right: 'replay',
  summary: 'Goes on with a paused plan. Resuming one that is running does nothing.',
  needsOperator: true,
  params: planPath,
  query: none,
  body: z.strictObject({
    /** The operator's word that the first letter sent to a topic reached the subscription. */
    seen: z.boolean().default(false),
  }),
  handle: async (office, { params, body, operator, waitMs }) => {
    const head = await resume(office, params.id, body, operator, office.clock() + waitMs);
    return { status: isClosed(head) ? 200 : 202, body: planView(head) };
  },
});
