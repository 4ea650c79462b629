/**
 * What a function app needs in order to start: the names, triggers and routes of its functions. What they do is loaded by the
 * first call, since a start waits for everything that is loaded by then.
 */
import type { Catalog } from '../shared/catalog.ts';
import type { Office } from '../shared/office.ts';
import type { Telemetry } from '../shared/telemetry.ts';
import { registerClassify } from './classify.ts';
import { registerCollect } from './collect.ts';
import { registerContinue } from './continue.ts';
import { registerExpire } from './expire.ts';
import { registerRoute } from './http.ts';
import { registerReconcile } from './reconcile.ts';
import type { RouteHead } from './routeTable.ts';
import { registerTelemetry } from './telemetry.ts';
import { registerWatch } from './watch.ts';

/** What functions are registered with. */
export interface Front {
  readonly catalog: Catalog;
  readonly telemetry: Telemetry;
  readonly log: (line: string) => void;
  /** The office and its work. Throws what keeps them from being loaded; asked again, it tries again. */
  readonly back: () => Promise<Back>;
}

/** What lies behind. */
export interface Back {
  readonly office: Office;
  readonly work: typeof import('./work.ts');
}

/** Registers all functions of the office. */
export function registerFront(front: Front, routes: readonly RouteHead[]): void {
  for (const source of front.catalog.sources) registerClassify(front, source);
  registerCollect(front);
  registerReconcile(front);
  registerExpire(front);
  registerContinue(front);
  registerWatch(front);
  registerTelemetry(front);
  for (const route of routes) registerRoute(front, route);
}

/** Loads the work once and opens the office with it. */
export function loadOnce(open: (work: typeof import('./work.ts')) => Office): () => Promise<Back> {
  let loading: Promise<Back> | undefined;
  const load = async (): Promise<Back> => {
    const work = await import('./work.ts');
    return { work, office: open(work) };
  };
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
