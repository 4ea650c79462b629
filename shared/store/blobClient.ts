/**
 * Writes blobs into one container. The only file that needs the request pipeline for it, imported when first used. Not the blob SDK: it
 * would be a quarter of the package and as much to load, for one request of it (REST reference, "Put Blob"). What must not be written
 * twice, signing and trying again, is what that SDK is made of.
 */
import {
  bearerTokenAuthenticationPolicy,
  createDefaultHttpClient,
  createEmptyPipeline,
  createHttpHeaders,
  createPipelineRequest,
  type Pipeline,
  proxyPolicy,
  setClientRequestIdPolicy,
} from '@azure/core-rest-pipeline';
import { storageRetryPolicy, storageSharedKeyCredentialPolicy } from '@azure/storage-common';
import type { StorageConnection } from './connection.ts';

/** One container. */
export interface BlobContainer {
  /** Writes a blob in one request, whatever its size: it is there as a whole or not at all. Throws {@link BlobRefusal} and network errors. */
  put(name: string, content: Buffer, metadata: Readonly<Record<string, string>>): Promise<void>;
  /** Makes the container unless it is there. Throws like {@link BlobContainer.put}. */
  create(): Promise<void>;
}

/** The service's word that it has not done what was asked. `code` is the service's own, such as `ContainerNotFound`. */
export class BlobRefusal extends Error {
  override readonly name = 'BlobRefusal';
  readonly code: string;

  constructor(status: number, code: string) {
    super(`the blob service answered ${status}, ${code}`);
    this.code = code;
  }
}

/** First version that takes blobs of up to 5000 MiB in one request is 2019-12-12. */
const API_VERSION = '2021-12-02';
// Short, because a caller holds message locks while it waits; what is not written is done again by the caller.
const RETRIES = { maxTries: 3, retryDelayInMs: 200, maxRetryDelayInMs: 1000 };
/** A service that says nothing is not waited for, ms; nor is one slower than a megabyte a second. */
const PATIENCE = 30_000;
const BYTES_PER_MS = 1000;

/** Opens the client; connects to nothing yet. */
export async function openContainer(connection: StorageConnection, name: string): Promise<BlobContainer> {
  const { url, sas, sign } = await access(connection);
  const pipeline = createEmptyPipeline();
  pipeline.addPolicy(proxyPolicy());
  pipeline.addPolicy(setClientRequestIdPolicy('x-ms-client-request-id'));
  pipeline.addPolicy(storageRetryPolicy(RETRIES), { phase: 'Retry' });
  sign(pipeline);
  const client = createDefaultHttpClient();
  const container = `${url}/${name}`;

  async function send(path: string, query: string, headers: Record<string, string>, body?: Buffer): Promise<void> {
    const parameters = [query, sas].filter((part) => part !== '').join('&');
    const request = createPipelineRequest({
      url: `${container}${path}${parameters && `?${parameters}`}`,
      method: 'PUT',
      headers: createHttpHeaders({
        ...headers,
        'x-ms-version': API_VERSION,
        'content-length': String(body?.length ?? 0),
      }),
      timeout: PATIENCE + (body?.length ?? 0) / BYTES_PER_MS,
      // An emulator on this machine; a token is not sent that way in any case.
      allowInsecureConnection: connection.kind === 'connection-string',
      ...(body !== undefined && { body }),
    });
    const { status, headers: told } = await pipeline.sendRequest(client, request);
    if (status !== 201) throw new BlobRefusal(status, told.get('x-ms-error-code') ?? 'without a reason');
  }

  return {
    async put(blob, content, metadata) {
      const named = Object.entries(metadata).map(([key, value]) => [`x-ms-meta-${key}`, value]);
      const headers = {
        'x-ms-blob-type': 'BlockBlob',
        'content-type': 'application/octet-stream',
        ...Object.fromEntries(named),
      };
      await send(`/${blob.split('/').map(encodeURIComponent).join('/')}`, '', headers, content);
    },
    async create() {
      try {
        await send('', 'restype=container', {});
      } catch (error) {
        // Somebody else was faster.
        if (!(error instanceof BlobRefusal && error.code === 'ContainerAlreadyExists')) throw error;
      }
    },
  };
}

/** Address of the blob service, and how to be let in: the query of a shared access signature, or a policy that signs. */
interface Access {
  readonly url: string;
  readonly sas: string;
  readonly sign: (pipeline: Pipeline) => void;
}

async function access(connection: StorageConnection): Promise<Access> {
  if (connection.kind === 'identity') {
    const credential = await connection.credential();
    const policy = bearerTokenAuthenticationPolicy({ credential, scopes: 'https://storage.azure.com/.default' });
    return { url: connection.url, sas: '', sign: (pipeline) => pipeline.addPolicy(policy, { phase: 'Sign' }) };
  }
  const { url, by } = connection;
  if (by.signature !== undefined) return { url, sas: by.signature, sign: () => {} };
  const { accountName, accountKey } = by;
  const policy = storageSharedKeyCredentialPolicy({ accountName, accountKey: Buffer.from(accountKey, 'base64') });
  return { url, sas: '', sign: (pipeline) => pipeline.addPolicy(policy, { phase: 'Sign' }) };
}
