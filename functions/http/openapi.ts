import { openapiDocument } from '../../shared/http/openapi.ts';
import { none, type Route, route } from '../../shared/http/route.ts';

/** The description of `routes`, this one included. */
export function openapi(routes: readonly Route[]): Route {
  const self: Route = route({
    name: 'openapi',
    method: 'GET',
    path: 'openapi.json',
    right: 'probe',
    summary: 'This interface, from the schemas that validate it.',
    needsOperator: false,
    params: none,
    query: none,
    handle: async ({ auth }) => ({ status: 200, body: openapiDocument([...routes, self], auth) }),
  });
  return self;
}
