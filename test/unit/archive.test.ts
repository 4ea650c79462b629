import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, test } from 'vitest';
import { encodedMessage } from '../../shared/brokers/broker.ts';
import { sourceKey } from '../../shared/catalog.ts';
import { sequenceNumber } from '../../shared/letter.ts';
import { Archive, archiveName } from '../../shared/store/archive.ts';
import { openContainer } from '../../shared/store/blobClient.ts';
import { storageConnection } from '../../shared/store/connection.ts';
import { aLetter, NOW } from '../harness/values.ts';

const HOST = 'office.servicebus.windows.net';
const orders = sourceKey(HOST, 'orders');

describe('the name of a copy', () => {
  test('is made of the source, the day and the time it was enqueued, and its number', () => {
    expect(archiveName(orders, { sequenceNumber: sequenceNumber(17n), enqueuedAt: NOW })).toBe(
      `${HOST}~orders/2026-11-30/00000000000000000017-104512000.amqp`,
    );
  });

  test('keeps a subscription in one piece', () => {
    const name = archiveName(sourceKey(HOST, 'Events/Subscriptions/Billing'), aLetter());
    expect(name.split('/')).toHaveLength(3);
    expect(name).toMatch(/^office\.servicebus\.windows\.net~events~subscriptions~billing\//);
  });

  test('leads nowhere else, whatever an entity is called', () => {
    expect(archiveName(sourceKey(HOST, 'a/../b'), aLetter()).split('/')).toHaveLength(3);
  });

  test('is another one for a message under the same number, and for the same number elsewhere', () => {
    const letter = aLetter();
    const names = [
      archiveName(orders, letter),
      archiveName(orders, { ...letter, enqueuedAt: letter.enqueuedAt + 1 }),
      archiveName(sourceKey(HOST, 'orders2'), letter),
      archiveName(sourceKey('other.servicebus.windows.net', 'orders'), letter),
    ];
    expect(new Set(names).size).toBe(4);
  });

  it.each([
    [0, '1970-01-01/00000000000000000017-000000000.amqp'],
    [8.64e15, '+275760-09-13/00000000000000000017-000000000.amqp'],
    [9e15, 'undated/00000000000000000017-9000000000000000.amqp'],
    [-1, '1969-12-31/00000000000000000017-235959999.amqp'],
  ])('can be made of any time a message may claim: %d', (enqueuedAt, expected) => {
    expect(archiveName(orders, { sequenceNumber: sequenceNumber(17n), enqueuedAt })).toBe(`${HOST}~orders/${expected}`);
  });
});

interface Call {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

describe('writing', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  /** A blob service that answers what it is told, call by call, and the last of it for ever. */
  async function service(...answers: [status: number, code?: string][]) {
    const calls: Call[] = [];
    const server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const { method, url, headers } = request;
      const [status, code] = answers[Math.min(calls.length, answers.length - 1)] ?? [201];
      calls.push({ method, url, headers, body: Buffer.concat(parts).toString() });
      response.writeHead(status, code === undefined ? {} : { 'x-ms-error-code': code });
      response.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => {
      server.close();
      server.closeAllConnections();
    });
    return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/account` };
  }

  const archiveAt = (text: string) =>
    new Archive(() => storageConnection({ AzureWebJobsStorage: text }, 'blob'), 'test');
  const keyed = (url: string) =>
    `AccountName=account;AccountKey=${Buffer.from('key').toString('base64')};BlobEndpoint=${url}/`;
  const source = { key: orders, name: 'orders' };
  const read = (number: bigint) => {
    const letter = aLetter({ sequenceNumber: sequenceNumber(number) });
    return { letter, message: encodedMessage(Buffer.from(`message ${number}`)) };
  };

  test('puts the message and nothing else, signed by the key of the connection', async () => {
    const { calls, url } = await service([201]);
    const archived = await archiveAt(keyed(url)).keep(source, 'expired', [read(17n)]);
    expect(archived).toEqual({ kept: [true], why: undefined });
    expect(calls).toMatchObject([
      {
        method: 'PUT',
        url: `/account/dead-letter-archive/${HOST}~orders/2026-11-30/00000000000000000017-094512000.amqp`,
        body: 'message 17',
        headers: {
          'x-ms-blob-type': 'BlockBlob',
          'x-ms-meta-office': 'test',
          'x-ms-meta-source': 'orders',
          'x-ms-meta-fate': 'expired',
          authorization: expect.stringMatching(/^SharedKey account:/),
        },
      },
    ]);
  });

  test('goes by a shared access signature where the connection has one', async () => {
    const { calls, url } = await service([201]);
    await archiveAt(`BlobEndpoint=${url};SharedAccessSignature=?sv=1&sig=a%3D`).keep(source, 'expired', [read(17n)]);
    expect(calls[0]?.url).toMatch(/\.amqp\?sv=1&sig=a%3D$/);
    expect(calls[0]?.headers.authorization).toBeUndefined();
  });

  test('makes the container when it is missing, and goes on when somebody else was faster', async () => {
    const { calls, url } = await service([404, 'ContainerNotFound'], [409, 'ContainerAlreadyExists'], [201]);
    expect(await archiveAt(keyed(url)).keep(source, 'expired', [read(17n)])).toMatchObject({ kept: [true] });
    expect(calls.map((call) => call.url?.replace(/^.*archive/, ''))).toEqual([
      expect.stringMatching(/amqp$/),
      '?restype=container',
      expect.stringMatching(/amqp$/),
    ]);
  });

  it.each<[number, string]>([
    [403, 'AuthorizationPermissionMismatch'],
    [404, 'ResourceNotFound'],
    [409, 'BlobImmutableDueToPolicy'],
    [507, 'InsufficientAccountResources'],
  ])('that is refused with %d %s is told, and does not count as kept', async (status, code) => {
    const { url } = await service([status, code]);
    const archived = await archiveAt(keyed(url)).keep(source, 'expired', [read(17n)]);
    const why = `the container "dead-letter-archive" failed: the blob service answered ${status}, ${code}`;
    expect(archived).toEqual({ kept: [false], why });
  });

  test('does not count an answer that says something else as done', async () => {
    const { url } = await service([200]);
    expect(await archiveAt(keyed(url)).keep(source, 'expired', [read(17n)])).toMatchObject({ kept: [false] });
  });

  test('stops trying when the service is out', async () => {
    const { calls, url } = await service([403, 'AuthorizationFailure']);
    const many = Array.from({ length: 100 }, (_, i) => read(BigInt(i + 1)));
    const archived = await archiveAt(keyed(url)).keep(source, 'expired', many);
    expect(archived.kept).toEqual(many.map(() => false));
    expect(calls.length).toBeLessThan(40);
  });

  it.each([
    [';', 'has no AccountName'],
    ['AccountName=office', 'has no AccountKey'],
    ['BlobEndpoint=http://127.0.0.1:1;AccountKey=eA==', 'has no AccountName'],
    ['nonsense', 'has a part without a name and "="'],
  ])('with a connection that leads nowhere (%j) is told', async (text, why) => {
    const archived = await archiveAt(text).keep(source, 'expired', [read(17n)]);
    expect(archived.kept).toEqual([false]);
    expect(archived.why).toContain(why);
  });

  test('by identity sends no token over a line that others can read', async () => {
    const { calls, url } = await service([201]);
    const getToken = () => Promise.resolve({ token: 'secret', expiresOnTimestamp: Date.now() + 3_600_000 });
    const container = await openContainer({ kind: 'identity', url, credential: async () => ({ getToken }) }, 'c');
    await expect(container.put('a', Buffer.from('b'), {})).rejects.toThrow();
    expect(calls).toEqual([]);
  });
});

describe('the connection', () => {
  it.each([
    [{ AzureWebJobsStorage__accountName: 'office' }, 'https://office.blob.core.windows.net'],
    [{ AzureWebJobsStorage__blobServiceUri: 'https://b.example' }, 'https://b.example'],
  ])('is made by identity with %j', (settings, url) => {
    expect(storageConnection(settings, 'blob')).toMatchObject({ kind: 'identity', url });
  });

  test("is an emulator's with the short form", () => {
    const connection = storageConnection({ AzureWebJobsStorage: 'UseDevelopmentStorage=true' }, 'blob');
    expect(connection).toMatchObject({
      text: expect.stringContaining('BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1'),
    });
  });
});
