/**
 * The HTTP routes as far as they are registered. The build writes the table down in place of this file: to make it, every route
 * is loaded, with all the schemas of the interface.
 */
import type { Right } from '../shared/http/route.ts';
import { ALL_ROUTES } from './register.ts';

/** What registering a route takes. */
export interface RouteHead {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly right: Right;
}

export const ROUTE_TABLE: readonly RouteHead[] = ALL_ROUTES.map(({ name, method, path, right }) => ({
  name,
  method,
  path,
  right,
}));
