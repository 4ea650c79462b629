/** Access keys of HTTP functions, as in Azure: a master key, a host key, and a key for each function. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';

const hostKeysSchema = z.object({
  master: z.string().min(1),
  host: z.string().min(1),
  functions: z.record(z.string(), z.string().min(1)).default({}),
});

/** The keys of an app. `functions` maps a function's name to its key. */
export type HostKeys = z.output<typeof hostKeysSchema>;

export type AuthLevel = 'anonymous' | 'function' | 'admin';

/** Reads keys from parsed JSON. Throws when a key is missing or empty. */
export function parseKeys(value: unknown): HostKeys {
  const parsed = hostKeysSchema.safeParse(value);
  if (!parsed.success) throw new Error(`The keys are invalid: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** `given` with random keys for whatever lacks one. */
export function completeKeys(given: HostKeys | undefined, functionNames: string[]): HostKeys {
  const keys = given ?? { master: randomKey(), host: randomKey(), functions: {} };
  const functions = { ...keys.functions };
  for (const name of functionNames) functions[name] ??= randomKey();
  return { ...keys, functions };
}

/** Whether `key` opens `functionName` at `level`. Every candidate is compared, in constant time. */
export function mayCall(keys: HostKeys, level: AuthLevel, functionName: string, key: string | undefined): boolean {
  if (level === 'anonymous') return true;
  if (key === undefined) return false;
  const isMaster = equal(key, keys.master);
  const isHost = equal(key, keys.host);
  const own = keys.functions[functionName];
  const isOwn = own !== undefined && equal(key, own);
  return isMaster || (level === 'function' && (isHost || isOwn));
}

/** The key of a request: the header `x-functions-key` first, then the query parameter `code`. */
export function keyOf(headers: IncomingHttpHeaders, query: URLSearchParams): string | undefined {
  const header = headers['x-functions-key'];
  return (Array.isArray(header) ? header[0] : header) ?? query.get('code') ?? undefined;
}

function equal(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

function randomKey(): string {
  return randomBytes(40).toString('base64url');
}
