/** What a belief is tested with: the official client, the office's own links, and time. */
import { ServiceBusClient, type ServiceBusReceiver, type ServiceBusReceiverOptions } from '@azure/service-bus';
import type {
  Broker,
  DeadLetterQueue,
  EncodedMessage,
  ReplayTarget,
  SendOutcome,
} from '../../shared/brokers/broker.ts';
import { openBudget } from '../../shared/brokers/serviceBus/budget.ts';
import { type AmqpConnection, openConnection, type Wire } from '../../shared/brokers/serviceBus/connection.ts';
import { readEndpoint } from '../../shared/brokers/serviceBus/credentials.ts';
import { createServiceBus } from '../../shared/brokers/serviceBus/index.ts';
import { type Management, openManagement } from '../../shared/brokers/serviceBus/management.ts';
import { openSenderLink, type SenderLink } from '../../shared/brokers/serviceBus/senderLink.ts';
import { parseCatalog, type Source } from '../../shared/catalog.ts';
import { NotCheckable, Surprise, see } from './belief.ts';
import type { ShapeName } from './shapes.ts';
import type { Place } from './target.ts';

/** Path of the dead-letter queue of the entity at `path`. */
export function dlqOf(path: string): string {
  return `${path}/$DeadLetterQueue`;
}

/** One belief's surroundings. Everything it opens is closed with it. */
export class Context {
  readonly place: Place;
  /** Part of every message id, so that runs on one namespace do not meet in a duplicate history. */
  readonly run: string;
  readonly #open: (() => Promise<unknown>)[] = [];
  #office: Broker | undefined;
  #client: ServiceBusClient | undefined;
  #connection: Promise<AmqpConnection> | undefined;

  constructor(place: Place, run: string) {
    this.place = place;
    this.run = run;
  }

  /** Path of a queue or topic, or of a topic's subscription. */
  path(shape: ShapeName, subscription?: string): string {
    const name = this.place.nameOf(shape);
    return subscription === undefined ? name : `${name}/Subscriptions/${subscription}`;
  }

  /** Message id that nobody else has. */
  id(name: string): string {
    return `${this.run}-${name}`;
  }

  /** The official client. It never tries again by itself. */
  get client(): ServiceBusClient {
    this.#client ??= this.anotherClient();
    return this.#client;
  }

  /** An official client on a connection of its own; by default with the key that may do everything. */
  anotherClient(connectionString: string = this.place.connectionString): ServiceBusClient {
    const retryOptions = { maxRetries: 0, timeoutInMs: Math.max(5_000, this.place.slownessMs) };
    const client = new ServiceBusClient(connectionString, { retryOptions });
    this.#open.push(() => client.close());
    return client;
  }

  /** The official receiver for the entity at `path`, which may be a dead-letter queue; it renews no locks. */
  receiver(path: string, client: ServiceBusClient = this.client): ServiceBusReceiver {
    const entity = path.replace(/\/\$DeadLetterQueue$/i, '');
    const options: ServiceBusReceiverOptions = {
      maxAutoLockRenewalDurationInMs: 0,
      skipParsingBodyAsJson: true,
      skipConvertingDate: true,
      ...(entity === path ? {} : { subQueueType: 'deadLetter' }),
    };
    const [topic, subscription] = entity.split(/\/Subscriptions\//i) as [string, string?];
    return subscription === undefined
      ? client.createReceiver(topic, options)
      : client.createReceiver(topic, subscription, options);
  }

  /** The office's adapter. */
  get office(): Broker {
    this.#office ??= createServiceBus({
      settings: this.#settings(),
      clock: Date.now,
      log: () => {},
      operationTimeoutMs: Math.max(5_000, this.place.slownessMs),
    });
    return this.#office;
  }

  /** The dead-letter queue of the entity at `path`, as the office opens it. */
  deadLetters(path: string): Promise<DeadLetterQueue> {
    return this.office.open(this.source(path));
  }

  /** Opens a queue or topic as the office does for sending letters back. */
  target(entity: string): Promise<ReplayTarget> {
    return this.office.openTarget(this.source(entity), entity);
  }

  /** Sends encoded messages, each for itself and exactly as it is; all must be accepted. */
  async send(entity: string, ...messages: EncodedMessage[]): Promise<void> {
    for (const message of messages) see('a send', await this.trySend(entity, [message]), { kind: 'accepted' });
  }

  /** Sends encoded messages in one transfer; gives what the broker said. */
  async trySend(entity: string, messages: readonly EncodedMessage[]): Promise<SendOutcome> {
    const target = await this.target(entity);
    try {
      return await target.send(messages, Math.max(5_000, this.place.slownessMs));
    } finally {
      await target.close();
    }
  }

  /** The management node of the entity at `path`, which may be a dead-letter queue, without the office's patience. */
  async node(path: string, connection: Promise<AmqpConnection> = this.connection()): Promise<Management> {
    return openManagement(await connection, path, this.#wire());
  }

  /** A sender link without the office's own check of sizes. */
  async senderLink(entity: string): Promise<SenderLink> {
    return openSenderLink(await this.connection(), entity);
  }

  /** The office's own connection, one for the belief. */
  connection(): Promise<AmqpConnection> {
    this.#connection ??= this.anotherConnection();
    return this.#connection;
  }

  /** A connection of its own, as the office opens it. */
  async anotherConnection(): Promise<AmqpConnection> {
    const connection = await openConnection(readEndpoint('ServiceBus', this.#settings()), this.#wire());
    this.#open.push(() => connection.close('the belief was tested'));
    return connection;
  }

  /** Lets time pass, milliseconds. */
  pass(ms: number): Promise<void> {
    return this.place.pass(ms);
  }

  /** Asks until there is an answer. Throws `Surprise` when the broker's time for `what` is over. */
  async until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
    const end = performance.now() + this.place.slownessMs;
    for (let pause = 5; ; pause = Math.min(1_000, pause * 2)) {
      const answer = await ask();
      if (answer !== undefined) return answer;
      if (performance.now() > end) throw new Surprise(`${what}: not seen within ${this.place.slownessMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** The administration client; a belief that uses it says so in its needs. */
  get administration() {
    if (this.place.administration === undefined) throw new NotCheckable('the administration client may not be used');
    return this.place.administration;
  }

  /** A source of the office for the entity at `path`. */
  source(path: string): Source {
    const [topic, subscription] = path.split(/\/Subscriptions\//i) as [string, string?];
    const of = subscription === undefined ? { queue: topic } : { topic, subscription };
    const owner = { team: 'conform', contact: 'conform' };
    const sources = [{ name: 'source', mode: 'defer', owner, entity: { partitioned: true }, ...of }];
    const namespaces = { main: { connection: 'ServiceBus' } };
    const catalog = parseCatalog({ version: 1, office: 'conform', namespaces, sources }, this.#settings());
    return catalog.sources[0] as Source;
  }

  /** Closes everything, whatever state it is in. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#open.map((close) => close()), this.#office?.close()]);
  }

  #settings(): Record<string, string> {
    return { ServiceBus: this.place.connectionString };
  }

  #wire(): Wire {
    const log = () => {};
    const budget = openBudget({ ceiling: 100_000, log });
    return { operationTimeoutMs: Math.max(5_000, this.place.slownessMs), idleMs: 600_000, budget, log };
  }
}
