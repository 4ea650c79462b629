/** Everything that functions do. Imported by the first call, all at once: the parts have most of what they need in common. */

export { triggerSight } from '../shared/brokers/serviceBus/triggerSight.ts';
export { openChecked } from '../shared/open.ts';
export { continuePlan, watchRuns } from '../shared/plan/control.ts';
export { cleanUp } from '../shared/retention/cleanUp.ts';
export { continuationSchema } from '../shared/store/runs.ts';
export { classifyOne } from '../shared/watch/classifyOne.ts';
export { collectAll } from '../shared/watch/collect.ts';
export { reconcileAll } from '../shared/watch/reconcile.ts';
export { answerRoute } from './register.ts';
