/** The local broker with the Service Bus adapter on it, for tests. */
import { ServiceBusClient } from '@azure/service-bus';
import { parseConfig, type RunningBroker, startBroker } from '../../local/broker/index.ts';
import type { Broker, DeadLetterQueue, EncodedMessage } from '../../shared/brokers/broker.ts';
import { createServiceBus } from '../../shared/brokers/serviceBus/index.ts';
import { parseCatalog, type Source } from '../../shared/catalog.ts';
import { type SequenceNumber, sequenceNumber } from '../../shared/letter.ts';

/** The lowest number there is. */
export const START: SequenceNumber = sequenceNumber(0n);

/** A broker with a queue `orders`, a queue `parking`, and a topic `events` with the subscription `billing`. */
export interface Bench {
  readonly broker: RunningBroker;
  readonly office: Broker;
  readonly settings: Readonly<Record<string, string>>;
  /** Lines that the adapter logged. */
  readonly lines: string[];
  readonly orders: Source;
  readonly billing: Source;
  /** Sends encoded messages exactly as they are and has a consumer dead-letter them; gives their numbers. */
  deadLetter(messages: readonly EncodedMessage[], source?: Source): Promise<SequenceNumber[]>;
  close(): Promise<void>;
}

/** Starts a bench; `queues`: further ones, with their properties. */
export async function startBench(queues: Readonly<Record<string, object>> = {}): Promise<Bench> {
  const properties = { LockDuration: 'PT1M', MaxDeliveryCount: 3 };
  const broker = await startBroker({
    config: parseConfig({
      UserConfig: {
        Namespaces: [
          {
            Name: 'sbemulatorns',
            Queues: [
              { Name: 'orders', Properties: properties },
              { Name: 'parking', Properties: properties },
              ...Object.entries(queues).map(([Name, own]) => ({ Name, Properties: { ...properties, ...own } })),
            ],
            Topics: [{ Name: 'events', Subscriptions: [{ Name: 'billing', Properties: properties }] }],
          },
        ],
        Logging: { Type: 'Console' },
      },
    }),
  });
  const settings = { ServiceBus: broker.connectionString };
  const shared = { mode: 'defer', owner: { team: 'orders', contact: 'orders@example.com' } };
  const catalog = parseCatalog(
    {
      version: 1,
      office: 'test',
      // So much that no test waits for its turn.
      namespaces: { main: { connection: 'ServiceBus', operationsPerSecond: 100_000 } },
      sources: [
        { name: 'orders', queue: 'orders', ...shared },
        { name: 'billing', topic: 'events', subscription: 'billing', ...shared },
      ],
    },
    settings,
  );
  const [orders, billing] = catalog.sources as [Source, Source];
  const lines: string[] = [];
  const office = createServiceBus({
    settings,
    clock: () => broker.clock.now(),
    log: (line) => lines.push(line),
    operationTimeoutMs: 5_000,
  });
  async function deadLetter(messages: readonly EncodedMessage[], source = orders): Promise<SequenceNumber[]> {
    const before = new Set(broker.messages(`${source.path}/$DeadLetterQueue`).map((held) => held.sequenceNumber));
    const target = await office.openTarget(source, source.of.kind === 'queue' ? source.of.queue : source.of.topic);
    for (const message of messages) await target.send([message], 5_000);
    await target.close();
    // A client for each call: one whose connection a test has cut off would wait for ever when it is closed.
    const client = new ServiceBusClient(broker.connectionString, { retryOptions: { maxRetries: 0 } });
    const options = { maxAutoLockRenewalDurationInMs: 0, skipParsingBodyAsJson: true };
    const receiver =
      source.of.kind === 'queue'
        ? client.createReceiver(source.of.queue, options)
        : client.createReceiver(source.of.topic, source.of.subscription, options);
    for (let left = messages.length; left > 0; ) {
      for (const received of await receiver.receiveMessages(left, { maxWaitTimeInMs: 5_000 })) {
        const why = { deadLetterReason: 'Unprocessable', deadLetterErrorDescription: 'no such customer' };
        await receiver.deadLetterMessage(received, why);
        left -= 1;
      }
    }
    await client.close();
    return broker
      .messages(`${source.path}/$DeadLetterQueue`)
      .filter((held) => !before.has(held.sequenceNumber))
      .map((held) => sequenceNumber(held.sequenceNumber));
  }

  return {
    broker,
    office,
    settings,
    lines,
    orders,
    billing,
    deadLetter,
    async close() {
      await office.close();
      await broker.close();
    },
  };
}

/** Locks and holds everything active in the queue; gives the numbers. */
export async function holdAll(queue: DeadLetterQueue, max: number): Promise<SequenceNumber[]> {
  const locked = await queue.receive(max, 5_000);
  await queue.hold(locked.map(({ lock }) => lock));
  return locked.map(({ letter }) => letter.sequenceNumber);
}
