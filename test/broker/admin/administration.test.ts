/** The unmodified administration client on this broker. */
import { ServiceBusAdministrationClient } from '@azure/service-bus';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { overHttp, type SasKey } from '../../../local/broker/index.ts';
import { Bench, manual, take } from '../harness.ts';

const sasKeys: SasKey[] = [
  { name: 'listener', key: 'bGlzdGVu', rights: ['Listen', 'Send'] },
  { name: 'own', key: 'b3du', rights: ['Manage'], entity: 'q' },
];
let bench: Bench;
let admin: ServiceBusAdministrationClient;

const adminWith = (connectionString: string) =>
  overHttp(new ServiceBusAdministrationClient(connectionString, { retryOptions: { maxRetries: 0 } }));

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

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of list) found.push(item);
  return found;
}

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

describe('creating, changing and removing', () => {
  beforeEach(async () => {
    for (const { name } of await all(admin.listQueues())) if (name.startsWith('new')) await admin.deleteQueue(name);
    for (const { name } of await all(admin.listTopics())) if (name.startsWith('new')) await admin.deleteTopic(name);
  });

  it('makes a queue that works, with what was asked for', async () => {
    const created = await admin.createQueue('new', {
      lockDuration: 'PT10S',
      maxDeliveryCount: 1,
      deadLetteringOnMessageExpiration: true,
      userMetadata: 'made <by> "a" & \'test\'',
      forwardDeadLetteredMessagesTo: 'q',
      autoDeleteOnIdle: 'P7D',
    });
    expect(created).toMatchObject({
      name: 'new',
      lockDuration: 'PT10S',
      maxDeliveryCount: 1,
      userMetadata: 'made <by> "a" & \'test\'',
      autoDeleteOnIdle: 'P7D',
      defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S',
    });
    const client = bench.client();
    await client.createSender('new').sendMessages({ body: 'x' });
    const receiver = client.createReceiver('new', manual);
    const [message] = await take(receiver, 1);
    if (message) await receiver.abandonMessage(message);
    expect(bench.broker.messages('q')).toHaveLength(1);
    bench.broker.recreate('q');
  });

  it('changes what can be changed, from then on', async () => {
    const created = await admin.createQueue('new');
    const changed = await admin.updateQueue({
      ...created,
      lockDuration: 'PT20S',
      status: 'SendDisabled',
      userMetadata: 'changed',
    });
    expect(changed).toMatchObject({ lockDuration: 'PT20S', status: 'SendDisabled', userMetadata: 'changed' });
    await expect(bench.client().createSender('new').sendMessages({ body: 1 })).rejects.toMatchObject({
      code: 'MessagingEntityDisabled',
    });
    await admin.updateQueue({ ...changed, status: 'Active' });
    await bench.client().createSender('new').sendMessages({ body: 1 });
    const receiver = bench.client().createReceiver('new', manual);
    const [message] = await take(receiver, 1);
    const left = (message?.lockedUntilUtc?.getTime() ?? 0) - bench.broker.clock.now();
    expect(left).toBeGreaterThan(10_000);
    expect(left).toBeLessThanOrEqual(20_000);
    await expect(admin.updateQueue({ ...changed, requiresSession: true })).rejects.toThrow(/cannot be changed/);
    await expect(admin.updateQueue({ ...created, name: 'nowhere' })).rejects.toMatchObject({ statusCode: 404 });
  });

  it('makes topics and subscriptions with rules, and removes them with what is below', async () => {
    await admin.createTopic('new/topic', { defaultMessageTimeToLive: 'PT5M' });
    await admin.createSubscription('new/topic', 'all');
    await admin.createSubscription('new/topic', 'blue', {
      requiresSession: false,
      defaultRuleOptions: { name: 'first', filter: { sqlExpression: "color = 'blue'" } },
    });
    expect(await all(admin.listRules('new/topic', 'blue'))).toMatchObject([
      { name: 'first', filter: { sqlExpression: "color = 'blue'" } },
    ]);
    await bench.client().createSender('new/topic').sendMessages({ body: 1 });
    expect(bench.broker.messages('new/topic/Subscriptions/all')).toHaveLength(1);
    expect(bench.broker.messages('new/topic/Subscriptions/blue')).toHaveLength(0);
    const subscription = await admin.getSubscription('new/topic', 'all');
    await admin.updateSubscription({ ...subscription, maxDeliveryCount: 7 });
    expect((await admin.getSubscription('new/topic', 'all')).maxDeliveryCount).toBe(7);
    const topic = await admin.getTopic('new/topic');
    expect(await admin.updateTopic({ ...topic, status: 'Disabled' })).toMatchObject({ status: 'Disabled' });
    await admin.deleteSubscription('new/topic', 'all');
    expect(await admin.subscriptionExists('new/topic', 'all')).toBe(false);
    await admin.deleteTopic('new/topic');
    expect(await admin.topicExists('new/topic')).toBe(false);
    expect(() => bench.broker.messages('new/topic/Subscriptions/blue')).toThrow(/could not be found/);
    await admin.createTopic('new/topic');
    expect(await all(admin.listSubscriptions('new/topic'))).toEqual([]);
  });

  it('makes, changes and removes rules', async () => {
    await admin.createTopic('new');
    await admin.createSubscription('new', 's');
    const time = new Date('2026-01-02T03:04:05.000Z');
    const properties = { text: 'a<b>&\'"', number: 5, half: 0.5, yes: true, time };
    await admin.createRule('new', 's', 'c', { correlationId: 'id', subject: 'x', applicationProperties: properties });
    expect((await admin.getRule('new', 's', 'c')).filter).toMatchObject({
      correlationId: 'id',
      subject: 'x',
      applicationProperties: properties,
    });
    const rule = await admin.createRule('new', 's', 'sql', { sqlExpression: "a < 'b' AND c > 1" });
    expect(rule.filter).toMatchObject({ sqlExpression: "a < 'b' AND c > 1" });
    await admin.updateRule('new', 's', { ...rule, filter: { sqlExpression: 'a = 2' } });
    expect((await admin.getRule('new', 's', 'sql')).filter).toMatchObject({ sqlExpression: 'a = 2' });
    await admin.deleteRule('new', 's', '$Default');
    const client = bench.client();
    await client
      .createSender('new')
      .sendMessages([
        { body: 1 },
        { body: 2, applicationProperties: { a: 2 } },
        { body: 3, correlationId: 'id', subject: 'x', applicationProperties: properties },
      ]);
    expect(bench.broker.messages('new/Subscriptions/s')).toHaveLength(2);
    for (const bad of [
      () => admin.createRule('new', 's', 'bad', { sqlExpression: 'a =' }),
      () => admin.createRule('new', 's', 'bad', { sqlExpression: 'a = @p', sqlParameters: { '@p': 1 } }),
      () => admin.createRule('new', 's', 'bad', { sqlExpression: '1=1' }, { sqlExpression: "SET a = 'b'" }),
    ]) {
      await expect(bad()).rejects.toMatchObject({ statusCode: 400 });
    }
    await expect(admin.createRule('new', 's', 'sql', { sqlExpression: '1=1' })).rejects.toMatchObject({
      code: 'MessageEntityAlreadyExistsError',
    });
  });

  it('refuses names that are taken, what cannot be, and says so', async () => {
    await expect(admin.createQueue('Q')).rejects.toMatchObject({ code: 'MessageEntityAlreadyExistsError' });
    await expect(admin.createTopic('q')).rejects.toMatchObject({ code: 'MessageEntityAlreadyExistsError' });
    await expect(admin.createSubscription('t', 'S')).rejects.toMatchObject({ code: 'MessageEntityAlreadyExistsError' });
    await expect(admin.createSubscription('nowhere', 's')).rejects.toMatchObject({ statusCode: 404 });
    await expect(admin.createQueue('new', { lockDuration: 'PT6M' })).rejects.toThrow(/LockDuration: at most PT5M/);
    await expect(admin.createQueue('new', { maxDeliveryCount: 0 })).rejects.toThrow(/MaxDeliveryCount/);
    await expect(admin.createQueue('new', { forwardTo: 'nowhere' })).rejects.toThrow(/'nowhere'/);
    expect(await admin.queueExists('new')).toBe(false);
  });

  it('ends the links of a queue that is removed', async () => {
    await admin.createQueue('new');
    const client = bench.client();
    const receiver = client.createReceiver('new', { receiveMode: 'receiveAndDelete' });
    const errors: unknown[] = [];
    const lost = new Promise<void>((resolve) => {
      receiver.subscribe({
        processMessage: async () => {},
        processError: async ({ error }) => {
          errors.push(error);
          resolve();
        },
      });
    });
    await client.createSender('new').sendMessages({ body: 1 });
    await admin.deleteQueue('new');
    await lost;
    expect(errors[0]).toMatchObject({ code: 'MessagingEntityNotFound' });
    await receiver.close();
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
