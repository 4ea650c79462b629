/** The host's own routes: `POST /admin/functions/{name}` starts a function by hand (docs: "Manually run a non HTTP-triggered function"). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { describe } from './app.ts';
import { parseUrl, readBody, respond } from './http.ts';
import { type HostKeys, keyOf, mayCall } from './keys.ts';

const inputSchema = z.object({ input: z.unknown().optional() });
const inputLimit = 1_048_576;

export interface AdminOptions {
  keys: HostKeys;
  /** The trigger type of a function, by name without regard to case. */
  typeOf(name: string): string | undefined;
  /** Runs a function to its end. */
  run(name: string, input: unknown): Promise<void>;
}

/**
 * Answers a request under `/admin`: true when it was one. The master key is needed. 202 at once, as Azure does; with the
 * header `x-wait: 1` (this host only) the answer waits for the run, and is 500 with the error's text when it failed.
 */
export async function handleAdmin(
  options: AdminOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const url = parseUrl(request);
  const match = url && /^\/admin(?:\/functions\/([^/]+))?(?:\/|$)/i.exec(url.pathname);
  if (!match) return false;
  const name = match[1] ?? '';

  if (!mayCall(options.keys, 'admin', name, keyOf(request.headers, url.searchParams))) respond(response, 401);
  else if (!name || options.typeOf(name) === undefined) respond(response, 404);
  else if (request.method !== 'POST') respond(response, 405);
  else if (options.typeOf(name) === 'httpTrigger')
    respond(response, 400, `"${name}" is an HTTP function: call its route.`);
  else await runByHand(options, name, request, response);
  return true;
}

async function runByHand(
  options: AdminOptions,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request, inputLimit);
  const parsed = body && parseInput(body.toString());
  if (!parsed) return respond(response, 400, 'The body must be JSON such as {"input": "..."}.');
  const run = options.run(name, parsed.input);
  if (request.headers['x-wait'] !== '1') {
    run.catch(() => {}); // the invoker has logged it
    return respond(response, 202);
  }
  try {
    await run;
    respond(response, 202);
  } catch (error) {
    respond(response, 500, describe(error));
  }
}

function parseInput(text: string): { input?: unknown } | undefined {
  if (text === '') return {};
  try {
    return inputSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
