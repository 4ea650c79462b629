import type { TokenCredential } from '@azure/identity';
import { OfficeError } from '../errors.ts';

/** The services of a storage account that the office uses. */
export type StorageService = 'table' | 'queue' | 'blob';

/** How to reach one storage service: by connection string, or by its address with the app's identity. */
export type StorageConnection =
  | { readonly kind: 'connection-string'; readonly text: string }
  | { readonly kind: 'identity'; readonly url: string; readonly credential: () => Promise<TokenCredential> };

/**
 * Reads the connection the way the Functions host does: `AzureWebJobsStorage` as a connection string, or the section
 * `AzureWebJobsStorage__accountName` / `__tableServiceUri` / `__queueServiceUri` / `__blobServiceUri` with `__clientId` for an identity.
 * Throws `DLO_CATALOG_INVALID` when neither is set.
 */
export function storageConnection(
  settings: Readonly<Record<string, string | undefined>>,
  service: StorageService,
): StorageConnection {
  const name = 'AzureWebJobsStorage';
  const text = settings[name];
  if (text) {
    const local = text.trim() === 'UseDevelopmentStorage=true';
    return { kind: 'connection-string', text: local ? developmentStorage(service) : text };
  }
  const account = settings[`${name}__accountName`];
  const url =
    settings[`${name}__${service}ServiceUri`] ?? (account && `https://${account}.${service}.core.windows.net`);
  if (!url) {
    throw new OfficeError(
      'DLO_CATALOG_INVALID',
      `the app settings have neither a connection string "${name}" nor "${name}__accountName"`,
    );
  }
  const clientId = settings[`${name}__clientId`];
  return { kind: 'identity', url, credential: () => identity(clientId) };
}

async function identity(clientId: string | undefined): Promise<TokenCredential> {
  const { anyIdentity, managedIdentity } = await import('../identity.ts');
  return clientId ? managedIdentity(clientId) : anyIdentity(undefined);
}

/** Usual ports of an emulator, and the names of its endpoints in a connection string. */
const EMULATED = {
  blob: { name: 'Blob', port: 10_000 },
  queue: { name: 'Queue', port: 10_001 },
  table: { name: 'Table', port: 10_002 },
} as const satisfies Record<StorageService, { name: string; port: number }>;

/** Azurite's published account and key; the clients differ in whether they know the short form. */
function developmentStorage(service: StorageService): string {
  const key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
  const { name, port } = EMULATED[service];
  const endpoint = `${name}Endpoint=http://127.0.0.1:${port}/devstoreaccount1`;
  return `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${key};${endpoint};`;
}
