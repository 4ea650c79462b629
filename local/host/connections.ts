/** Turns the `connection` of a binding into a client, from a connection string or from an identity. */
import type { TokenCredential } from '@azure/identity';
import type { ServiceBusClient } from '@azure/service-bus';
import type { QueueServiceClient } from '@azure/storage-queue';
import type { Settings } from '../../cli/settings.ts';

/**
 * A Service Bus client for the connection `name`: the setting `name` holds a connection string, or `name__fullyQualifiedNamespace`
 * a host name to which the app's identity (`name__clientId`) is shown. A client's calls are tried once:
 * receiving goes on for ever by itself, and all else is the trigger's to decide.
 *
 * @throws Error naming the settings looked for when there is neither.
 */
export async function serviceBusClient(name: string, settings: Settings): Promise<ServiceBusClient> {
  const { ServiceBusClient } = await import('@azure/service-bus');
  const connection = prefixed(name, settings);
  const options = { retryOptions: { maxRetries: 0, timeoutInMs: 5000, retryDelayInMs: 200, maxRetryDelayInMs: 1000 } };
  const text = connection('');
  if (text) return new ServiceBusClient(text, options);
  const namespace = connection('__fullyQualifiedNamespace');
  if (namespace) return new ServiceBusClient(namespace, await credentialOf(connection), options);
  throw new Error(`Connection "${name}": neither the setting ${name} nor ${name}__fullyQualifiedNamespace is there.`);
}

/**
 * A client of the storage queues for the connection `name`: a connection string in the setting `name`, or an identity with
 * `name__queueServiceUri` or `name__accountName`.
 *
 * @throws Error naming the settings looked for when there is none.
 */
export async function queueServiceClient(name: string, settings: Settings): Promise<QueueServiceClient> {
  const { QueueServiceClient } = await import('@azure/storage-queue');
  const connection = prefixed(name, settings);
  const text = connection('');
  if (text) return QueueServiceClient.fromConnectionString(text, { retryOptions: { maxTries: 1 } });
  const account = connection('__accountName');
  const uri = connection('__queueServiceUri') ?? (account && `https://${account}.queue.core.windows.net`);
  if (uri) return new QueueServiceClient(uri, await credentialOf(connection));
  throw new Error(
    `Connection "${name}": neither the setting ${name}, ${name}__queueServiceUri nor ${name}__accountName is there.`,
  );
}

type Connection = (suffix: string) => string | undefined;

/** The real host also finds a connection `Storage` in the setting `AzureWebJobsStorage`. */
function prefixed(name: string, settings: Settings): Connection {
  return (suffix) => settings.get(`AzureWebJobs${name}${suffix}`) ?? settings.get(`${name}${suffix}`);
}

async function credentialOf(connection: Connection): Promise<TokenCredential> {
  // Loaded only here: it takes a third of a second, and a laptop rarely needs it.
  const { DefaultAzureCredential, ManagedIdentityCredential } = await import('@azure/identity');
  const clientId = connection('__clientId');
  if (connection('__credential')?.toLowerCase() === 'managedidentity') {
    return clientId ? new ManagedIdentityCredential({ clientId }) : new ManagedIdentityCredential();
  }
  return new DefaultAzureCredential(clientId ? { managedIdentityClientId: clientId } : {});
}
