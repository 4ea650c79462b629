import type { GetMessage } from 'amqplib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeField, fieldsOf } from '../../shared/brokers/rabbitmq/fieldTable.ts';
import {
  encodeHeaders,
  encodeShortText,
  headersOf,
  readProperties,
  writeProperties,
} from '../../shared/brokers/rabbitmq/properties.ts';
import { describeOnRabbitMq, type TestConnection, uniqueName } from '../harness/rabbitmq.ts';
import { randomHeaders } from '../harness/randomFields.ts';

const QUEUES = [
  ['classic', {}],
  ['quorum', { 'x-queue-type': 'quorum' }],
] as const;

/** Publishes a message with these properties and takes it out again. */
async function through({ channel, exact }: TestConnection, queue: string, properties: Buffer, body: Buffer) {
  exact.withProperties(properties, () => channel.publish('', queue, body, { mandatory: true }));
  await channel.waitForConfirms();
  const got = (await channel.get(queue, { noAck: true })) as GetMessage;
  return { got, properties: exact.propertiesOf(got) };
}

/** Properties without the header that quorum queues add. */
function withoutCount(bytes: Buffer): Buffer {
  const properties = new Map(readProperties(bytes));
  const entries = headersOf(properties).filter(({ name }) => name !== 'x-delivery-count');
  properties.set('headers', encodeHeaders(entries.map((entry) => entry.bytes)));
  return writeProperties(properties);
}

describeOnRabbitMq('exact properties', (_server, open) => {
  for (const [type, args] of QUEUES) {
    it(`come and go byte for byte on a ${type} queue, whatever types the headers have`, async () => {
      const connection = open();
      const queue = uniqueName(type);
      await connection.channel.assertQueue(queue, { durable: true, arguments: args });
      await fc.assert(
        fc.asyncProperty(randomHeaders, fc.uint8Array({ maxLength: 100 }), async (headers, bytes) => {
          const body = Buffer.from(bytes);
          const properties = writeProperties(
            new Map([
              ['headers', encodeHeaders([headers])],
              ['deliveryMode', Buffer.of(2)],
              ['correlationId', encodeShortText('c')],
              ['timestamp', Buffer.from('00000000ffffffff', 'hex')],
            ]),
          );
          const first = await through(connection, queue, properties, body);
          expect(withoutCount(first.properties)).toEqual(properties);
          const second = await through(connection, queue, first.properties, body);
          expect(withoutCount(second.properties)).toEqual(properties);
          expect(second.got.content).toEqual(body);
        }),
        { numRuns: 60 },
      );
    });
  }

  it('hold for headers of 100 KB and a body of many frames', async () => {
    const connection = open();
    const queue = uniqueName('large');
    await connection.channel.assertQueue(queue, { durable: true });
    const headers = encodeHeaders([encodeField('large', 'x'.repeat(100_000)), encodeField('n', 2n ** 62n + 1n)]);
    const properties = writeProperties(new Map([['headers', headers]]));
    const body = Buffer.alloc(1_000_000, 7);
    const { got, properties: back } = await through(connection, queue, properties, body);
    expect(back).toEqual(properties);
    expect(got.content.equals(body)).toBe(true);
    expect(fieldsOf(readProperties(back).get('headers')?.subarray(4) ?? Buffer.alloc(0))).toHaveLength(2);
  });

  it('leave a message that is published without them to the library', async () => {
    const { channel, exact } = open();
    const queue = uniqueName('plain');
    await channel.assertQueue(queue, { durable: true });
    channel.sendToQueue(queue, Buffer.from('a'), { messageId: 'm1' });
    await channel.waitForConfirms();
    const got = (await channel.get(queue, { noAck: true })) as GetMessage;
    expect(got.properties.messageId).toBe('m1');
    expect(readProperties(exact.propertiesOf(got)).get('messageId')).toEqual(encodeShortText('m1'));
  });
});
