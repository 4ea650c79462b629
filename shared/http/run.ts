import { z } from 'zod';
import type { PlanId } from '../letter.ts';
import type { Office } from '../office.ts';
import { isClosed, startPlan } from '../plan/control.ts';
import type { Action } from '../plan/plan.ts';
import { paceSchema } from '../plan/ramp.ts';
import type { Answer } from './problem.ts';
import type { Input } from './route.ts';
import { planView } from './views.ts';

/** Body of the calls that start a plan. */
export const runBody = paceSchema.extend({
  /** How many letters the caller believes it is about to move; must be the plan's number. */
  confirm: z.number().int().min(0).max(100_000_000),
});

/** Starts a plan of that action and tells how far it came. */
export async function runAnswer(
  office: Office,
  action: Action,
  { params, body, operator, waitMs }: Input<{ id: PlanId }, unknown, z.infer<typeof runBody>>,
): Promise<Answer> {
  const deadline = office.clock() + waitMs;
  const { confirm, ...pace } = body;
  const head = await startPlan(office, params.id, { action, confirm, pace }, operator, deadline);
  return { status: isClosed(head) ? 200 : 202, headers: { location: `plans/${head.id}` }, body: planView(head) };
}
