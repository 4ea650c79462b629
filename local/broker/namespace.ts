/** The entities of a namespace and how paths lead to them. Paths are compared without regard to case. */
import type { EmulatorConfig, EntityConfig, SubscriptionConfig, TopicConfig } from './config.ts';
import { Entity, type EntityContext } from './entity.ts';
import { BrokerError } from './errors.ts';
import type { Arrival } from './message.ts';
import { DEFAULT_RULE, RuleSet } from './rules/rule-set.ts';
import { Topic } from './topic.ts';

/** Where messages can be sent: a queue, or a topic that copies them to its subscriptions. */
export interface Destination {
  readonly path: string;
  /** Stores all the messages. */
  store(arrivals: readonly Arrival[]): void;
}

/** What stands at a path. */
export type Node =
  | { readonly kind: 'queue'; readonly entity: Entity; readonly destination: Destination }
  | { readonly kind: 'topic'; readonly destination: Topic; readonly subscriptions: readonly Entity[] }
  | { readonly kind: 'subscription'; readonly entity: Entity; readonly rules: RuleSet; readonly topic: Topic }
  | { readonly kind: 'dead-letter-queue'; readonly entity: Entity };

const DEAD_LETTER_QUEUE = '$DeadLetterQueue';

export class Namespace {
  /** In the order in which they were created. */
  readonly #nodes = new Map<string, Node>();
  readonly #context: EntityContext;
  readonly #removalListeners = new Set<(path: string) => void>();

  constructor(config: EmulatorConfig, context: EntityContext) {
    this.#context = context;
    for (const queue of config.queues) this.createQueue(queue);
    for (const topic of config.topics) {
      this.createTopic(topic);
      for (const subscription of topic.subscriptions) this.createSubscription(topic.name, subscription);
    }
  }

  /** Throws when the name is taken. */
  createQueue({ name, settings }: EntityConfig): void {
    this.#refuseTaken(name);
    const entity = this.#open(name, settings);
    const destination = {
      path: name,
      store: (arrivals: readonly Arrival[]) => arrivals.forEach((arrival) => void entity.enqueue(arrival)),
    };
    this.#nodes.set(key(name), { kind: 'queue', entity, destination });
  }

  /** Creates a topic without subscriptions. Throws when the name is taken. */
  createTopic({ name, defaultTimeToLive }: Omit<TopicConfig, 'subscriptions'>): void {
    this.#refuseTaken(name);
    const topic = new Topic(name, defaultTimeToLive);
    this.#nodes.set(key(name), {
      kind: 'topic',
      destination: topic,
      get subscriptions() {
        return topic.subscriptions.map(({ entity }) => entity);
      },
    });
  }

  /** Throws when there is no such topic or the name is taken. */
  createSubscription(topicName: string, { name, settings, rules }: SubscriptionConfig): void {
    const topic = this.#topic(topicName);
    const path = `${topic.path}/Subscriptions/${name}`;
    this.#refuseTaken(path);
    const now = this.#context.clock.now();
    const ruleSet = new RuleSet((rules ?? [DEFAULT_RULE_CONFIG]).map((rule) => ({ ...rule, createdAt: now })));
    const entity = this.#open(path, topic.limit(settings));
    topic.add({ name, entity, rules: ruleSet });
    this.#nodes.set(key(path), { kind: 'subscription', entity, rules: ruleSet, topic });
  }

  /** Removes a queue, topic or subscription with everything below it. Throws when there is none. */
  remove(path: string): void {
    const node = this.find(path);
    if (node.kind === 'dead-letter-queue') {
      throw new BrokerError('amqp:not-allowed', `'${path}' is part of its entity: remove that one.`);
    }
    if (node.kind === 'subscription') node.topic.remove(node.entity);
    const own = key(path);
    for (const [at, { kind }] of this.#nodes) {
      // Names may hold slashes: what lies below a queue's path need not belong to it.
      const belongs = node.kind === 'topic' ? isBelow(at, own) && kind !== 'queue' && kind !== 'topic' : false;
      if (at === own || at === key(`${path}/${DEAD_LETTER_QUEUE}`) || belongs) this.#nodes.delete(at);
    }
    for (const listener of [...this.#removalListeners]) listener(own);
  }

  /** Calls `listener` with the path, in lower case, of what was removed; returns how to stop that. */
  onRemoved(listener: (path: string) => void): () => void {
    this.#removalListeners.add(listener);
    return () => this.#removalListeners.delete(listener);
  }

  /** Every queue, topic and subscription, in the order in which they were created. */
  nodes(): Exclude<Node, { kind: 'dead-letter-queue' }>[] {
    return [...this.#nodes.values()].filter((node) => node.kind !== 'dead-letter-queue');
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
    if (node.kind === 'topic') node.destination.restart();
    for (const entity of node.kind === 'topic' ? node.subscriptions : [node.entity]) {
      entity.clear();
      entity.deadLetterQueue?.clear();
    }
  }

  /** Lets happen in every entity what has fallen due. */
  sweep(): void {
    for (const node of this.#nodes.values()) if (node.kind !== 'topic') node.entity.sweep();
  }

  #topic(name: string): Topic {
    const node = this.find(name);
    if (node.kind === 'topic') return node.destination;
    throw new BrokerError('amqp:not-allowed', `'${name}' is not a topic.`);
  }

  #refuseTaken(path: string): void {
    if (!this.#nodes.has(key(path))) return;
    throw new BrokerError('com.microsoft:entity-already-exists', `The messaging entity '${path}' already exists.`);
  }

  #open(path: string, settings: Entity['settings']): Entity {
    const deadLetters = new Entity(`${path}/${DEAD_LETTER_QUEUE}`, settings, this.#context);
    const entity = new Entity(path, settings, this.#context, deadLetters);
    this.#nodes.set(key(deadLetters.path), { kind: 'dead-letter-queue', entity: deadLetters });
    return entity;
  }
}

const DEFAULT_RULE_CONFIG = { name: DEFAULT_RULE, filter: { kind: 'true' } } as const;

function isBelow(path: string, parent: string): boolean {
  return path.startsWith(`${parent}/`);
}

function key(path: string): string {
  return path.replace(/^\/+/, '').toLowerCase();
}
