import { randomBytes } from 'node:crypto';
import { ROUTES } from '../functions/register.ts';
import { RIGHTS, type Right } from '../shared/http/route.ts';
import type { HostKeys } from './host/index.ts';

/** One key a right. */
export type RightKeys = Readonly<Record<Right, string>>;

/**
 * Keys for the local host, one for each right: every function gets the key of the right it needs, as a deployment sets them
 * in Azure. Master and host keys are random and open everything.
 */
export function keysByRight(): { rights: RightKeys; host: HostKeys } {
  const rights = Object.fromEntries(RIGHTS.map((right) => [right, randomKey()])) as Record<Right, string>;
  const functions = Object.fromEntries(ROUTES.map((route) => [route.name, rights[route.right]]));
  return { rights, host: { master: randomKey(), host: randomKey(), functions } };
}

function randomKey(): string {
  return randomBytes(24).toString('base64url');
}
