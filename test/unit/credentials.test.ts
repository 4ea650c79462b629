import { describe, expect, it } from 'vitest';
import { readNamespaceConnection } from '../../shared/brokers/serviceBus/connectionSetting.ts';
import { readEndpoint } from '../../shared/brokers/serviceBus/credentials.ts';
import { storageConnection } from '../../shared/store/connection.ts';
import { openQueues } from '../../shared/store/queueClient.ts';
import { openTable } from '../../shared/store/tableClient.ts';

const HOST = 'orders.servicebus.windows.net';
const withKey = `Endpoint=sb://${HOST}/;SharedAccessKeyName=office;SharedAccessKey=c2VjcmV0`;

describe('the connection of a namespace', () => {
  it('is made by key, with tokens for one entity that are renewed in time', async () => {
    const endpoint = readEndpoint('Bus', { Bus: withKey });
    expect(endpoint.config).toMatchObject({ endpoint: `sb://${HOST}/`, host: HOST, useDevelopmentEmulator: false });
    const token = await endpoint.tokenFor(`sb://${HOST}/orders`);
    expect(token.type).toBe('servicebus.windows.net:sastoken');
    expect(token.token).toContain(`sr=${encodeURIComponent(`sb://${HOST}/orders`)}`);
    const expiry = Number(/se=(\d+)/.exec(token.token)?.[1]) * 1000;
    expect(token.renewAt).toBeLessThan(expiry);
  });

  it('is made by a ready signature', async () => {
    const signature = 'SharedAccessSignature sr=x&sig=y&se=1&skn=office';
    const endpoint = readEndpoint('Bus', { Bus: `Endpoint=sb://${HOST}/;SharedAccessSignature=${signature}` });
    expect((await endpoint.tokenFor(`sb://${HOST}/orders`)).token).toBe(signature);
  });

  it('goes over plain TCP to the port of a development emulator', () => {
    const local =
      'Endpoint=sb://localhost:5673;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true';
    expect(readEndpoint('Bus', { Bus: local }).config).toMatchObject({
      endpoint: 'sb://localhost:5673/',
      host: 'localhost',
      port: 5673,
      useDevelopmentEmulator: true,
    });
  });

  it('is made by identity when only the host is named', () => {
    const endpoint = readEndpoint('Bus', { Bus__fullyQualifiedNamespace: HOST, Bus__clientId: 'c' });
    expect(endpoint.config).toMatchObject({ endpoint: `sb://${HOST}/`, host: HOST, useDevelopmentEmulator: false });
  });

  it.each<[string, string]>([
    ['keys in lower case', `endpoint=sb://${HOST}/;sharedaccesskeyname=office;sharedaccesskey=c2VjcmV0`],
    ['blanks and line ends', ` Endpoint=sb://${HOST}/ ;\n SharedAccessKeyName = office; SharedAccessKey=c2VjcmV0 \r\n`],
    ['an empty part', `Endpoint=sb://${HOST}/;;SharedAccessKeyName=office;SharedAccessKey=c2VjcmV0;`],
    ['no slash behind the host', withKey.replace('/;', ';')],
    ['the host in capitals', withKey.replace(HOST, HOST.toUpperCase())],
    ['a part that is none of ours', `${withKey};TransportType=AmqpWebSockets`],
  ])('is the same when it is written with %s', async (_what, Bus) => {
    const { config } = readEndpoint('Bus', { Bus });
    expect(config.host.toLowerCase()).toBe(HOST);
    const read = readNamespaceConnection('Bus', { Bus });
    expect(read).toMatchObject({ host: HOST, by: { keyName: 'office', key: 'c2VjcmV0' } });
  });

  it.each<[string, Record<string, string>, string]>([
    ['nothing is set', {}, '"Bus" is not there, and neither is "Bus__fullyQualifiedNamespace"'],
    ['it is blank', { Bus: ' \n' }, '"Bus" is not there'],
    ['the text is no connection string', { Bus: 'secret-key-in-the-wrong-place' }, 'has a part without a name and "="'],
    ['it is a host', { Bus: HOST }, 'has a part without a name and "="'],
    ['it is in quotation marks', { Bus: `"${withKey}"` }, 'is in quotation marks'],
    ['there is no endpoint', { Bus: 'SharedAccessKeyName=office;SharedAccessKey=secret' }, 'has no Endpoint'],
    ['there is no key', { Bus: `Endpoint=sb://${HOST}/;SharedAccessKeyName=office` }, 'has no SharedAccessKey'],
    [
      'the key is empty',
      { Bus: `Endpoint=sb://${HOST}/;SharedAccessKeyName=o;SharedAccessKey=` },
      'has no SharedAccessKey',
    ],
    ['there is no key name', { Bus: `Endpoint=sb://${HOST}/;SharedAccessKey=secret` }, 'has no SharedAccessKeyName'],
    ['a part is there twice', { Bus: `${withKey};SharedAccessKey=secret` }, 'has a part twice'],
    [
      'it asks for an identity',
      { Bus: `Endpoint=sb://${HOST}/;Authentication=Managed Identity` },
      'set "Bus__fullyQualifiedNamespace" to the host',
    ],
    [
      'the endpoint is for browsers',
      { Bus: withKey.replace('sb://', 'https://').replace('/;', ':443/;') },
      'such as sb://',
    ],
    [
      'the endpoint has no scheme',
      { Bus: 'Endpoint=localhost:6765;SharedAccessKeyName=o;SharedAccessKey=s' },
      'such as sb://',
    ],
    ['the endpoint names an entity', { Bus: withKey.replace('/;', '/secret;') }, 'has an Endpoint with a path'],
    ['it is for one entity', { Bus: `${withKey};EntityPath=secret` }, 'has an EntityPath'],
    [
      'the host is an address',
      { Bus__fullyQualifiedNamespace: `https://${HOST}:443/` },
      '"Bus__fullyQualifiedNamespace" must be a host name alone',
    ],
    ['the host ends with a line', { Bus__fullyQualifiedNamespace: `${HOST}\n` }, 'must be a host name alone'],
    ['the host of the endpoint is none', { Bus: withKey.replace(HOST, '-') }, 'such as sb://'],
    ['the host of the endpoint has an empty label', { Bus: withKey.replace(HOST, 'orders..net') }, 'such as sb://'],
    ['the port is none', { Bus: withKey.replace('/;', ':65536/;') }, 'such as sb://'],
    [
      'the signature is none',
      { Bus: `Endpoint=sb://${HOST}/;SharedAccessSignature=secret` },
      'has a SharedAccessSignature that does not begin',
    ],
    [
      'it is a reference that was not resolved',
      { Bus: '@Microsoft.KeyVault(SecretUri=https://orders.vault.azure.net/secrets/secret)' },
      'is a reference to Key Vault that the platform has not resolved',
    ],
    ['the host has an empty label', { Bus__fullyQualifiedNamespace: 'orders..net' }, 'must be a host name alone'],
    ['the host is none', { Bus__fullyQualifiedNamespace: 'a/b|c' }, 'must be a host name alone'],
  ])('is refused with its name and without quoting it when %s', (_what, settings, why) => {
    // The same at opening and at first use.
    for (const read of [() => readEndpoint('Bus', settings), () => readNamespaceConnection('Bus', settings)]) {
      expect(read).toThrow(expect.objectContaining({ code: 'DLO_SETTINGS_INVALID' }));
      expect(read).toThrow(why);
      expect(read).not.toThrow(/secret|orders/);
    }
  });
});

describe('the connection of the storage', () => {
  const NAME = 'AzureWebJobsStorage';
  const key = 'DefaultEndpointsProtocol=https;AccountName=office;AccountKey=c2VjcmV0';
  const of = (settings: Record<string, string>) => storageConnection(settings, 'table');

  it.each<[string, Record<string, string>, string]>([
    [
      'nothing is set',
      {},
      `"${NAME}" is not there, and neither is "${NAME}__accountName" or "${NAME}__tableServiceUri"`,
    ],
    ['the text is no connection string', { [NAME]: 'hello' }, 'has a part without a name and "="'],
    ['it is in quotation marks', { [NAME]: `'${key}'` }, 'is in quotation marks'],
    ['there is no key', { [NAME]: 'AccountName=office' }, 'has no AccountKey'],
    ['there is no account', { [NAME]: 'AccountKey=c2VjcmV0' }, 'has no AccountName'],
    ['the key is none', { [NAME]: 'AccountName=office;AccountKey=secret key' }, 'has an AccountKey that is not base64'],
    [
      'an endpoint is none',
      { [NAME]: `${key};TableEndpoint=localhost:10002` },
      'has a TableEndpoint that is no address',
    ],
    ['a signature is for nowhere', { [NAME]: 'SharedAccessSignature=sv=1&sig=secret' }, 'has no TableEndpoint, and no'],
    ['the key is cut', { [NAME]: 'AccountName=office;AccountKey=secre' }, 'has an AccountKey that is not base64'],
    ['the account is none', { [NAME]: key.replace('office', 'Secret!') }, 'has an AccountName that is none'],
    ['the protocol is none', { [NAME]: key.replace('https', 'ftp') }, 'has a DefaultEndpointsProtocol other than'],
    [
      'the suffix is an address',
      { [NAME]: `${key};EndpointSuffix=https://secret` },
      'has an EndpointSuffix that is none',
    ],
    ['an endpoint has a query', { [NAME]: `${key};TableEndpoint=https://a/?secret` }, 'has a TableEndpoint that is no'],
    [
      'the account is an address',
      { [`${NAME}__accountName`]: 'https://secret.table' },
      `"${NAME}__accountName" must be`,
    ],
    [
      'the address is none',
      { [`${NAME}__tableServiceUri`]: 'secret' },
      `"${NAME}__tableServiceUri" must be an address`,
    ],
  ])('is refused with its name and without quoting it when %s', (_what, settings, why) => {
    expect(() => of(settings)).toThrow(expect.objectContaining({ code: 'DLO_SETTINGS_INVALID' }));
    expect(() => of(settings)).toThrow(why);
    expect(() => of(settings)).not.toThrow(/secret/);
  });

  it.each<[string, string]>([
    ['the suffix', `${key};EndpointSuffix=core.windows.net`],
    ['no suffix', key],
    ['neither suffix nor protocol', key.replace('DefaultEndpointsProtocol=https;', '')],
    ['an empty suffix', `${key};EndpointSuffix=`],
    ['keys in lower case', key.toLowerCase().replace('c2vjcmv0', 'c2VjcmV0')],
    ['blanks and line ends', ` ${key.replaceAll(';', ' ;\n')}\r\n`],
    [
      'the endpoint instead',
      `AccountName=office;AccountKey=c2VjcmV0;TableEndpoint=https://office.table.core.windows.net/`,
    ],
    ['a signature and the account', 'AccountName=office;SharedAccessSignature=?sv=1&sig=x'],
    [
      'a signature and the endpoint',
      'TableEndpoint=https://office.table.core.windows.net/;SharedAccessSignature=sv=1&sig=x',
    ],
  ])('leads every client to the same place when it is written with %s', async (_what, text) => {
    const signed = text.includes('SharedAccess') ? '?sv=1&sig=x' : '';
    const settings = { [NAME]: text.replace('TableEndpoint', 'QueueEndpoint').replace('office.table', 'office.queue') };
    expect((await openTable(of({ [NAME]: text }), 'letters')).url).toBe(
      `https://office.table.core.windows.net${signed}`,
    );
    const queues = await openQueues(storageConnection(settings, 'queue'));
    expect(queues.url).toBe(`https://office.queue.core.windows.net${signed}`);
  });

  it.each([
    ['https://management.azure.com/', 'https://office.table.core.windows.net'],
    ['https://management.usgovcloudapi.net/', 'https://office.table.core.usgovcloudapi.net'],
    ['https://management.chinacloudapi.cn', 'https://office.table.core.chinacloudapi.cn'],
  ])('by the name of the account alone leads into the cloud of %s', (manager, url) => {
    const settings = { [`${NAME}__accountName`]: 'office', DLO_RESOURCE_MANAGER_URL: manager };
    expect(of(settings)).toMatchObject({ kind: 'identity', url });
  });
});
