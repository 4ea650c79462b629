/** The entities of a namespace and how paths lead to them. Paths are compared without regard to case. */
import type { EmulatorConfig, EntityConfig, SubscriptionConfig, TopicConfig } from './config.ts';
import { Entity, type EntityContext, type Origin } from './entity.ts';
import { BrokerError } from './errors.ts';
import { forwardDeadLettersTo, forwardTo } from './forwarding.ts';
import type { Arrival, Keys } from './message.ts';
import { DEFAULT_RULE, RuleSet } from './rules/rule-set.ts';
import { deadLetterSettings, type EntitySettings } from './settings.ts';
import type { Entry } from './shelf.ts';
import type { EntityStatus } from './status.ts';
import { Topic } from './topic.ts';

/** Where messages can be sent: a queue, or a topic that copies them to its subscriptions. */
export interface Destination {
  readonly path: string;
  /** Takes all the messages or none; `envelope` is what the envelope of a batch says. */
  store(arrivals: readonly Arrival[], envelope?: Keys, origin?: Origin): (Entry | undefined)[];
}

/** What a topic is configured with, without its subscriptions. */
export type TopicSettings = Omit<TopicConfig, 'subscriptions'>;

/** What is believed of the service and can be chosen. */
export interface Beliefs {
  /** Deferred dead letters of an entity with sessions are out of reach for every connection but their own. */
  readonly bindsDeferredSessionLetters: boolean;
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
  /** What each queue, topic and subscription was created with, or changed to. */
  readonly #configs = new Map<string, EntityConfig | TopicSettings>();
  readonly #context: EntityContext;
  readonly #beliefs: Beliefs;
  readonly #removalListeners = new Set<(path: string) => void>();

  constructor(config: EmulatorConfig, context: EntityContext, beliefs: Beliefs) {
    this.#context = context;
    this.#beliefs = beliefs;
    const opened = config.queues.map((queue) => [this.#addQueue(queue), queue] as const);
    for (const topic of config.topics) {
      this.createTopic(topic);
      for (const subscription of topic.subscriptions) {
        opened.push([this.#addSubscription(topic.name, subscription), subscription]);
      }
    }
    // Last, because a target may stand behind its source in the configuration.
    for (const [entity, own] of opened) this.#checkForwarding(entity.path, own);
    for (const [entity, own] of opened) this.#forward(entity, own);
  }

  /** Throws when the name is taken or a target of forwarding is missing. */
  createQueue(config: EntityConfig): void {
    this.#checkForwarding(config.name, config);
    this.#forward(this.#addQueue(config), config);
  }

  /** Creates a topic without subscriptions. Throws when the name is taken. */
  createTopic(config: TopicSettings): void {
    const { name, status, ...settings } = config;
    this.#refuseTaken(name);
    const topic = new Topic(name, settings, this.#context);
    if (status) topic.entity.setStatus(status);
    this.#nodes.set(key(name), {
      kind: 'topic',
      destination: topic,
      get subscriptions() {
        return topic.subscriptions.map(({ entity }) => entity);
      },
    });
    this.#configs.set(key(name), config);
  }

  /** Throws when there is no such topic, the name is taken or a target of forwarding is missing. */
  createSubscription(topicName: string, config: SubscriptionConfig): void {
    this.#checkForwarding(`${topicName}/Subscriptions/${config.name}`, config);
    this.#forward(this.#addSubscription(topicName, config), config);
  }

  #addQueue(config: EntityConfig): Entity {
    const { name, settings, status } = config;
    this.#refuseTaken(name);
    const entity = this.#open(name, settings, status);
    this.#nodes.set(key(name), { kind: 'queue', entity, destination: entity });
    this.#configs.set(key(name), config);
    return entity;
  }

  #addSubscription(topicName: string, config: SubscriptionConfig): Entity {
    const { name, settings, status, rules } = config;
    const topic = this.#topic(topicName);
    const path = `${topic.path}/Subscriptions/${name}`;
    this.#refuseTaken(path);
    const now = this.#context.clock.now();
    const ruleSet = new RuleSet((rules ?? [DEFAULT_RULE_CONFIG]).map((rule) => ({ ...rule, createdAt: now })));
    const entity = this.#open(path, topic.limit(settings), status);
    topic.add({ name, entity, rules: ruleSet });
    this.#nodes.set(key(path), { kind: 'subscription', entity, rules: ruleSet, topic });
    this.#configs.set(key(path), config);
    return entity;
  }

  /** What a queue or subscription was configured with. */
  entityConfig(path: string): EntityConfig {
    const config = this.#configs.get(key(path));
    if (config && 'settings' in config) return config;
    throw new BrokerError('amqp:not-found', `The messaging entity '${path}' could not be found.`);
  }

  /** What a topic was configured with. */
  topicConfig(path: string): TopicSettings {
    const config = this.#configs.get(key(path));
    if (config && !('settings' in config)) return config;
    throw new BrokerError('amqp:not-found', `The messaging entity '${path}' could not be found.`);
  }

  /** Changes a queue or subscription. Throws, and changes nothing, when it cannot become what is wanted. */
  changeEntity(path: string, config: EntityConfig): void {
    const node = this.find(path);
    if (node.kind !== 'queue' && node.kind !== 'subscription') {
      throw new BrokerError('amqp:not-allowed', `'${path}' is neither a queue nor a subscription.`);
    }
    this.#checkForwarding(path, config);
    const { entity } = node;
    const settings = node.kind === 'subscription' ? node.topic.limit(config.settings) : config.settings;
    entity.configure(settings);
    entity.deadLetterQueue?.configure(deadLetterSettings(settings, this.#beliefs.bindsDeferredSessionLetters));
    this.#configs.set(key(path), config);
    applyStatus(entity, config.status ?? 'Active');
    entity.setOutlet(undefined);
    entity.deadLetterQueue?.setOutlet(undefined);
    this.#forward(entity, config);
  }

  /** Changes a topic and with it the limits of its subscriptions. Throws when it cannot become what is wanted. */
  changeTopic(path: string, config: TopicSettings): void {
    const topic = this.#topic(path);
    const { name: _, status, ...settings } = config;
    topic.configure(settings);
    topic.entity.setStatus(status ?? 'Active');
    this.#configs.set(key(path), config);
    for (const { entity } of topic.subscriptions)
      entity.configure(topic.limit(this.entityConfig(entity.path).settings));
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
      if (at === own || at === key(`${path}/${DEAD_LETTER_QUEUE}`) || belongs) {
        this.#nodes.delete(at);
        this.#configs.delete(at);
      }
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

  /** The entity at a path for a receiver, with sessions or without. Throws when it cannot be received from that way. */
  receivable(path: string, bySession: boolean): Entity {
    const entity = this.entity(path);
    const refuse = (text: string): BrokerError => new BrokerError('amqp:not-allowed', `'${path}' ${text}.`);
    if (entity.forwards) throw refuse('forwards its messages: receive them from the target of the forwarding');
    if (entity.sessions && !bySession)
      throw refuse('requires sessions: accept one instead of opening a plain receiver');
    if (!entity.sessions && bySession) throw refuse('has no sessions: open a plain receiver');
    entity.check('receive');
    return entity;
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

  /** Sets the status of a queue, topic or subscription. */
  setStatus(path: string, status: EntityStatus): void {
    const node = this.find(path);
    if (node.kind === 'dead-letter-queue') {
      throw new BrokerError('amqp:not-allowed', `'${path}' has the status of its entity: set that one.`);
    }
    applyStatus(storeOf(node), status);
  }

  /** Lets happen in every entity what has fallen due. */
  sweep(): void {
    for (const node of this.#nodes.values()) storeOf(node).sweep();
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

  #open(path: string, settings: EntitySettings, status: EntityStatus = 'Active'): Entity {
    const letterSettings = deadLetterSettings(settings, this.#beliefs.bindsDeferredSessionLetters);
    const deadLetters = new Entity(`${path}/${DEAD_LETTER_QUEUE}`, letterSettings, this.#context);
    const entity = new Entity(path, settings, this.#context, deadLetters);
    this.#nodes.set(key(deadLetters.path), { kind: 'dead-letter-queue', entity: deadLetters });
    applyStatus(entity, status);
    return entity;
  }

  #checkForwarding(path: string, { settings, forwardTo: target, forwardDeadLettersTo: letters }: EntityConfig): void {
    for (const to of [target, letters]) {
      if (to === undefined) continue;
      if (key(to) === key(path)) throw new BrokerError('amqp:not-allowed', `'${path}' cannot forward to itself.`);
      const node = this.#nodes.get(key(to));
      if (node?.kind !== 'queue' && node?.kind !== 'topic') {
        throw new BrokerError('amqp:not-found', `'${path}' forwards to '${to}', which is no queue or topic here.`);
      }
    }
    // Autoforwarding is not supported from entities with sessions (Service Bus documentation, autoforwarding).
    if (target !== undefined && settings.requiresSession) {
      throw new BrokerError('amqp:not-allowed', `'${path}' requires sessions and so cannot forward to '${target}'.`);
    }
  }

  #forward(entity: Entity, { forwardTo: target, forwardDeadLettersTo: letters }: EntityConfig): void {
    // Looked up for every message: by then the target may have been removed or created anew.
    if (target !== undefined) entity.setOutlet(forwardTo(() => this.destination(target)));
    if (letters !== undefined) {
      entity.deadLetterQueue?.setOutlet(forwardDeadLettersTo(() => this.destination(letters), entity.path));
    }
  }
}

/** The store behind a node; that of a topic holds only what is scheduled. */
function storeOf(node: Node): Entity {
  return node.kind === 'topic' ? node.destination.entity : node.entity;
}

/** A disabled entity gives out no dead letters either; with only receiving off they can still be looked after. */
function applyStatus(entity: Entity, status: EntityStatus): void {
  entity.setStatus(status);
  entity.deadLetterQueue?.setStatus(status === 'Disabled' ? 'ReceiveDisabled' : 'Active');
}

const DEFAULT_RULE_CONFIG = { name: DEFAULT_RULE, filter: { kind: 'true' } } as const;

function isBelow(path: string, parent: string): boolean {
  return path.startsWith(`${parent}/`);
}

function key(path: string): string {
  return path.replace(/^\/+/, '').toLowerCase();
}
