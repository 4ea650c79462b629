/** What the broker's tests share: a configured broker, clients of it, and encoded messages. */
import { type ProcessErrorArgs, ServiceBusClient, type ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { vi } from 'vitest';
import { type BrokerOptions, parseConfig, type RunningBroker, startBroker } from '../../local/broker/index.ts';
import {
  type AmqpValue,
  encode,
  encodeMap,
  encodeSection,
  mapEntries,
  readValue,
  SECTION,
  sectionsOf,
} from '../../shared/brokers/serviceBus/amqp.ts';

// Machines differ: a timeout here is for what hangs, not for what is slow.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });
const PATIENCE = 20_000;

export type Properties = Record<string, unknown>;

/** An emulator configuration with these queues, and topics with these subscriptions. */
export function configOf(queues: Record<string, Properties>, topics: Record<string, string[]> = {}) {
  return parseConfig({
    UserConfig: {
      Namespaces: [
        {
          Name: 'test',
          Queues: Object.entries(queues).map(([Name, Properties]) => ({ Name, Properties })),
          Topics: Object.entries(topics).map(([Name, subscriptions]) => ({
            Name,
            Subscriptions: subscriptions.map((subscription) => ({ Name: subscription })),
          })),
        },
      ],
    },
  });
}

/** A broker and its SDK clients, closed together. */
export class Bench {
  readonly broker: RunningBroker;
  readonly #clients: ServiceBusClient[] = [];

  private constructor(broker: RunningBroker) {
    this.broker = broker;
  }

  static async start(
    queues: Record<string, Properties>,
    topics: Record<string, string[]> = {},
    options: Partial<BrokerOptions> = {},
  ): Promise<Bench> {
    return new Bench(await startBroker({ config: configOf(queues, topics), ...options }));
  }

  /** Clients of a broker that was started in another way; closed with them. */
  static around(broker: RunningBroker): Bench {
    return new Bench(broker);
  }

  /** A new connection of the unmodified SDK, without retries. */
  client(timeoutInMs = 5000, connectionString = this.broker.connectionString): ServiceBusClient {
    const client = new ServiceBusClient(connectionString, { retryOptions: { maxRetries: 0, timeoutInMs } });
    this.#clients.push(client);
    return client;
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    await this.broker.close();
  }
}

export const manual = { maxAutoLockRenewalDurationInMs: 0, skipParsingBodyAsJson: true } as const;

/** Receives exactly `count` messages. */
export async function take(receiver: ServiceBusReceiver, count: number) {
  const messages = [];
  while (messages.length < count) {
    const more = await receiver.receiveMessages(count - messages.length, { maxWaitTimeInMs: 3000 });
    if (more.length === 0) throw new Error(`only ${messages.length} of ${count} messages came`);
    messages.push(...more);
  }
  return messages;
}

/** Peeks from the start. */
export function peekAll(receiver: ServiceBusReceiver, count = 250) {
  return receiver.peekMessages(count, { fromSequenceNumber: Long.ZERO });
}

/** A message as a settlement over `$management` from a receiver that never got it needs it. */
export function byToken(lockToken: string | undefined) {
  return { lockToken, delivery: {} } as unknown as Parameters<ServiceBusReceiver['completeMessage']>[0];
}

/** Resolves once `condition` holds; looks after every turn of the event loop. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + PATIENCE; Date.now() < end; ) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`waited in vain for: ${what}`);
}

export function rethrow(args: ProcessErrorArgs): Promise<void> {
  throw args.error;
}

/** An encoded map section; keys of annotations are symbols, of everything else strings. */
export function mapSection(code: number, entries: Record<string, Buffer>): Buffer {
  const key =
    code === SECTION.messageAnnotations || code === SECTION.deliveryAnnotations ? encode.symbol : encode.string;
  return encodeSection(
    code,
    encodeMap(Object.entries(entries).map(([name, value]) => Buffer.concat([key(name), value]))),
  );
}

export function dataSection(body: string | Buffer): Buffer {
  return encodeSection(SECTION.data, encode.binary(Buffer.from(body)));
}

/** The sections of a kind, as their bytes. */
export function sectionBytes(message: Buffer, code: number): Buffer[] {
  return sectionsOf(message)
    .filter((section) => section.code === code)
    .map((section) => message.subarray(section.start, section.end));
}

/** The values of a map section by key, as their bytes. */
export function rawEntries(message: Buffer, code: number): Record<string, Buffer> {
  const section = sectionsOf(message).find((candidate) => candidate.code === code);
  if (!section) return {};
  return Object.fromEntries(mapEntries(message, section.body).map(({ key, value }) => [String(key.value), value]));
}

/** The values of a map section by key, decoded with their types. */
export function typedEntries(message: Buffer, code: number): Record<string, AmqpValue> {
  return Object.fromEntries(Object.entries(rawEntries(message, code)).map(([key, value]) => [key, readValue(value)]));
}

/** One encoded value of every AMQP type and, where there are several, of every encoding. */
export const EVERY_TYPE: Record<string, Buffer> = Object.fromEntries(
  Object.entries({
    null: '40',
    true: '41',
    false: '42',
    booleanLong: '5601',
    ubyte: '50ff',
    ushort: '60ffff',
    uint: '70ffffffff',
    uintSmall: '5207',
    uintZero: '43',
    ulong: '80ffffffffffffffff',
    ulongBeyondDouble: '800020000000000001',
    ulongSmall: '5307',
    ulongZero: '44',
    byte: '5180',
    short: '618000',
    int: '7100000005',
    intSmall: '5405',
    intNegative: '7180000000',
    long: '810000000000000005',
    longSmall: '55fb',
    longBeyondDouble: '810020000000000001',
    longNegative: '818000000000000000',
    float: '723fc00000',
    floatNaN: '727fc00001',
    double: '824000000000000000',
    decimal32: '7411223344',
    decimal64: '841122334455667788',
    decimal128: '94112233445566778899aabbccddeeff00',
    char: '730001f600',
    timestamp: '830000018bcfe56800',
    timestampOutOfRange: '837fffffffffffffff',
    uuid: '9800112233445566778899aabbccddeeff',
    binary: 'a003010203',
    binaryLong: 'b000000003010203',
    string: 'a103e282ac',
    stringLong: 'b100000003e282ac',
    symbol: 'a303616263',
    symbolLong: 'b300000003616263',
    emptyList: '45',
    list: 'c006025405a10161',
    map: 'c10c02a10161c10602a1017a5401',
    array: 'e00a02710000000100000002',
    arrayOfSymbols: 'e00602a301610162',
    described: '00a3037a7a7a5405',
  }).map(([name, hex]) => [name, Buffer.from(hex, 'hex')]),
);
