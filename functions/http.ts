import { app, type HttpResponseInit } from '@azure/functions';
import type { Answer } from '../shared/http/problem.ts';
import type { Front } from './front.ts';
import type { RouteHead } from './routeTable.ts';

/** Registers a route as a function of its own, so that its key is its own. */
export function registerRoute(front: Front, route: RouteHead): void {
  app.http(route.name, {
    methods: [route.method],
    route: route.path,
    authLevel: route.right === 'probe' ? 'anonymous' : 'function',
    handler: async (request, context) => {
      const { office, work } = await front.back();
      return respond(await work.answerRoute(route.name, office, request, context.invocationId));
    },
  });
}

/** The only function of an app that cannot work: it says why. (An app that throws at load shows no functions at all.) */
export function registerUnhealthy(error: unknown, log: (line: string) => void): void {
  app.http('health', {
    methods: ['GET'],
    route: 'health',
    authLevel: 'anonymous',
    handler: async (_request, context) => {
      const { problem, problemSchema } = await import('./work.ts');
      // In the form of every other health report: in problem details, `status` would have to be a number.
      const { code, detail, action, requestId } = problemSchema.parse(problem(error, context.invocationId, log).body);
      const body = { status: 'Unhealthy', problems: [detail], code, action, requestId };
      return respond({ status: 503, body });
    },
  });
}

function respond({ status, headers, body, text }: Answer): HttpResponseInit {
  if (text !== undefined)
    return { status, body: text, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers } };
  return { status, jsonBody: body, ...(headers && { headers: { ...headers } }) };
}
