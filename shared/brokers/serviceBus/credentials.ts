/** Where a namespace is and how the office proves who it is, from the app settings. */
import { ConnectionConfig, createSasTokenProvider, TokenType } from '@azure/core-amqp';
import { readNamespaceConnection } from './connectionSetting.ts';
import { type Identity, identityFor } from './identity.ts';

type Settings = Readonly<Record<string, string | undefined>>;

/** A token for one entity path. `renewAt` is ms since 1970 by the machine's clock. */
export interface Token {
  readonly token: string;
  readonly type: TokenType;
  readonly renewAt: number;
}

/** A namespace and the way to get tokens for it. */
export interface Endpoint {
  readonly config: ConnectionConfig;
  /** A token for the entity whose audience is `sb://host[:port]/path`. */
  tokenFor(audience: string): Promise<Token>;
}

/** The double slash is what Service Bus asks for. */
const SCOPE = 'https://servicebus.azure.net//.default';
/** A token signed with a key lasts an hour. */
const SAS_RENEWAL_MS = 45 * 60_000;
const RENEW_BEFORE_MS = 5 * 60_000;

/** The endpoint behind setting `name`, as `connectionSetting.ts` reads it. Throws `DLO_SETTINGS_INVALID`. */
export function readEndpoint(name: string, settings: Settings): Endpoint {
  const connection = readNamespaceConnection(name, settings);
  if (connection.kind === 'identity') return withIdentity(connection.host, identityFor(name, settings));
  const { by, text } = connection;
  const provider = createSasTokenProvider(
    by.signature === undefined
      ? { sharedAccessKeyName: by.keyName, sharedAccessKey: by.key }
      : { sharedAccessSignature: by.signature },
  );
  return {
    config: ConnectionConfig.create(text),
    tokenFor: async (audience) => sas((await provider.getToken(audience)).token),
  };
}

function sas(token: string): Token {
  return { token, type: TokenType.CbsTokenTypeSas, renewAt: Date.now() + SAS_RENEWAL_MS };
}

function withIdentity(host: string, identity: Identity): Endpoint {
  // The connection needs the form of a connection string; no key is ever sent with it.
  const config = ConnectionConfig.create(
    `Endpoint=sb://${host}/;SharedAccessKeyName=defaultKeyName;SharedAccessKey=defaultKeyValue`,
  );
  return {
    config,
    async tokenFor() {
      const { token, expiresAt } = await identity.tokenFor(SCOPE);
      return { token, type: TokenType.CbsTokenTypeJwt, renewAt: expiresAt - RENEW_BEFORE_MS };
    },
  };
}
