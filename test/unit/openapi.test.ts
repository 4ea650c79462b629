import { describe, expect, it, test } from 'vitest';
import type { z } from 'zod';
import { openapi } from '../../functions/http/openapi.ts';
import { ROUTES } from '../../functions/register.ts';
import { ERRORS } from '../../shared/errors.ts';
import { ROLES } from '../../shared/http/caller.ts';
import { openapiDocument } from '../../shared/http/openapi.ts';
import { RIGHTS } from '../../shared/http/route.ts';

interface Operation {
  operationId: string;
  summary: string;
  security: Record<string, unknown>[];
  parameters: { name: string; in: string; required: boolean; schema: Record<string, unknown> }[];
  requestBody?: { content: Record<string, { schema: { properties: Record<string, unknown> } }> };
  responses: Record<string, unknown>;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: { Problem: { properties: { code: { enum: string[] } } } };
    securitySchemes: Record<string, { type: string; name: string }>;
  };
}

const routes = [...ROUTES, openapi(ROUTES)];
const document = JSON.parse(JSON.stringify(openapiDocument(routes, 'keys'))) as Document;
const operationOf = ({ path, method }: { path: string; method: string }) =>
  document.paths[`/${path}`]?.[method.toLowerCase()] as Operation;
const names = (operation: Operation, place: string) =>
  operation.parameters.filter((one) => one.in === place).map(({ name }) => name);
const fieldsOf = (schema: z.ZodType) => Object.keys((schema as z.ZodObject).shape);

test('the description is JSON of OpenAPI 3.1 and loses nothing on the way', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(document).toEqual(openapiDocument(routes, 'keys'));
});

test('it has exactly the routes that there are', () => {
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} /${path}`).sort());
  const ids = routes.map((route) => operationOf(route).operationId);
  expect(new Set(ids).size).toBe(routes.length);
});

describe('behind App Service authentication', () => {
  const guarded = openapiDocument(routes, 'app-service') as unknown as Document;

  test.each(routes)('$name asks for a key and an app role, unless it is a probe', ({ path, method, right }) => {
    const operation = guarded.paths[`/${path}`]?.[method.toLowerCase()] as Operation;
    expect(operation.security).toEqual(right === 'probe' ? [] : [{ [right]: [], token: [ROLES[right]] }]);
    expect(names(operation, 'header')).toEqual([]);
  });

  test('the token is described', () => {
    expect(guarded.components.securitySchemes.token).toMatchObject({ type: 'http', scheme: 'bearer' });
  });
});

describe.each(routes)('$name', (route) => {
  const operation = operationOf(route);

  test('states the right it needs', () => {
    expect(operation.security).toEqual(route.right === 'probe' ? [] : [{ [route.right]: [] }]);
  });

  test('names the parameters of its path, all required', () => {
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(names(operation, 'path').sort()).toEqual(inPath.sort());
    expect(fieldsOf(route.params).sort()).toEqual(inPath.sort());
    expect(operation.parameters.filter((one) => one.in === 'path').every(({ required }) => required)).toBe(true);
  });

  test('names the parameters of its query', () => {
    expect(names(operation, 'query').sort()).toEqual(fieldsOf(route.query).sort());
  });

  test('asks for the operator where it needs one, and for a body where it takes one', () => {
    expect(names(operation, 'header')).toEqual(route.needsOperator ? ['x-operator'] : []);
    const body = operation.requestBody?.content['application/json']?.schema.properties;
    expect(Object.keys(body ?? {}).sort()).toEqual(route.body === undefined ? [] : fieldsOf(route.body).sort());
  });

  test('says what it does, and how it says no', () => {
    expect(operation.summary.length).toBeGreaterThan(10);
    expect(Object.keys(operation.responses)).toEqual(['2XX', 'default']);
  });
});

test('every route that changes something names its caller, except the one that only looks sooner', () => {
  const nameless = routes.filter(({ method, needsOperator }) => method === 'POST' && !needsOperator);
  expect(nameless.map(({ name }) => name)).toEqual(['collectNow']);
});

test('a list can be asked for by repeating a parameter', () => {
  const list = document.paths['/sources/{source}/letters']?.get as Operation;
  const reason = list.parameters.find(({ name }) => name === 'reason');
  expect(reason?.schema).toMatchObject({ type: 'array' });
});

test('every code of the error table is in the problem, every right is a key of its own', () => {
  expect(document.components.schemas.Problem.properties.code.enum).toEqual(Object.keys(ERRORS));
  expect(Object.keys(document.components.securitySchemes).sort()).toEqual(
    RIGHTS.filter((right) => right !== 'probe').sort(),
  );
});

it.each([
  ['listSources', 'read'],
  ['getBody', 'body'],
  ['createPlan', 'replay'],
  ['runPlan', 'replay'],
  ['discardPlan', 'discard'],
  ['stop', 'replay'],
  ['listAudit', 'read'],
  ['health', 'probe'],
])('%s needs the right %s', (name, right) => {
  expect(routes.find((route) => route.name === name)?.right).toBe(right);
});
