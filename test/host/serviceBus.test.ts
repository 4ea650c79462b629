import { ServiceBusClient } from '@azure/service-bus';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig, type RunningBroker, startBroker } from '../../local/broker/index.ts';
import { type OfficeProcess, startOfficeProcess } from '../harness/host.ts';

interface Entry {
  name: string;
  message: unknown;
  metadata: Record<string, unknown>;
  traceParent: string;
}

const queue = (Name: string, LockDuration = 'PT1M') => ({ Name, Properties: { LockDuration, MaxDeliveryCount: 3 } });
const config = () =>
  parseConfig({
    UserConfig: {
      Namespaces: [
        {
          Name: 'sbemulatorns',
          Queues: [queue('orders'), queue('bytes'), queue('slow', 'PT5S')],
          Topics: [
            { Name: 'events', Properties: {}, Subscriptions: [{ Name: 'audit', Properties: { MaxDeliveryCount: 1 } }] },
          ],
        },
      ],
      Logging: { Type: 'Console' },
    },
  });

let broker: RunningBroker;
let host: OfficeProcess;
let client: ServiceBusClient;

const startHost = (connectionString: string) =>
  startOfficeProcess({
    root: 'test/host/fixtures/serviceBus',
    entry: 'index.ts',
    settings: { Bus: connectionString, OrdersQueue: 'orders' },
  });

const seen = async (name: string, id?: string): Promise<Entry[]> => {
  const all = (await host.call('GET', '/api/records')).json as Entry[];
  return all.filter((entry) => entry.name === name && (id === undefined || entry.metadata.messageId === id));
};
const count = (path: string) => broker.messages(path).length;
const letterQueue = 'orders/$DeadLetterQueue';

describe('a Service Bus function', () => {
  beforeAll(async () => {
    broker = await startBroker({ config: config() });
    client = new ServiceBusClient(broker.connectionString);
    host = await startHost(broker.connectionString);
  });
  afterAll(async () => {
    await client.close();
    await host.stop();
    await broker.close();
  });
  beforeEach(() => broker.recreate('orders'));

  const send = (to: string, ...messages: { messageId: string; body: unknown; [key: string]: unknown }[]) =>
    client.createSender(to).sendMessages(messages);

  it('gets body and metadata as in Azure, and its success completes the message', async () => {
    await send('orders', {
      messageId: 'm1',
      body: { orderId: 7 },
      subject: 'order.created',
      correlationId: '123',
      contentType: 'application/json',
      timeToLive: 3_600_000,
      applicationProperties: {
        OrderType: 'x',
        'Diagnostic-Id': '00-11111111111111111111111111111111-2222222222222222-01',
        At: new Date('2026-01-02T03:04:05Z'),
      },
    });
    await expect.poll(() => seen('orders', 'm1')).toHaveLength(1);
    const [entry] = await seen('orders', 'm1');
    const properties = {
      orderType: 'x',
      'diagnostic-Id': '00-11111111111111111111111111111111-2222222222222222-01',
      at: '2026-01-02T03:04:05Z',
    };
    expect(entry).toMatchObject({
      message: { orderId: 7 },
      traceParent: '00-11111111111111111111111111111111-2222222222222222-01',
      metadata: {
        messageId: 'm1',
        correlationId: 123, // text that reads as JSON is parsed
        sequenceNumber: 1,
        deliveryCount: 1,
        lockToken: expect.stringMatching(/^[0-9a-f-]{36}$/),
        enqueuedTimeUtc: expect.stringMatching(/^20.*Z$/),
        enqueuedTime: expect.stringMatching(/^20.*\+00:00$/),
        expiresAtUtc: expect.stringMatching(/^20.*Z$/),
        subject: 'order.created',
        label: 'order.created',
        contentType: 'application/json',
        applicationProperties: properties,
        userProperties: properties,
        orderId: 7, // the body's own properties come along
        sys: { methodName: 'orders' },
      },
    });
    expect(entry?.metadata).not.toHaveProperty('sessionId');
    expect(entry?.metadata).not.toHaveProperty('deadLetterSource');
    await expect.poll(() => count('orders')).toBe(0);
    expect(count(letterQueue)).toBe(0);
  });

  it('that fails has its message abandoned, until the broker dead-letters it', async () => {
    await send('orders', { messageId: 'm2', body: { fail: true } });
    await expect.poll(() => seen('letters', 'm2')).toHaveLength(1);
    expect((await seen('orders', 'm2')).map((entry) => entry.metadata.deliveryCount)).toEqual([1, 2, 3]);
    const [letter] = await seen('letters', 'm2');
    expect(letter?.metadata.applicationProperties).toMatchObject({ deadLetterReason: 'MaxDeliveryCountExceeded' });
  });

  it('with autoCompleteMessages false leaves the message locked', async () => {
    await send('orders', { messageId: 'm3', body: { fail: 3 } });
    await expect.poll(() => seen('letters', 'm3')).toHaveLength(1);
    expect(broker.messages(letterQueue)).toMatchObject([{ locked: true }]);
    // Nothing settles it: when its lock has run out, it comes again.
    broker.clock.advance(61_000);
    await expect.poll(() => seen('letters', 'm3'), { timeout: 5000 }).toHaveLength(2);
  });

  it('has each message settled by its own outcome when many end at once', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `batch-${index}`);
    await send('orders', ...ids.map((messageId, index) => ({ messageId, body: index % 2 ? { fail: 1 } : 'fine' })));
    await expect.poll(() => count('orders'), { timeout: 10_000 }).toBe(0);
    await expect.poll(() => count(letterQueue)).toBe(10);
    const failed = new Set((await seen('letters')).map((entry) => entry.metadata.messageId));
    expect(ids.filter((id, index) => failed.has(id) !== (index % 2 === 1))).toEqual([]);
  });

  it('runs up to maxConcurrentCalls at once', async () => {
    await send('orders', ...Array.from({ length: 9 }, (_, at) => ({ messageId: `wait-${at}`, body: { wait: 100 } })));
    await expect.poll(() => count('orders'), { timeout: 10_000 }).toBe(0);
    expect((await host.call('GET', '/api/most-active')).json).toBe(4);
  });

  it('keeps the lock of a message it works on, even when two share an id', async () => {
    // A clock ahead of the host's makes the end of every lock look far away.
    broker.clock.advance(3_600_000);
    const body = { wait: 5500 };
    await send('slow', { messageId: 'twin', body }, { messageId: 'twin', body });
    await expect.poll(() => count('slow'), { timeout: 10_000 }).toBe(0);
    expect((await seen('slow', 'twin')).map((entry) => entry.metadata.deliveryCount)).toEqual([1, 1]);
  });

  it('serves a subscription and its dead-letter queue', async () => {
    await send('events', { messageId: 'e1', body: { fail: 1 } }, { messageId: 'e2', body: 'text' });
    await expect.poll(() => seen('auditLetters', 'e1')).toHaveLength(1);
    await expect.poll(() => seen('audit', 'e2')).toHaveLength(1);
    expect((await seen('audit', 'e2'))[0]?.message).toBe('text');
    await expect.poll(() => count('events/Subscriptions/audit')).toBe(0);
  });

  it('gets bytes when its binding says binary', async () => {
    await send('bytes', { messageId: 'b1', body: Buffer.from([123, 0, 255]) });
    await expect.poll(() => seen('bytes', 'b1')).toHaveLength(1);
    expect((await seen('bytes', 'b1'))[0]?.message).toEqual({ bytes: [123, 0, 255] });
  });

  it('can be run by hand', async () => {
    await host.run('orders', { sequenceNumber: 5000 });
    const entries = (await seen('orders')).filter((entry) => entry.metadata.sequenceNumber === 5000);
    expect(entries).toMatchObject([{ message: { sequenceNumber: 5000 } }]);
  });
});
