/**
 * Reads the setting that leads to a namespace: when the office opens, when it connects, and wherever a host name is needed. Loads no
 * library, because a start waits for it.
 */
import { connectionParts, requiredPart, wrongSetting } from '../../connectionString.ts';

type Settings = Readonly<Record<string, string | undefined>>;

/** A namespace and how the office is let in. `host` is lower-case, without port. */
export type NamespaceConnection =
  | { readonly kind: 'identity'; readonly host: string }
  | {
      readonly kind: 'connection-string';
      readonly host: string;
      readonly port: string | undefined;
      /** Whether it is a development emulator: without TLS, its administration interface somewhere else. */
      readonly isEmulator: boolean;
      readonly by:
        | { readonly keyName: string; readonly key: string; readonly signature?: never }
        | { readonly signature: string };
      /** The same in the one spelling that every SDK reads. */
      readonly text: string;
    };

const ENDPOINT = /^sb:\/\/(?<host>\[[0-9a-f:]+\]|[^:/?#@]+)(?::(?<port>\d+))?(?<path>[/?#].*)?$/i;
/** The resource id of a namespace, with its name as the first group. */
export const NAMESPACE_ID =
  /^\/subscriptions\/[\w-]+\/resourceGroups\/[\p{L}\p{N}_().-]*[\p{L}\p{N}_()-]\/providers\/Microsoft\.ServiceBus\/namespaces\/([\w-]+)\/?$/iu;
/** Labels between dots; Azure has no underscores in them, but a container's name may. */
const HOST = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i;

/**
 * The connection `name`: a connection string in the setting of that name, or the section `name__fullyQualifiedNamespace` as Azure
 * Functions knows it. Throws `DLO_SETTINGS_INVALID` that names the setting and what is malformed, and quotes no secret.
 */
export function readNamespaceConnection(name: string, settings: Settings): NamespaceConnection {
  const text = settings[name];
  if (text?.trim()) return fromText(name, text);
  const section = `${name}__fullyQualifiedNamespace`;
  const host = settings[section];
  if (!host?.trim()) throw wrongSetting(name, `is not there, and neither is "${section}"`);
  if (!HOST.test(host)) throw wrongSetting(section, 'must be a host name alone, such as office.servicebus.windows.net');
  return { kind: 'identity', host: host.toLowerCase() };
}

/**
 * The resource id of the namespace behind the connection `name`, from the setting `name__namespaceResourceId`; `undefined` when there is none.
 * Throws `DLO_SETTINGS_INVALID`.
 */
export function readNamespaceResourceId(name: string, settings: Settings): string | undefined {
  const section = `${name}__namespaceResourceId`;
  const id = settings[section]?.trim();
  if (!id) return undefined;
  if (!NAMESPACE_ID.test(id)) throw wrongSetting(section, 'must be the resource id of a Service Bus namespace');
  return id;
}

function fromText(name: string, text: string): NamespaceConnection {
  const parts = connectionParts(name, text);
  const endpoint = requiredPart(name, parts, 'Endpoint');
  const { host, port, path = '/' } = ENDPOINT.exec(endpoint)?.groups ?? {};
  if (host === undefined || !isHost(host) || !isPort(port)) {
    throw wrongSetting(name, 'must have an Endpoint such as sb://office.servicebus.windows.net/');
  }
  if (path !== '/') throw wrongSetting(name, 'has an Endpoint with a path: it must be that of a whole namespace');
  if (parts.has('entitypath')) {
    throw wrongSetting(name, 'has an EntityPath: it must be that of a whole namespace, not of one entity');
  }
  if (parts.has('authentication')) {
    const instead = `${name}__fullyQualifiedNamespace`;
    throw wrongSetting(name, `asks for an identity by Authentication: set "${instead}" to the host instead of it`);
  }
  const isEmulator = parts.get('usedevelopmentemulator')?.toLowerCase() === 'true';
  const where = `Endpoint=sb://${host}${port === undefined ? '' : `:${port}`}/`;
  const more = isEmulator ? ';UseDevelopmentEmulator=true' : '';
  const common = { kind: 'connection-string', host: host.toLowerCase(), port, isEmulator } as const;
  const signature = parts.get('sharedaccesssignature');
  if (signature) {
    if (!/^SharedAccessSignature\s.*\bsig=/i.test(signature)) {
      throw wrongSetting(name, 'has a SharedAccessSignature that does not begin with "SharedAccessSignature sr="');
    }
    return { ...common, by: { signature }, text: `${where};SharedAccessSignature=${signature}${more}` };
  }
  const keyName = requiredPart(name, parts, 'SharedAccessKeyName');
  const key = requiredPart(name, parts, 'SharedAccessKey');
  return {
    ...common,
    by: { keyName, key },
    text: `${where};SharedAccessKeyName=${keyName};SharedAccessKey=${key}${more}`,
  };
}

function isHost(text: string): boolean {
  return HOST.test(text) || (text.startsWith('[') && URL.canParse(`http://${text}`));
}

function isPort(text: string | undefined): boolean {
  return text === undefined || (Number(text) >= 1 && Number(text) <= 65_535);
}
