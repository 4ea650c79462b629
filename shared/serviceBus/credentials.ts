/** Where a namespace is and how the office proves who it is, from the app settings. */
import { ConnectionConfig, createSasTokenProvider, parseConnectionString, TokenType } from '@azure/core-amqp';
import { OfficeError } from '../errors.ts';
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

/**
 * The endpoint behind setting `name`: a connection string, or a section `name__fullyQualifiedNamespace` with
 * `name__clientId` and `name__credential` as Azure Functions knows them. Throws `DLO_CATALOG_INVALID`.
 */
export function readEndpoint(name: string, settings: Settings): Endpoint {
  const connectionString = settings[name];
  const host = settings[`${name}__fullyQualifiedNamespace`];
  if (connectionString) return withConnectionString(name, connectionString);
  if (host) return withIdentity(host, identityFor(name, settings));
  throw new OfficeError(
    'DLO_CATALOG_INVALID',
    `The app settings have neither a connection string "${name}" nor "${name}__fullyQualifiedNamespace".`,
  );
}

function withConnectionString(name: string, connectionString: string): Endpoint {
  const { config, keyName, key, signature } = parse(name, connectionString);
  if (signature) {
    const provider = createSasTokenProvider({ sharedAccessSignature: signature });
    return { config, tokenFor: async (audience) => sas((await provider.getToken(audience)).token) };
  }
  if (!keyName || !key) {
    throw new OfficeError('DLO_CATALOG_INVALID', `The connection string "${name}" has neither a key nor a signature.`);
  }
  const provider = createSasTokenProvider({ sharedAccessKeyName: keyName, sharedAccessKey: key });
  return { config, tokenFor: async (audience) => sas((await provider.getToken(audience)).token) };
}

/** The cause of a failure is left out on purpose: it could quote the key. */
function parse(name: string, connectionString: string) {
  try {
    const parts = parseConnectionString<Record<string, string | undefined>>(connectionString);
    const { SharedAccessKeyName: keyName, SharedAccessKey: key, SharedAccessSignature: signature } = parts;
    return { config: ConnectionConfig.create(connectionString), keyName, key, signature };
  } catch {
    throw new OfficeError('DLO_CATALOG_INVALID', `The app setting "${name}" is not a Service Bus connection string.`);
  }
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
