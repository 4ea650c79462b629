/** The Resource Manager reads that the office does. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Bench, manual, take } from '../harness.ts';

const NAMESPACE = '/subscriptions/0000/resourceGroups/rg/providers/Microsoft.ServiceBus/namespaces/shop';
let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start(
    {
      q: { MaxDeliveryCount: 3, ForwardDeadLetteredMessagesTo: '' },
      'team/orders': { ForwardDeadLetteredMessagesTo: 'q' },
    },
    { t: ['s'] },
  );
});
afterAll(() => bench.close());

async function get(path: string, options: { version?: string; token?: string | null; method?: string } = {}) {
  const { version = '2024-01-01', token = 'Bearer any', method = 'GET' } = options;
  const query = version ? `?api-version=${version}` : '';
  const response = await fetch(`http://127.0.0.1:${bench.broker.adminPort}${path}${query}`, {
    method,
    ...(token === null ? {} : { headers: { authorization: token } }),
  });
  const body = (await response.json()) as { properties?: object; error?: object };
  return { status: response.status, body };
}

describe('roles on single entities', () => {
  it('are asked for before anything is looked for', async () => {
    const other = await Bench.start({ q: {}, r: {} }, { t: ['s'] }, { readable: ['queues/q', 'topics/t'] });
    const status = async (path: string) => {
      const url = `http://127.0.0.1:${other.broker.adminPort}${NAMESPACE}${path}?api-version=2024-01-01`;
      const answer = await fetch(url, { headers: { authorization: 'Bearer any' } });
      const { error } = (await answer.json()) as { error?: { code: string } };
      return error ? `${answer.status} ${error.code}` : answer.status;
    };
    try {
      expect(await status('/queues/Q')).toBe(200);
      expect(await status('/topics/t')).toBe(200);
      expect(await status('/topics/t/subscriptions/s')).toBe(200);
      expect(await status('/topics/t/subscriptions/nowhere')).toBe('404 ResourceNotFound');
      for (const path of ['/queues/r', '/queues/nowhere', '/queues/t', '/topics/q', '/queues/q2', '']) {
        expect(await status(path)).toBe('403 AuthorizationFailed');
      }
    } finally {
      await other.close();
    }
  });
});

describe('a resource', () => {
  it('is a queue, with its settings and true counts', async () => {
    const client = bench.client();
    await client.createSender('q').sendMessages([{ body: 1 }, { body: 2 }, { body: 3 }]);
    const receiver = client.createReceiver('q', manual);
    const [dead, deferred] = await take(receiver, 2);
    if (dead) await receiver.deadLetterMessage(dead);
    if (deferred) await receiver.deferMessage(deferred);
    const { status, body } = await get(`${NAMESPACE}/queues/Q`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: `${NAMESPACE}/queues/Q`,
      type: 'Microsoft.ServiceBus/Namespaces/Queues',
      properties: {
        lockDuration: 'PT1M',
        maxDeliveryCount: 3,
        requiresSession: false,
        requiresDuplicateDetection: false,
        duplicateDetectionHistoryTimeWindow: 'PT10M',
        deadLetteringOnMessageExpiration: false,
        defaultMessageTimeToLive: 'PT1H',
        maxMessageSizeInKilobytes: 256,
        enablePartitioning: false,
        status: 'Active',
        messageCount: 3,
        countDetails: {
          activeMessageCount: 2,
          deadLetterMessageCount: 1,
          scheduledMessageCount: 0,
          transferMessageCount: 0,
          transferDeadLetterMessageCount: 0,
        },
      },
    });
    expect(body.properties).not.toHaveProperty('forwardTo');
  });

  it('is a queue whose name holds a slash, written as a tilde, with its target by name', async () => {
    const { body } = await get(`${NAMESPACE}/queues/team~orders`);
    expect(body).toMatchObject({ name: 'team/orders', properties: { forwardDeadLetteredMessagesTo: 'q' } });
  });

  it('is a topic, a subscription, or the namespace', async () => {
    expect((await get(`${NAMESPACE}/topics/t`)).body).toMatchObject({
      type: 'Microsoft.ServiceBus/Namespaces/Topics',
      properties: { subscriptionCount: 1, status: 'Active', countDetails: { scheduledMessageCount: 0 } },
    });
    expect((await get(`${NAMESPACE.toLowerCase()}/topics/t/subscriptions/s`)).body).toMatchObject({
      name: 's',
      type: 'Microsoft.ServiceBus/Namespaces/Topics/Subscriptions',
      properties: { messageCount: 0, maxDeliveryCount: 10, countDetails: { deadLetterMessageCount: 0 } },
    });
    expect((await get(NAMESPACE)).body).toMatchObject({
      name: 'shop',
      sku: { name: 'Standard', tier: 'Standard' },
      properties: { provisioningState: 'Succeeded', status: 'Active' },
    });
  });

  it.each([
    ['queues/nowhere', {}, 404, 'ResourceNotFound'],
    ['queues/t', {}, 404, 'ResourceNotFound'],
    ['topics/q', {}, 404, 'ResourceNotFound'],
    ['queues/q/subscriptions/s', {}, 404, 'ResourceNotFound'],
    ['topics/t/subscriptions/nowhere', {}, 404, 'ResourceNotFound'],
    ['queues/%ZZ', {}, 404, 'ResourceNotFound'],
    ['gardens/q', {}, 404, 'InvalidResourceType'],
    ['queues/q', { version: '' }, 400, 'MissingApiVersionParameter'],
    ['queues/q', { method: 'DELETE' }, 405, 'MethodNotAllowed'],
    ['queues/q', { token: null }, 401, 'AuthenticationFailed'],
    ['queues/q', { token: 'Bearer ' }, 401, 'AuthenticationFailed'],
    ['queues/q', { token: 'SharedAccessSignature sr=x' }, 401, 'AuthenticationFailed'],
  ] as const)('that is not to be had is refused: %s %j', async (path, options, status, code) => {
    const answer = await get(`${NAMESPACE}/${path}`, options);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toMatchObject({ code, message: expect.any(String) });
  });
});
