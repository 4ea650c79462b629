/**
 * Shared access signatures: `SharedAccessSignature sr=<resource>&sig=<signature>&se=<expiry>&skn=<key name>`, where the
 * signature is the HMAC-SHA256 of the encoded resource, a line feed and the expiry (Service Bus documentation,
 * "Access control with shared access signatures").
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a token may be allowed to do. */
export const RIGHTS = ['Manage', 'Send', 'Listen'] as const;
export type Right = (typeof RIGHTS)[number];

/** A key that may sign tokens. */
export interface SasKey {
  readonly name: string;
  readonly key: string;
  /** Default: all. As in the service, `Manage` includes the other two. */
  readonly rights?: readonly Right[];
  /** The path of the queue or topic the key belongs to. Default: the whole namespace. */
  readonly entity?: string;
}

/** What a valid token grants. */
export interface SasGrant {
  /** Entity path the token covers, with everything below it; lower case, `''` for the whole namespace. */
  readonly scope: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

const EXPIRED = 'The token is expired.';

/** A grant with what its key allows. */
export interface KeyGrant extends SasGrant {
  readonly rights: readonly Right[];
}

/**
 * Checks a token against all keys: an entity may have a key of the same name as the namespace. Answers the grant, or a
 * sentence that says why there is none.
 */
export function checkToken(
  token: string,
  keys: readonly SasKey[],
  now: number,
): KeyGrant | { readonly refusal: string } {
  let refusal = '';
  for (const key of keys) {
    const grant = checkSasToken(token, key, now);
    if ('refusal' in grant) {
      // That it is expired says more than that another key did not sign it.
      if (refusal === '' || grant.refusal === EXPIRED) refusal = grant.refusal;
    } else if (key.entity !== undefined && !covers(pathOf(key.entity), grant.scope)) {
      refusal = `The key '${key.name}' is valid for '${key.entity}' only.`;
    } else return { ...grant, rights: rightsOf(key) };
  }
  return { refusal };
}

function rightsOf({ rights = RIGHTS }: SasKey): readonly Right[] {
  return rights.includes('Manage') ? RIGHTS : rights;
}

/** Checks a token; answers the grant, or a sentence that says why there is none. */
export function checkSasToken(token: string, key: SasKey, now: number): SasGrant | { readonly refusal: string } {
  const match = /^SharedAccessSignature (.+)$/.exec(token);
  if (!match) return { refusal: 'The token is not a shared access signature.' };
  const fields = new Map<string, string>();
  for (const part of (match[1] as string).split('&')) {
    const at = part.indexOf('=');
    if (at > 0) fields.set(part.slice(0, at), part.slice(at + 1));
  }
  const resource = fields.get('sr');
  const expiry = fields.get('se');
  const signature = decoded(fields.get('sig'));
  const keyName = decoded(fields.get('skn'));
  if (!resource || !expiry || !/^\d{1,15}$/.test(expiry) || signature === undefined || keyName === undefined) {
    return { refusal: 'The token lacks a valid sr, sig, se or skn.' };
  }
  const expected = createHmac('sha256', key.key).update(`${resource}\n${expiry}`).digest('base64');
  // Both are compared before either decides, so that the answer's timing tells nothing about the key.
  const sameName = equal(keyName, key.name);
  const sameSignature = equal(signature, expected);
  if (!sameName || !sameSignature) return { refusal: 'The token has an invalid signature.' };
  const expiresAt = Number(expiry) * 1000;
  if (expiresAt <= now) return { refusal: EXPIRED };
  return { scope: pathOf(decoded(resource) ?? ''), expiresAt };
}

/** Entity path of a resource such as `sb://host:port/Orders`, in lower case. The host is not compared: it has aliases. */
export function pathOf(resource: string): string {
  return (
    resource
      .replace(/^[a-z]+:\/\/[^/]*/i, '')
      // The JavaScript administration client signs the whole URL, query and all.
      .replace(/[?#].*$/, '')
      .replace(/^\/+|\/+$/g, '')
      .toLowerCase()
  );
}

/** Whether `path` is `scope` or lies below it. Both in lower case. */
export function covers(scope: string, path: string): boolean {
  return scope === '' || scope === path || path.startsWith(`${scope}/`);
}

function decoded(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function equal(a: string, b: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'compare').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
