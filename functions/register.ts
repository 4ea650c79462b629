import type { HttpRequest } from '@azure/functions';
import type { Answer } from '../shared/http/problem.ts';
import { answer, type Route } from '../shared/http/route.ts';
import type { Office } from '../shared/office.ts';
import { loadOnce, registerFront } from './front.ts';
import { cancelDiscard } from './http/cancelDiscard.ts';
import { cancelPlan } from './http/cancelPlan.ts';
import { collectNow } from './http/collectNow.ts';
import { createPlan } from './http/createPlan.ts';
import { discardPlan } from './http/discardPlan.ts';
import { downloadLetters } from './http/downloadLetters.ts';
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
import { pauseDiscard } from './http/pauseDiscard.ts';
import { pausePlan } from './http/pausePlan.ts';
import { previewExpiry } from './http/previewExpiry.ts';
import { reclassify } from './http/reclassify.ts';
import { resumeDiscard } from './http/resumeDiscard.ts';
import { resumePlan } from './http/resumePlan.ts';
import { runPlan } from './http/runPlan.ts';
import { stop } from './http/stop.ts';
import { summary } from './http/summary.ts';
import { triageGroup } from './http/triageGroup.ts';

/** Every HTTP route of the office. */
export const ROUTES = [
  listSources,
  getSource,
  listLetters,
  getLetter,
  getBody,
  downloadLetters,
  summary,
  listGroups,
  getGroup,
  triageGroup,
  collectNow,
  reclassify,
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
  pauseDiscard,
  resumeDiscard,
  cancelDiscard,
  stop,
  listAudit,
  health,
];

/** And the one that describes them. */
export const ALL_ROUTES: readonly Route[] = [...ROUTES, openapi(ROUTES)];
const BY_NAME = new Map(ALL_ROUTES.map((route) => [route.name, route]));

/** Answers a request to the route of that name. Never throws. */
export function answerRoute(name: string, office: Office, request: HttpRequest, requestId: string): Promise<Answer> {
  return answer(BY_NAME.get(name) as Route, office, request, requestId);
}

/** Registers all functions of an office that is open already. */
export function registerOffice(office: Office): void {
  const { catalog, telemetry, log } = office;
  const back = loadOnce(() => office);
  registerFront({ catalog, telemetry, log, back }, ALL_ROUTES);
}
