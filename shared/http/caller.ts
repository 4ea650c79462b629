/**
 * Who calls, and whether they may, where App Service authentication stands before the app: it checks the token and tells its
 * claims in a header, which it takes from nobody else (Microsoft, "Work with user identities in Azure App Service
 * authentication"). Without it anybody could write that header, so it is read only when the setting `DLO_AUTH` says so.
 */
import { z } from 'zod';
import { OfficeError } from '../errors.ts';
import type { Right } from './route.ts';

/** How callers are let in: `keys` by the key of the function alone; `app-service` by that and an app role of their token. */
export const AUTH_MODES = ['keys', 'app-service'] as const;
export type AuthMode = (typeof AUTH_MODES)[number];

/** The app role that gives each right. infra/app-roles.json declares them. */
export const ROLES: Readonly<Record<Exclude<Right, 'probe'>, string>> = {
  read: 'DeadLetters.Read',
  body: 'DeadLetters.ReadBody',
  replay: 'DeadLetters.Replay',
  discard: 'DeadLetters.Discard',
};

/** Name of the header with the claims. */
export const PRINCIPAL_HEADER = 'x-ms-client-principal';

/** Longest header that is looked at: tokens have a few kilobytes. */
const MAX_HEADER = 65_536;
const ROLE_CLAIMS = ['roles', 'http://schemas.microsoft.com/ws/2008/06/identity/claims/role'];
/** What names a person, then what names an app or anything else; the first that is there. */
const NAME_CLAIMS = [
  'preferred_username',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn',
  'upn',
  'email',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
  'azp',
  'appid',
  'oid',
  'http://schemas.microsoft.com/identity/claims/objectidentifier',
  'sub',
];

const principalSchema = z.object({
  claims: z.array(z.object({ typ: z.string(), val: z.string() })).max(2000),
  role_typ: z.string().nullish(),
});

/** A caller that App Service has authenticated. */
export interface Caller {
  /** For the audit: printable, at most 100 characters. */
  readonly name: string;
  readonly roles: ReadonlySet<string>;
}

/**
 * The caller in the header, once it is known to have the role for `right`. Throws `DLO_NOT_SIGNED_IN` when there is none or it
 * cannot be read, `DLO_ROLE_MISSING` when it may not.
 */
export function callerFor(right: Exclude<Right, 'probe'>, header: string | null): Caller {
  const caller = readCaller(header);
  const role = ROLES[right];
  if (!caller.roles.has(role)) {
    throw new OfficeError('DLO_ROLE_MISSING', `${caller.name} does not have the role ${role}`, { data: { role } });
  }
  return caller;
}

function readCaller(header: string | null): Caller {
  const { data } = principalSchema.safeParse(decoded(header));
  if (data === undefined) throw notSignedIn('the request comes without a caller that App Service has authenticated');
  const valuesOf = (type: string) => data.claims.filter(({ typ }) => typ === type).map(({ val }) => val.trim());
  const name = NAME_CLAIMS.flatMap(valuesOf).find((value) => /^[\p{L}\p{N}\p{P}\p{S} ]{1,100}$/u.test(value));
  if (name === undefined) throw notSignedIn('the token has no claim that names the caller');
  const roleTypes = new Set([...ROLE_CLAIMS, ...(data.role_typ ? [data.role_typ] : [])]);
  return { name, roles: new Set([...roleTypes].flatMap(valuesOf)) };
}

/** `undefined` for what is not base64 of JSON. */
function decoded(header: string | null): unknown {
  if (header === null || header.length > MAX_HEADER) return undefined;
  try {
    return JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  } catch {
    return undefined;
  }
}

function notSignedIn(message: string): OfficeError {
  return new OfficeError('DLO_NOT_SIGNED_IN', message);
}
