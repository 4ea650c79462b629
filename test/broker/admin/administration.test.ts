/** The unmodified administration client on this broker. */
import { ServiceBusAdministrationClient } from '@azure/service-bus';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { overHttp, type SasKey } from '../../../local/broker/index.ts';
import { Bench, manual, take } from '../harness.ts';
import { adminWith, all } from './clients.ts';

const sasKeys: SasKey[] = [
  { name: 'listener', key: 'bGlzdGVu', rights: ['Listen', 'Send'] },
  { name: 'own', key: 'b3du', rights: ['Manage'], entity: 'q' },
];
let bench: Bench;
let admin: ServiceBusAdministrationClient;

beforeAll(async () => {
  bench = await Bench.start(
    {
      q: { LockDuration: 'PT30S', MaxDeliveryCount: 2, DeadLetteringOnMessageExpiration: true },
      'team/orders': { ForwardDeadLetteredMessagesTo: 'q' },
      sessions: { RequiresSession: true },
    },
    { t: ['s'], 'team/events': ['x', 'y'] },
    { sasKeys },
  );
  admin = adminWith(bench.broker.adminConnectionString);
});
afterAll(() => bench.close());

describe('reading', () => {
  it('tells how queues, topics and subscriptions are set', async () => {
    expect(await admin.getQueue('Q')).toMatchObject({
      name: 'q',
      lockDuration: 'PT30S',
      maxDeliveryCount: 2,
      deadLetteringOnMessageExpiration: true,
      defaultMessageTimeToLive: 'PT1H',
      requiresSession: false,
      requiresDuplicateDetection: false,
      enablePartitioning: false,
      status: 'Active',
    });
    expect((await admin.getQueue('team/orders')).forwardDeadLetteredMessagesTo).toMatch(/^sb:\/\/[^/]+\/q$/);
    expect((await admin.getQueue('sessions')).requiresSession).toBe(true);
    expect(await admin.getTopic('team/events')).toMatchObject({ name: 'team/events', status: 'Active' });
    expect(await admin.getSubscription('team/events', 'x')).toMatchObject({
      topicName: 'team/events',
      subscriptionName: 'x',
      lockDuration: 'PT1M',
      maxDeliveryCount: 10,
    });
    expect(await admin.getNamespaceProperties()).toMatchObject({ name: 'sbemulatorns', messagingSku: 'Standard' });
  });

  it('says what is there and what is not', async () => {
    expect(await admin.queueExists('q')).toBe(true);
    expect(await admin.queueExists('t')).toBe(false);
    expect(await admin.topicExists('t')).toBe(true);
    expect(await admin.subscriptionExists('t', 's')).toBe(true);
    expect(await admin.subscriptionExists('t', 'nowhere')).toBe(false);
    expect(await admin.ruleExists('t', 's', '$Default')).toBe(true);
    expect(await admin.ruleExists('t', 's', 'nowhere')).toBe(false);
    for (const missing of [
      () => admin.getQueue('nowhere'),
      () => admin.getTopic('nowhere'),
      () => admin.getSubscription('nowhere', 's'),
      () => admin.deleteQueue('nowhere'),
      () => admin.deleteRule('t', 's', 'nowhere'),
    ]) {
      await expect(missing()).rejects.toMatchObject({ code: 'MessageEntityNotFoundError', statusCode: 404 });
    }
  });

  it('lists by name, and in pages when asked to', async () => {
    expect((await all(admin.listQueues())).map(({ name }) => name)).toEqual(['q', 'sessions', 'team/orders']);
    expect((await all(admin.listTopics())).map(({ name }) => name)).toEqual(['t', 'team/events']);
    const subscriptions = await all(admin.listSubscriptions('team/events'));
    expect(subscriptions.map(({ subscriptionName }) => subscriptionName)).toEqual(['x', 'y']);
    const pages = await all(admin.listQueues().byPage({ maxPageSize: 2 }));
    expect(pages.map((page) => page.map(({ name }) => name))).toEqual([['q', 'sessions'], ['team/orders']]);
    expect((await all(admin.listRules('t', 's'))).map(({ name }) => name)).toEqual(['$Default']);
    expect(await all(admin.listRules('team/events', 'x'))).toMatchObject([{ filter: { sqlExpression: '1=1' } }]);
  });

  it('counts what is really there', async () => {
    bench.broker.recreate('q');
    const client = bench.client();
    const sender = client.createSender('q');
    await sender.sendMessages(Array.from({ length: 6 }, (_, body) => ({ body })));
    await sender.scheduleMessages([{ body: 'later' }], new Date(Date.now() + 60_000));
    const receiver = client.createReceiver('q', manual);
    const [deferred, dead, completed] = await take(receiver, 3);
    if (deferred) await receiver.deferMessage(deferred);
    if (dead) await receiver.deadLetterMessage(dead);
    if (completed) await receiver.completeMessage(completed);
    const letters = client.createReceiver('q', { ...manual, subQueueType: 'deadLetter' });
    const [letter] = await take(letters, 1);
    if (letter) await letters.deferMessage(letter);
    const counts = await admin.getQueueRuntimeProperties('q');
    expect(counts).toMatchObject({
      activeMessageCount: 4,
      deadLetterMessageCount: 1,
      scheduledMessageCount: 1,
      transferMessageCount: 0,
      transferDeadLetterMessageCount: 0,
      totalMessageCount: 6,
    });
    expect(counts.sizeInBytes).toBeGreaterThan(100);
    expect(counts.createdAt).toBeInstanceOf(Date);
    bench.broker.recreate('q');
    expect(await admin.getQueueRuntimeProperties('q')).toMatchObject({ totalMessageCount: 0, sizeInBytes: 0 });
    await client.createSender('t').sendMessages({ body: 1 });
    expect(await admin.getSubscriptionRuntimeProperties('t', 's')).toMatchObject({
      activeMessageCount: 1,
      totalMessageCount: 1,
    });
    expect(await admin.getTopicRuntimeProperties('t')).toMatchObject({
      subscriptionCount: 1,
      scheduledMessageCount: 0,
    });
    expect(await all(admin.listQueuesRuntimeProperties())).toHaveLength(3);
    expect(await all(admin.listSubscriptionsRuntimeProperties('t'))).toMatchObject([{ activeMessageCount: 1 }]);
  });
});

describe('the right to manage', () => {
  it('is needed for all of it', async () => {
    const { broker } = bench;
    const refused = { code: 'UnauthorizedRequestError', statusCode: 401 };
    await expect(adminWith(broker.adminConnectionStringWith('listener')).getQueue('q')).rejects.toMatchObject(refused);
    const wrong = broker.adminConnectionString.replace(/SharedAccessKey=[^;]*/, 'SharedAccessKey=d3Jvbmc=');
    await expect(adminWith(wrong).getQueue('q')).rejects.toMatchObject(refused);
    const own = adminWith(broker.adminConnectionStringWith('own'));
    expect(await own.getQueue('q')).toMatchObject({ name: 'q' });
    await expect(own.getQueue('sessions')).rejects.toMatchObject(refused);
  });

  it('comes with any bearer token, as nobody issues them here', async () => {
    const credential = { getToken: async () => ({ token: 'anything', expiresOnTimestamp: Date.now() + 3_600_000 }) };
    const host = `127.0.0.1:${bench.broker.adminPort}`;
    expect(await overHttp(new ServiceBusAdministrationClient(host, credential)).getQueue('q')).toMatchObject({
      name: 'q',
    });
  });
});
