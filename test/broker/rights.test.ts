/** What each key may do, and that everything else is refused in words. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SasKey } from '../../local/broker/index.ts';
import { encode } from '../../shared/brokers/serviceBus/amqp.ts';
import { Bench, manual, peekAll } from './harness.ts';
import { RawClient, signToken } from './raw-client.ts';

const sasKeys: SasKey[] = [
  { name: 'sender', key: 'c2VuZA==', rights: ['Send'] },
  { name: 'listener', key: 'bGlzdGVu', rights: ['Listen'] },
  { name: 'manager', key: 'bWFuYWdl', rights: ['Manage'] },
  { name: 'own', key: 'b3du', rights: ['Send', 'Listen'], entity: 'Q' },
];
let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start({ q: {}, other: {} }, { t: ['s'] }, { sasKeys });
});
afterAll(() => bench.close());

const clientOf = (key: string) => bench.client(3000, bench.broker.connectionStringWith(key));
const refused = { code: 'UnauthorizedAccess' };

describe('a key', () => {
  it('that may send only sends', async () => {
    const client = clientOf('sender');
    await client.createSender('q').sendMessages({ body: 1 });
    await client.createSender('t').sendMessages({ body: 1 });
    const receiver = client.createReceiver('q', manual);
    await expect(receiver.receiveMessages(1, { maxWaitTimeInMs: 500 })).rejects.toMatchObject(refused);
    await expect(peekAll(client.createReceiver('q', manual))).rejects.toMatchObject(refused);
    await expect(client.createRuleManager('t', 's').deleteRule('$Default')).rejects.toMatchObject(refused);
  });

  it('that may listen receives, looks, settles and manages rules, and does not send', async () => {
    const client = clientOf('listener');
    await expect(client.createSender('q').sendMessages({ body: 1 })).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining("'Send' is required for 'q'"),
    });
    expect(await peekAll(client.createReceiver('q', manual))).toHaveLength(1);
    const receiver = client.createReceiver('q', manual);
    const [message] = await receiver.receiveMessages(1);
    if (message) await receiver.completeMessage(message);
    expect(bench.broker.messages('q')).toEqual([]);
    await client.createRuleManager('t', 's').createRule('more', { sqlExpression: '1=0' });
  });

  it('that may manage does both', async () => {
    const client = clientOf('manager');
    await client.createSender('q').sendMessages({ body: 1 });
    expect(await client.createReceiver('q', { receiveMode: 'receiveAndDelete' }).receiveMessages(1)).toHaveLength(1);
  });

  it('of an entity is good for that entity alone', async () => {
    const client = clientOf('own');
    await client.createSender('q').sendMessages({ body: 1 });
    await expect(client.createSender('other').sendMessages({ body: 1 })).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining("The key 'own' is valid for 'Q' only."),
    });
    bench.broker.recreate('q');
  });

  it('is needed for each side of scheduling and peeking at the management node', async () => {
    const raw = await RawClient.connect(bench.broker, false);
    const resource = `sb://127.0.0.1:${bench.broker.port}/`;
    const put = (name: string) => raw.putToken('', signToken(bench.broker, resource, 60, keyOf(name), name));
    const peek = () =>
      raw.manage('q', 'peek-message', { 'from-sequence-number': encode.long(0n), 'message-count': encode.int(1) });
    await put('sender');
    expect(await peek()).toMatchObject({ status: 401, condition: 'amqp:unauthorized-access' });
    await expect(raw.receiver('q', 1)).rejects.toMatchObject({ condition: 'amqp:unauthorized-access' });
    await put('listener');
    expect((await peek()).status).toBe(204);
    expect(await raw.manage('q', 'schedule-message', {})).toMatchObject({ status: 401 });
    await expect(raw.sender('q')).rejects.toMatchObject({ condition: 'amqp:unauthorized-access' });
    raw.close();
  });
});

function keyOf(name: string): string {
  return sasKeys.find((key) => key.name === name)?.key as string;
}
