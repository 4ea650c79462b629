import { ServiceBusClient } from '@azure/service-bus';
import { expect, it } from 'vitest';
import { parseConfig, startBroker } from '../../local/broker/index.ts';
import { startOfficeProcess } from '../harness/host.ts';

const sasKey = { name: 'owner', key: 'the-key' };
const queue = (Name: string) => ({ Name, Properties: {} });
const config = () =>
  parseConfig({
    UserConfig: {
      Namespaces: [
        {
          Name: 'sbemulatorns',
          Queues: [queue('orders'), queue('bytes'), queue('slow')],
          Topics: [{ Name: 'events', Properties: {}, Subscriptions: [{ Name: 'audit', Properties: {} }] }],
        },
      ],
      Logging: { Type: 'Console' },
    },
  });

it('a broker may be away at the start and again later: the host serves, waits and receives', async () => {
  const first = await startBroker({ config: config(), sasKey });
  const { port, connectionString } = first;
  await first.close();

  const host = await startOfficeProcess({
    root: 'test/host/fixtures/serviceBus',
    entry: 'index.ts',
    settings: { Bus: connectionString, OrdersQueue: 'orders' },
  });
  const received = async (id: string) => (await host.call('GET', '/api/records')).text.includes(`"messageId":"${id}"`);
  await expect.poll(() => host.log()).toMatch(/warning \[orders\] receive: .*ECONNREFUSED/);

  for (const messageId of ['after the start', 'after the crash']) {
    const broker = await startBroker({ config: config(), port, sasKey });
    const client = new ServiceBusClient(connectionString);
    await client.createSender('orders').sendMessages({ messageId, body: 'x' });
    await expect.poll(() => received(messageId), { timeout: 15_000 }).toBe(true);
    await expect.poll(() => broker.messages('orders')).toEqual([]);
    await client.close();
    await broker.close();
  }
  expect((await host.call('GET', '/api/records')).status).toBe(200);
  expect(await host.stop()).toBe(0);
  expect(host.log()).not.toContain('left behind');
});
