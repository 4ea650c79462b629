/** Claims of a connection: which entity paths its tokens cover, and until when. */
import { readValue } from '../../shared/serviceBus/amqp.ts';
import type { Clock } from './clock.ts';
import { BrokerError } from './errors.ts';
import { malformed, type Request, text } from './request.ts';
import { checkSasToken, covers, pathOf, type SasKey } from './sas.ts';

/** What `put-token` needs of a connection. */
export interface TokenTaker {
  readonly broker: { readonly sasKey: SasKey; readonly tokenClock: Clock };
  readonly claims: Claims;
}

export class Claims {
  /** Expiry in milliseconds since 1970, by audience path in lower case. */
  readonly #expiries = new Map<string, number>();

  grant(path: string, expiresAt: number): void {
    this.#expiries.set(path, expiresAt);
  }

  /** Throws amqp:unauthorized-access unless a claim that has not expired covers the path. */
  check(path: string, now: number): void {
    const wanted = path.toLowerCase();
    for (const [scope, expiresAt] of this.#expiries) {
      if (expiresAt > now && covers(scope, wanted)) return;
    }
    throw new BrokerError(
      'amqp:unauthorized-access',
      `Unauthorized access: no valid token for '${path}' was put to $cbs on this connection.`,
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
  const grant = checkSasToken(token, broker.sasKey, broker.tokenClock.now());
  if ('refusal' in grant) throw new BrokerError('amqp:unauthorized-access', grant.refusal);
  const path = pathOf(audience);
  if (!covers(grant.scope, path)) {
    throw new BrokerError('amqp:unauthorized-access', `The token does not cover '${audience}'.`);
  }
  claims.grant(path, grant.expiresAt);
}
