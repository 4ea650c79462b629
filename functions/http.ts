import { app, type HttpResponseInit } from '@azure/functions';
import { type Answer, problem, problemSchema } from '../shared/http/problem.ts';
import { answer, type Route } from '../shared/http/route.ts';
import type { Office } from '../shared/office.ts';

/** Registers a route as a function of its own, so that its key is its own. */
export function registerRoute(office: Office, route: Route): void {
  app.http(route.name, {
    methods: [route.method],
    route: route.path,
    authLevel: route.right === 'probe' ? 'anonymous' : 'function',
    handler: async (request, context) => respond(await answer(route, office, request, context.invocationId)),
  });
}

/** The only function of an app that cannot work: it says why. (An app that throws at load shows no functions at all.) */
export function registerUnhealthy(error: unknown, log: (line: string) => void): void {
  app.http('health', {
    methods: ['GET'],
    route: 'health',
    authLevel: 'anonymous',
    handler: async (_request, context) => {
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
