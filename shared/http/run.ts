import { z } from 'zod';
import type { PlanId } from '../letter.ts';
import type { Office } from '../office.ts';
import { cancelPlan, isClosed, pausePlan, resumePlan, startPlan } from '../plan/control.ts';
import type { Action } from '../records/plan.ts';
import { paceSchema } from '../records/ramp.ts';
import type { Answer } from './problem.ts';
import type { Input } from './route.ts';
import { planView } from './views.ts';

/** Body of the calls that start a plan. */
export const runBody = paceSchema.extend({
  /** How many letters the caller believes it is about to move; must be the plan's number. */
  confirm: z.number().int().min(0).max(100_000_000),
});

/** Body of the calls that resume a plan. */
export const resumeBody = z.strictObject({
  /** The operator's word that the first letter sent to a topic reached the subscription. */
  seen: z.boolean().default(false),
});

type Asked<Body = unknown> = Input<{ id: PlanId }, unknown, Body>;

/** Starts a plan of that action and tells how far it came. */
export async function runAnswer(
  office: Office,
  action: Action,
  { params, body, operator, waitMs }: Asked<z.infer<typeof runBody>>,
): Promise<Answer> {
  const deadline = office.clock() + waitMs;
  const { confirm, ...pace } = body;
  const head = await startPlan(office, params.id, { action, confirm, pace }, operator, deadline);
  return { status: isClosed(head) ? 200 : 202, headers: { location: `plans/${head.id}` }, body: planView(head) };
}

/** Goes on with a plan of that action. */
export async function resumeAnswer(
  office: Office,
  action: Action,
  { params, body, operator, waitMs }: Asked<z.infer<typeof resumeBody>>,
): Promise<Answer> {
  const head = await resumePlan(office, params.id, { ...body, action }, operator, office.clock() + waitMs);
  return { status: isClosed(head) ? 200 : 202, body: planView(head) };
}

/** Ends a plan of that action. */
export async function cancelAnswer(office: Office, action: Action, { params, operator }: Asked): Promise<Answer> {
  const head = await cancelPlan(office, params.id, action, operator);
  return { status: head.request === 'none' ? 200 : 202, body: planView(head) };
}

/** Pauses a run of either action. */
export async function pauseAnswer(office: Office, { params, operator }: Asked): Promise<Answer> {
  const head = await pausePlan(office, params.id, operator);
  return { status: head.request === 'none' ? 200 : 202, body: planView(head) };
}
