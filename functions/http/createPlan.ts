import { z } from 'zod';
import { none, route } from '../../shared/http/route.ts';
import { sourcePath } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';
import { createPlan as create } from '../../shared/plan/prepare.ts';
import { ACTIONS, choicesSchema } from '../../shared/records/plan.ts';
import { selectionSchema } from '../../shared/selection.ts';

/** Preparing goes on in the background after this, ms. */
const INLINE = 20_000;

export const createPlan = route({
  name: 'createPlan',
  method: 'POST',
  path: 'sources/{source}/plans',
  right: 'replay',
  summary: 'Dry run: freezes which letters would be sent back or discarded, where to, and what could go wrong.',
  needsOperator: true,
  params: sourcePath,
  query: none,
  body: z.strictObject({
    action: z.enum(ACTIONS).default('replay'),
    selection: selectionSchema.prefault({}),
    choices: choicesSchema.prefault({}),
  }),
  handle: async (office, { params, body, operator }) => {
    const source = sourceNamed(office, params.source);
    const deadline = office.clock() + INLINE;
    const head = await create(office, source, body, operator, deadline);
    const headers = { location: `plans/${head.id}` };
    return { status: head.state === 'preparing' ? 202 : 201, headers, body: planView(head) };
  },
});
