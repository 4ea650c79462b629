/** Claims of a connection: which entity paths its tokens cover, what they allow there, and until when. */
import { readValue } from '../../shared/brokers/serviceBus/amqp.ts';
import type { Clock } from './clock.ts';
import { BrokerError } from './errors.ts';
import { malformed, type Request, text } from './request.ts';
import { checkToken, covers, pathOf, RIGHTS, type Right, type SasKey } from './sas.ts';

/** What `put-token` needs of a connection. */
export interface TokenTaker {
  readonly broker: { readonly sasKeys: readonly SasKey[]; readonly tokenClock: Clock };
  readonly claims: Claims;
}

interface Claim {
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  readonly rights: readonly Right[];
}

export class Claims {
  /** By audience path in lower case. */
  readonly #claims = new Map<string, Claim>();

  grant(path: string, claim: Claim): void {
    this.#claims.set(path, claim);
  }

  /** Throws amqp:unauthorized-access unless a claim that has not expired gives one of the rights on the path. */
  check(path: string, now: number, rights: readonly Right[] = RIGHTS): void {
    const wanted = path.toLowerCase();
    let covered = false;
    for (const [scope, claim] of this.#claims) {
      if (claim.expiresAt <= now || !covers(scope, wanted)) continue;
      if (rights.some((right) => claim.rights.includes(right))) return;
      covered = true;
    }
    throw new BrokerError(
      'amqp:unauthorized-access',
      covered
        ? `Unauthorized access: '${rights.join("' or '")}' is required for '${path}', and the token does not give it.`
        : `Unauthorized access: no valid token for '${path}' was put to $cbs on this connection.`,
    );
  }
}

/** Validates a put-token request and grants its claim. Throws {@link BrokerError}. */
export function putToken(request: Request, { broker, claims }: TokenTaker): void {
  if (request.operation !== 'put-token') {
    throw new BrokerError('amqp:not-implemented', `The operation '${request.operation}' is not supported at $cbs.`);
  }
  const audience = text(request.properties.get('name'));
  const type = text(request.properties.get('type'));
  const token = request.body && text(readValue(request.body));
  if (audience === undefined || token === undefined) throw malformed('put-token needs a name and a token.');
  if (type !== 'servicebus.windows.net:sastoken') {
    throw new BrokerError(
      'amqp:unauthorized-access',
      `Tokens of type '${type}' are not supported: this broker knows shared access signatures only.`,
    );
  }
  const grant = checkToken(token, broker.sasKeys, broker.tokenClock.now());
  if ('refusal' in grant) throw new BrokerError('amqp:unauthorized-access', grant.refusal);
  const path = pathOf(audience);
  if (!covers(grant.scope, path)) {
    throw new BrokerError('amqp:unauthorized-access', `The token does not cover '${audience}'.`);
  }
  claims.grant(path, grant);
}
