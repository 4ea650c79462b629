/** Creating, changing and removing entities and rules with the unmodified administration client. */
import type { ServiceBusAdministrationClient } from '@azure/service-bus';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Bench, manual, take } from '../harness.ts';
import { adminWith, all } from './clients.ts';

let bench: Bench;
let admin: ServiceBusAdministrationClient;

beforeAll(async () => {
  bench = await Bench.start({ q: {} }, { t: ['s'] });
  admin = adminWith(bench.broker.adminConnectionString);
});
afterAll(() => bench.close());

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
    await admin.createRule('new', 's', 'acts', { sqlExpression: '1=0' }, { sqlExpression: "SET a = 'b'" });
    expect((await admin.getRule('new', 's', 'acts')).action).toMatchObject({ sqlExpression: "SET a = 'b'" });
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
      () => admin.createRule('new', 's', 'bad', { sqlExpression: '1=1' }, { sqlExpression: 'SET a' }),
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

  it('removes a topic, and nothing of a queue whose name begins with the same word', async () => {
    await admin.createTopic('new');
    await admin.createSubscription('new', 's');
    await admin.createQueue('new/orders');
    await admin.deleteTopic('new');
    await bench.client().createSender('new/orders').sendMessages({ body: 1 });
    expect(bench.broker.messages('new/orders/$DeadLetterQueue')).toEqual([]);
    expect(() => bench.broker.messages('new/Subscriptions/s/$DeadLetterQueue')).toThrow(/could not be found/);
  });

  it('tells a client that waits for a session of it', async () => {
    await admin.createQueue('new', { requiresSession: true });
    const client = bench.client(20_000);
    const waiting = client.acceptNextSession('new').then(
      () => 'accepted',
      (error: { code: string }) => error.code,
    );
    // The wait has begun when the broker has seen the link; a request behind it on the same connection says so.
    await client.createReceiver('q').peekMessages(1);
    await admin.deleteQueue('new');
    expect(await waiting).toBe('MessagingEntityNotFound');
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
