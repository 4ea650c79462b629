import type { Office } from '../shared/office.ts';
import { registerClassify } from './classify.ts';
import { registerCollect } from './collect.ts';
import { registerContinue } from './continue.ts';
import { registerExpire } from './expire.ts';
import { cancelPlan } from './http/cancelPlan.ts';
import { collectNow } from './http/collectNow.ts';
import { createPlan } from './http/createPlan.ts';
import { discardPlan } from './http/discardPlan.ts';
import { getBody } from './http/getBody.ts';
import { getGroup } from './http/getGroup.ts';
import { getLetter } from './http/getLetter.ts';
import { getPlan } from './http/getPlan.ts';
import { getReport } from './http/getReport.ts';
import { getSource } from './http/getSource.ts';
import { health } from './http/health.ts';
import { listAudit } from './http/listAudit.ts';
import { listGroups } from './http/listGroups.ts';
import { listLetters } from './http/listLetters.ts';
import { listPlanLetters } from './http/listPlanLetters.ts';
import { listPlans } from './http/listPlans.ts';
import { listSources } from './http/listSources.ts';
import { openapi } from './http/openapi.ts';
import { pausePlan } from './http/pausePlan.ts';
import { previewExpiry } from './http/previewExpiry.ts';
import { resumePlan } from './http/resumePlan.ts';
import { runPlan } from './http/runPlan.ts';
import { stop } from './http/stop.ts';
import { summary } from './http/summary.ts';
import { triageGroup } from './http/triageGroup.ts';
import { registerRoute } from './http.ts';
import { registerReconcile } from './reconcile.ts';
import { registerWatch } from './watch.ts';

/** Every HTTP route of the office. */
export const ROUTES = [
  listSources,
  getSource,
  listLetters,
  getLetter,
  getBody,
  summary,
  listGroups,
  getGroup,
  triageGroup,
  collectNow,
  previewExpiry,
  createPlan,
  listPlans,
  getPlan,
  listPlanLetters,
  getReport,
  runPlan,
  discardPlan,
  pausePlan,
  resumePlan,
  cancelPlan,
  stop,
  listAudit,
  health,
];

/** Registers all functions of the office. */
export function registerOffice(office: Office): void {
  for (const source of office.catalog.sources) registerClassify(office, source);
  registerCollect(office);
  registerReconcile(office);
  registerExpire(office);
  registerContinue(office);
  registerWatch(office);
  for (const route of [...ROUTES, openapi(ROUTES)]) registerRoute(office, route);
}
