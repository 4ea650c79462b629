import { z } from 'zod';
import { type AuthMode, ROLES } from './caller.ts';
import { problemSchema } from './problem.ts';
import { RIGHTS, type Right, type Route } from './route.ts';

/** OpenAPI 3.1 of the given routes, from the schemas that check their input, for callers that are let in by `auth`. */
export function openapiDocument(routes: readonly Route[], auth: AuthMode): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = `/${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, auth) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'dead-letter-office', version: '1' },
    servers: [{ url: '/api' }],
    paths,
    components: {
      schemas: { Problem: z.toJSONSchema(problemSchema) },
      securitySchemes: {
        ...Object.fromEntries(
          RIGHTS.filter((right) => right !== 'probe').map((right) => [
            right,
            {
              type: 'apiKey',
              in: 'header',
              name: 'x-functions-key',
              description: `key of a function with the right "${right}"`,
            },
          ]),
        ),
        ...(auth === 'app-service' && { token: TOKEN }),
      },
    },
  };
}

const TOKEN = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'Token of Microsoft Entra for this office; each call names the app role that it needs.',
};

/** What a call needs, all of it. A scope of a scheme that is not OAuth names a role (OpenAPI 3.1). */
function security(right: Right, auth: AuthMode): Record<string, string[]>[] {
  if (right === 'probe') return [];
  return [{ [right]: [], ...(auth === 'app-service' && { token: [ROLES[right]] }) }];
}

function operation(route: Route, auth: AuthMode): Record<string, unknown> {
  const operator = {
    name: 'x-operator',
    in: 'header',
    required: true,
    description: 'Who calls; goes into the audit.',
    schema: { type: 'string', maxLength: 100 },
  };
  return {
    operationId: route.name,
    summary: route.summary,
    security: security(route.right, auth),
    parameters: [
      ...parameters(route.params, 'path'),
      ...parameters(route.query, 'query'),
      ...(route.needsOperator && auth === 'keys' ? [operator] : []),
    ],
    ...(route.body !== undefined && {
      requestBody: { content: { 'application/json': { schema: inputSchema(route.body) } } },
    }),
    responses: {
      '2XX': { description: 'Done, or begun.', content: { 'application/json': {} } },
      default: {
        description: 'Problem details.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

function parameters(schema: z.ZodType, place: 'path' | 'query'): Record<string, unknown>[] {
  const { properties = {}, required = [] } = inputSchema(schema);
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
  }));
}

/** What goes in, before it is transformed; a transformation itself has no JSON Schema. */
function inputSchema(schema: z.ZodType): { properties?: Record<string, unknown>; required?: string[] } {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as ReturnType<typeof inputSchema>;
}
