/** The entities of a namespace and how paths lead to them. Paths are compared without regard to case. */
import type { EmulatorConfig } from './config.ts';
import { Entity, type EntityContext } from './entity.ts';
import { BrokerError } from './errors.ts';
import type { Arrival } from './message.ts';

/** Where messages can be sent: a queue, or a topic that copies them to its subscriptions. */
export interface Destination {
  readonly path: string;
  /** Stores all the messages. */
  store(arrivals: readonly Arrival[]): void;
}

/** What stands at a path. */
export type Node =
  | { readonly kind: 'queue'; readonly entity: Entity; readonly destination: Destination }
  | { readonly kind: 'topic'; readonly destination: Destination; readonly subscriptions: readonly Entity[] }
  | { readonly kind: 'subscription' | 'dead-letter-queue'; readonly entity: Entity };

const DEAD_LETTER_QUEUE = '$DeadLetterQueue';

export class Namespace {
  readonly #nodes = new Map<string, Node>();
  readonly #topics = new Map<string, Topic>();
  readonly #entities: Entity[] = [];
  readonly #context: EntityContext;

  constructor(config: EmulatorConfig, context: EntityContext) {
    this.#context = context;
    for (const queue of config.queues) {
      const entity = this.#open(queue.name, queue.settings);
      const destination = {
        path: queue.name,
        store: (arrivals: readonly Arrival[]) => arrivals.forEach((arrival) => void entity.enqueue(arrival)),
      };
      this.#nodes.set(key(queue.name), { kind: 'queue', entity, destination });
    }
    for (const { name, defaultTimeToLive, subscriptions } of config.topics) {
      const entities = subscriptions.map((subscription) => {
        const path = `${name}/Subscriptions/${subscription.name}`;
        // A topic's default is the upper limit for its subscriptions (Service Bus documentation, message expiration).
        const limit = Math.min(subscription.settings.defaultTimeToLive, defaultTimeToLive);
        const entity = this.#open(path, { ...subscription.settings, defaultTimeToLive: limit });
        this.#nodes.set(key(path), { kind: 'subscription', entity });
        return entity;
      });
      const topic = new Topic(name, entities);
      this.#topics.set(key(name), topic);
      this.#nodes.set(key(name), { kind: 'topic', destination: topic, subscriptions: entities });
    }
  }

  /** What stands at a path. Throws amqp:not-found with a text that names it. */
  find(path: string): Node {
    const node = this.#nodes.get(key(path));
    if (node) return node;
    if (/\/\$transfer(\/|$)/i.test(path)) {
      throw new BrokerError('amqp:not-implemented', `'${path}': transfer queues are not supported by this broker.`);
    }
    throw new BrokerError('amqp:not-found', `The messaging entity '${path}' could not be found.`);
  }

  /** The queue, subscription or dead-letter queue at a path. Throws when there is none. */
  entity(path: string): Entity {
    const node = this.find(path);
    if (node.kind !== 'topic') return node.entity;
    throw new BrokerError('amqp:not-allowed', `'${path}' is a topic: its messages are in its subscriptions.`);
  }

  /** The queue or topic at a path. Throws when nothing can be sent there. */
  destination(path: string): Destination {
    const node = this.find(path);
    if (node.kind === 'queue' || node.kind === 'topic') return node.destination;
    throw new BrokerError(
      'amqp:not-allowed',
      `Messages cannot be sent to '${path}': it is a ${node.kind.replace('letter-', 'letter ')}.`,
    );
  }

  /** Empties a queue, subscription or topic with its dead-letter queues; numbering starts again. */
  recreate(path: string): void {
    const node = this.find(path);
    if (node.kind === 'dead-letter-queue') throw new Error(`'${path}' is part of its entity: recreate that one.`);
    if (node.kind === 'topic') this.#topics.get(key(path))?.restart();
    for (const entity of node.kind === 'topic' ? node.subscriptions : [node.entity]) {
      entity.clear();
      entity.deadLetterQueue?.clear();
    }
  }

  /** Lets happen in every entity what has fallen due. */
  sweep(): void {
    for (const entity of this.#entities) entity.sweep();
  }

  #open(path: string, settings: Entity['settings']): Entity {
    const deadLetters = new Entity(`${path}/${DEAD_LETTER_QUEUE}`, settings, this.#context);
    const entity = new Entity(path, settings, this.#context, deadLetters);
    this.#nodes.set(key(deadLetters.path), { kind: 'dead-letter-queue', entity: deadLetters });
    this.#entities.push(entity, deadLetters);
    return entity;
  }
}

/** Every subscription gets a copy. Filters belong here. */
class Topic implements Destination {
  readonly path: string;
  readonly #subscriptions: readonly Entity[];
  #lastNumber = 0n;

  constructor(path: string, subscriptions: readonly Entity[]) {
    this.path = path;
    this.#subscriptions = subscriptions;
  }

  store(arrivals: readonly Arrival[]): void {
    for (const arrival of arrivals) {
      const number = ++this.#lastNumber;
      for (const subscription of this.#subscriptions) subscription.enqueue(arrival, number);
    }
  }

  restart(): void {
    this.#lastNumber = 0n;
  }
}

function key(path: string): string {
  return path.replace(/^\/+/, '').toLowerCase();
}
