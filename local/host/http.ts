/** Serves the HTTP functions of an app. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LoadedFunction } from './app.ts';
import type { HttpCookie, HttpData, TypedData } from './core.ts';
import type { Invoker } from './invoke.ts';
import { type AuthLevel, type HostKeys, keyOf, mayCall } from './keys.ts';
import { matchRoute, parseRoute, type Route, splitPath } from './routes.ts';

/** An HTTP function with its parsed trigger. `template` includes the route prefix. */
export interface HttpFunction {
  target: LoadedFunction;
  template: string;
  route: Route;
  methods: string[];
  authLevel: AuthLevel;
}

/** Azure's default limit of a request body, 100 MiB (docs: setting FUNCTIONS_REQUEST_BODY_SIZE_LIMIT). */
export const defaultBodyLimit = 104_857_600;

/**
 * Reads the HTTP trigger of `target`.
 *
 * @throws Error when the route is invalid, or lies where the host's own routes are.
 */
export function toHttpFunction(target: LoadedFunction, routePrefix: string): HttpFunction {
  const { route, methods = ['GET', 'POST'], authLevel = 'anonymous' } = target.trigger;
  const level = String(authLevel).toLowerCase();
  if (level !== 'anonymous' && level !== 'function' && level !== 'admin') {
    throw new Error(`authLevel is "${authLevel}"; it must be anonymous, function or admin.`);
  }
  if (!Array.isArray(methods)) throw new Error('methods must be a list.');
  const template = [routePrefix, String(route || target.name)]
    .flatMap((part) => part.split('/').filter(Boolean))
    .join('/');
  if (/^(admin|runtime)(\/|$)/i.test(template)) {
    throw new Error(`The route "${template}" conflicts with the host's own routes under admin and runtime.`);
  }
  return {
    target,
    template,
    route: parseRoute(template),
    methods: methods.map((method) => String(method).toUpperCase()),
    authLevel: level,
  };
}

export interface HttpAppOptions {
  functions: HttpFunction[];
  /** Names of functions switched off: only the master key still reaches them, as in Azure. */
  disabled: Set<string>;
  keys: HostKeys;
  bodyLimit: number;
  invoker: Invoker;
}

/** Answers one request with the function whose route fits it best. 404 also when only the method does not fit: Azure does so. */
export function createHttpApp(
  options: HttpAppOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const ordered = options.functions.toSorted((a, b) => a.route.precedence.localeCompare(b.route.precedence));

  return async (request, response) => {
    const url = parseUrl(request);
    const path = url && splitPath(url.pathname);
    if (!url || !path) return void respond(response, 400);
    const match = findFunction(ordered, path, request.method ?? '');
    if (!match) return void respond(response, 404);

    const { target, authLevel } = match.found;
    const key = keyOf(request.headers, url.searchParams);
    if (options.disabled.has(target.name) && !mayCall(options.keys, 'admin', target.name, key)) {
      return void respond(response, 404);
    }
    if (!mayCall(options.keys, authLevel, target.name, key)) return void respond(response, 401);

    const body = await readBody(request, options.bodyLimit);
    if (!body) {
      response.setHeader('connection', 'close');
      return void respond(response, 413);
    }
    try {
      const result = await options.invoker.invoke(target, {
        data: { http: toHttpData(request, url, match.params, body) },
        traceParent: first(request.headers.traceparent),
        traceState: first(request.headers.tracestate),
      });
      const answer = result.returnValue?.http;
      // A function that returns nothing is answered with 204 (docs: "Azure Functions HTTP trigger").
      if (!answer) return void respond(response, 204);
      writeHttpData(request, response, answer);
    } catch {
      // The invoker has logged it. Azure tells the caller nothing either.
      respond(response, 500);
    }
  };
}

function findFunction(
  functions: HttpFunction[],
  path: string[],
  method: string,
): { found: HttpFunction; params: Record<string, string> } | undefined {
  for (const found of functions) {
    const params = found.methods.includes(method) ? matchRoute(found.route, path) : undefined;
    if (params) return { found, params };
  }
  return undefined;
}

/** The request's full URL; undefined when target or Host header are no URL. */
export function parseUrl(request: IncomingMessage): URL | undefined {
  const target = request.url ?? '';
  const base = `http://${request.headers.host ?? 'localhost'}`;
  const text = target.startsWith('/') ? `${base}${target}` : target;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** The whole body, or undefined when it is longer than `limit` bytes. */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** Ends a response with a status and, maybe, a text. */
export function respond(response: ServerResponse, status: number, text = ''): void {
  if (text) response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.writeHead(status).end(text);
}

function toHttpData(request: IncomingMessage, url: URL, params: Record<string, string>, body: Buffer): HttpData {
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.push([name, Array.isArray(value) ? value.join(',') : value]);
  }
  // ASP.NET joins repeated query parameters with commas, so `?a=1&a=2` reaches a function as `1,2`.
  const query = [...new Set(url.searchParams.keys())].map((name): [string, string] => [
    name,
    url.searchParams.getAll(name).join(','),
  ]);
  return {
    method: request.method ?? 'GET',
    url: url.href,
    nullableHeaders: nullable(headers),
    nullableQuery: nullable(query),
    nullableParams: nullable(Object.entries(params)),
    ...(body.length > 0 ? { body: { bytes: body } } : {}),
  };
}

function nullable(entries: [string, string][]): Record<string, { value: string }> {
  return Object.fromEntries(entries.map(([name, value]) => [name, { value }]));
}

function writeHttpData(request: IncomingMessage, response: ServerResponse, data: HttpData): void {
  const body = toBytes(data.body);
  for (const [name, value] of Object.entries(data.headers ?? {})) response.setHeader(name, value);
  for (const cookie of data.cookies ?? []) response.appendHeader('set-cookie', toSetCookie(cookie));
  const status = Number(data.statusCode ?? 200);
  const empty = request.method === 'HEAD' || status === 204 || status === 304;
  if (!empty && !response.hasHeader('content-length')) response.setHeader('content-length', body.length);
  response.writeHead(status).end(empty ? undefined : body);
}

function toBytes(data: TypedData | undefined): Uint8Array {
  if (data?.bytes) return data.bytes;
  return Buffer.from(data?.string ?? data?.json ?? '');
}

function toSetCookie(cookie: HttpCookie): string {
  const parts = [`${cookie.name}=${encodeURIComponent(cookie.value)}`];
  if (cookie.maxAge) parts.push(`Max-Age=${cookie.maxAge.value}`);
  if (cookie.expires) parts.push(`Expires=${new Date(cookie.expires.value.seconds * 1000).toUTCString()}`);
  if (cookie.domain) parts.push(`Domain=${cookie.domain.value}`);
  if (cookie.path) parts.push(`Path=${cookie.path.value}`);
  if (cookie.secure?.value) parts.push('Secure');
  if (cookie.httpOnly?.value) parts.push('HttpOnly');
  const sameSite = { none: undefined, lax: 'Lax', strict: 'Strict', explicitNone: 'None' }[cookie.sameSite ?? 'none'];
  if (sameSite) parts.push(`SameSite=${sameSite}`);
  return parts.join('; ');
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
