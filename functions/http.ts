import { app, type HttpResponseInit } from '@azure/functions';
import { type Answer, problem } from '../shared/http/problem.ts';
import { unhealthy } from '../shared/http/unhealthy.ts';
import type { Back, Front } from './front.ts';
import type { RouteHead } from './routeTable.ts';

/** Registers a route as a function of its own, so that its key is its own. */
export function registerRoute(front: Front, route: RouteHead): void {
  app.http(route.name, {
    methods: [route.method],
    route: route.path,
    authLevel: route.right === 'probe' ? 'anonymous' : 'function',
    handler: async (request, context) => {
      let back: Back;
      try {
        back = await front.back();
      } catch (error) {
        const tell = route.name === 'health' ? unhealthy : problem;
        return respond(tell(error, context.invocationId, front.log));
      }
      return respond(await back.work.answerRoute(route.name, back.office, request, context.invocationId));
    },
  });
}

function respond({ status, headers, body, text }: Answer): HttpResponseInit {
  if (text !== undefined)
    return { status, body: text, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers } };
  return { status, jsonBody: body, ...(headers && { headers: { ...headers } }) };
}
