import type { TokenCredential } from '@azure/identity';
import { connectionParts, requiredPart, wrongSetting } from '../connectionString.ts';

/** The services of a storage account that the office uses. */
export type StorageService = 'table' | 'queue' | 'blob';

/** How to reach one storage service, at its address without a slash at the end: by connection string, or with the app's identity. */
export type StorageConnection =
  | {
      readonly kind: 'connection-string';
      readonly url: string;
      /** A signature is a query without its question mark. */
      readonly by:
        | { readonly accountName: string; readonly accountKey: string; readonly signature?: never }
        | { readonly signature: string };
      /** The same for this service alone, in the one spelling that every client reads. */
      readonly text: string;
    }
  | { readonly kind: 'identity'; readonly url: string; readonly credential: () => Promise<TokenCredential> };

type Settings = Readonly<Record<string, string | undefined>>;

/** Name of the setting, and of the section beside it. */
export const STORAGE = 'AzureWebJobsStorage';

/**
 * Reads the connection the way the Functions host does: `AzureWebJobsStorage` as a connection string, or the section
 * `AzureWebJobsStorage__accountName` / `__tableServiceUri` / `__queueServiceUri` / `__blobServiceUri` with `__clientId` for an identity.
 * Throws `DLO_SETTINGS_INVALID` that names the setting and what is malformed, and quotes no secret.
 */
export function storageConnection(settings: Settings, service: StorageService): StorageConnection {
  const text = settings[STORAGE];
  if (text?.trim()) return fromText(text, service);
  const clientId = settings[`${STORAGE}__clientId`];
  return { kind: 'identity', url: bare(serviceUrl(settings, service)), credential: () => identity(clientId) };
}

async function identity(clientId: string | undefined): Promise<TokenCredential> {
  const { anyIdentity, managedIdentity } = await import('../identity.ts');
  return clientId ? managedIdentity(clientId) : anyIdentity(undefined);
}

/** Names of the services in a connection string, and the usual ports of an emulator. */
const SERVICES = {
  blob: { name: 'Blob', port: 10_000 },
  queue: { name: 'Queue', port: 10_001 },
  table: { name: 'Table', port: 10_002 },
} as const satisfies Record<StorageService, { name: string; port: number }>;

/**
 * Where an endpoint is left out it is made of the account, as the host does: not all clients do that without the protocol and the suffix,
 * which may be left out too.
 */
function fromText(text: string, service: StorageService): StorageConnection {
  const given = connectionParts(STORAGE, text);
  const isDevelopment = given.get('usedevelopmentstorage')?.toLowerCase() === 'true';
  const parts = isDevelopment ? connectionParts(STORAGE, developmentStorage(service)) : given;
  const endpoint = `${SERVICES[service].name}Endpoint`;
  const signature = parts.get('sharedaccesssignature')?.replace(/^\?/, '');
  const url = bare(parts.get(endpoint.toLowerCase()) ?? madeUrl(parts, service, signature ? endpoint : undefined));
  if (!isUrl(url)) throw wrongSetting(STORAGE, `has a ${endpoint} that is no address`);
  const common = { kind: 'connection-string', url } as const;
  if (signature) {
    return { ...common, by: { signature }, text: `${endpoint}=${url};SharedAccessSignature=${signature}` };
  }
  const accountName = requiredPart(STORAGE, parts, 'AccountName');
  const accountKey = requiredPart(STORAGE, parts, 'AccountKey');
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/.test(accountKey)) {
    throw wrongSetting(STORAGE, 'has an AccountKey that is not base64');
  }
  const protocol = new URL(url).protocol.replace(':', '');
  return {
    ...common,
    by: { accountName, accountKey },
    text: `DefaultEndpointsProtocol=${protocol};AccountName=${accountName};AccountKey=${accountKey};${endpoint}=${url}`,
  };
}

/** The address of a service of the account; `instead` is the part that could be there in its place. */
function madeUrl(parts: ReadonlyMap<string, string>, service: StorageService, instead: string | undefined): string {
  if (instead !== undefined && !parts.get('accountname')) {
    throw wrongSetting(STORAGE, `has no ${instead}, and no AccountName`);
  }
  const account = requiredPart(STORAGE, parts, 'AccountName');
  if (!ACCOUNT.test(account)) throw wrongSetting(STORAGE, `has an AccountName that is none: ${ACCOUNT_RULE}`);
  const protocol = (parts.get('defaultendpointsprotocol') ?? 'https').toLowerCase();
  if (!/^https?$/.test(protocol))
    throw wrongSetting(STORAGE, 'has a DefaultEndpointsProtocol other than https and http');
  const suffix = parts.get('endpointsuffix') || 'core.windows.net';
  if (!/^[a-z0-9.-]+$/i.test(suffix)) {
    throw wrongSetting(STORAGE, 'has an EndpointSuffix that is none, such as core.windows.net');
  }
  return `${protocol}://${account}.${service}.${suffix}`;
}

const ACCOUNT = /^[a-z0-9]{3,24}$/;
const ACCOUNT_RULE = '3 to 24 small letters and digits';

function isUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
}

function bare(url: string): string {
  return url.replace(/\/+$/, '');
}

/** Azurite's published account and key; the clients differ in whether they know the short form. */
function developmentStorage(service: StorageService): string {
  const key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
  const { name, port } = SERVICES[service];
  const endpoint = `${name}Endpoint=http://127.0.0.1:${port}/devstoreaccount1`;
  return `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${key};${endpoint};`;
}

/** Where accounts have their addresses, by the Resource Manager of the cloud. Source: Azure, "Compare Azure Government and global Azure", "Azure China developer guide". */
const SUFFIXES: Readonly<Record<string, string>> = {
  'management.usgovcloudapi.net': 'core.usgovcloudapi.net',
  'management.chinacloudapi.cn': 'core.chinacloudapi.cn',
};

function serviceUrl(settings: Settings, service: StorageService): string {
  const section = `${STORAGE}__${service}ServiceUri`;
  const url = settings[section];
  if (url) {
    if (!isUrl(url)) throw wrongSetting(section, 'must be an address such as https://account.table.core.windows.net');
    return url;
  }
  const account = settings[`${STORAGE}__accountName`];
  if (!account) throw wrongSetting(STORAGE, `is not there, and neither is "${STORAGE}__accountName" or "${section}"`);
  if (!ACCOUNT.test(account)) {
    throw wrongSetting(`${STORAGE}__accountName`, `must be the name of a storage account: ${ACCOUNT_RULE}`);
  }
  // The name alone does not tell the cloud; what is asked for facts does.
  const manager = URL.parse(settings.DLO_RESOURCE_MANAGER_URL ?? '')?.hostname ?? '';
  return `https://${account}.${service}.${SUFFIXES[manager] ?? 'core.windows.net'}`;
}
