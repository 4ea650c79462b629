import type { TokenCredential } from '@azure/identity';
import { connectionParts, requiredPart, wrongSetting } from '../connectionString.ts';

/** The services of a storage account that the office uses. */
export type StorageService = 'table' | 'queue' | 'blob';

/** How to reach one storage service: by connection string, or by its address with the app's identity. */
export type StorageConnection =
  | { readonly kind: 'connection-string'; readonly text: string }
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
  if (text?.trim()) return { kind: 'connection-string', text: connectionText(text, service) };
  const clientId = settings[`${STORAGE}__clientId`];
  return { kind: 'identity', url: serviceUrl(settings, service), credential: () => identity(clientId) };
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

/** The connection string in the spelling that every client reads. */
function connectionText(text: string, service: StorageService): string {
  const parts = connectionParts(STORAGE, text);
  if (parts.get('usedevelopmentstorage')?.toLowerCase() === 'true') return developmentStorage(service);
  const endpoint = `${SERVICES[service].name}Endpoint`;
  const url = parts.get(endpoint.toLowerCase());
  if (url !== undefined && !isUrl(url)) throw wrongSetting(STORAGE, `has a ${endpoint} that is no address`);
  if (parts.get('sharedaccesssignature')) {
    if (url === undefined) requiredPart(STORAGE, parts, 'AccountName');
  } else {
    requiredPart(STORAGE, parts, 'AccountName');
    const key = requiredPart(STORAGE, parts, 'AccountKey');
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(key)) throw wrongSetting(STORAGE, 'has an AccountKey that is not base64');
  }
  return [...parts].map(([key, value]) => `${SPELLED.get(key) ?? key}=${value}`).join(';');
}

/** Parts as the clients spell them: not all of them read other spellings. */
const SPELLED = new Map(
  [
    'DefaultEndpointsProtocol',
    'AccountName',
    'AccountKey',
    'EndpointSuffix',
    'SharedAccessSignature',
    'BlobEndpoint',
    'QueueEndpoint',
    'TableEndpoint',
    'FileEndpoint',
  ].map((key) => [key.toLowerCase(), key]),
);

function isUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
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
  if (!/^[a-z0-9]{3,24}$/.test(account)) {
    throw wrongSetting(
      `${STORAGE}__accountName`,
      'must be the name of a storage account: 3 to 24 small letters and digits',
    );
  }
  // The name alone does not tell the cloud; what is asked for facts does.
  const manager = URL.parse(settings.DLO_RESOURCE_MANAGER_URL ?? '')?.hostname ?? '';
  return `https://${account}.${service}.${SUFFIXES[manager] ?? 'core.windows.net'}`;
}
