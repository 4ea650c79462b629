/**
 * The ATOM interface that administration clients speak (Service Bus documentation, "Service Bus REST API"): reads, and
 * creating, changing and removing entities and rules. Pure: a request in, an answer out.
 */
import type { Clock } from '../clock.ts';
import { BrokerError } from '../errors.ts';
import type { Namespace, Node } from '../namespace.ts';
import type { RuleSet } from '../rules/rule-set.ts';
import { entryDocument, feedDocument, type Item, itemOf, rootElement } from './atom.ts';
import { type Described, describeNode, pathOfNode } from './description.ts';
import type { Notes } from './notes.ts';
import { describes, invalid, readDescription, readQueue, readSubscription, readTopic } from './requests.ts';
import { type Target, targetOf } from './routes.ts';
import { readRule, ruleContent, ruleNameOf } from './rule-xml.ts';
import { childOf, element, escapeXml } from './xml.ts';

/** What administration works on. */
export interface Administered {
  readonly namespace: Namespace;
  readonly notes: Notes;
  readonly clock: Clock;
  /** Name of the namespace. */
  readonly name: string;
  readonly startedAt: number;
}

export interface AdminRequest {
  readonly method: string;
  /** Decoded, without query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether an existing entity is to be changed: `If-Match` was given. */
  readonly changes: boolean;
  readonly body: string;
  /** What the client calls this server. */
  readonly host: string;
}

export interface AdminAnswer {
  readonly status: number;
  readonly body: string;
}

const MAX_PAGE = 100;

/** Carries a request out. Throws {@link BrokerError} for everything that is refused. */
export function administer(request: AdminRequest, administered: Administered): AdminAnswer {
  const target = targetOf(request.path);
  if (!target) throw notFound(request.path);
  switch (request.method) {
    case 'GET':
      return { status: 200, body: read(target, request, administered) };
    case 'PUT':
      return write(target, request, administered);
    case 'DELETE':
      remove(target, administered);
      return { status: 200, body: '' };
    default:
      throw new BrokerError('amqp:not-implemented', `'${request.method}' is not supported here.`);
  }
}

function read(target: Target, request: AdminRequest, administered: Administered): string {
  const { namespace } = administered;
  const { host } = request;
  const item = (node: Described): Item => itemOf(describeNode(node, namespace, administered.notes), host);
  const page = (path: string, nodes: readonly Described[]) => feed(path, nodes, item, request, administered);
  switch (target.kind) {
    case 'namespace':
      return entryDocument(namespaceItem(administered), host);
    case 'queues':
      return page('$Resources/Queues', byName(namespace.nodes().filter((node) => node.kind === 'queue')));
    case 'topics':
      return page('$Resources/Topics', byName(namespace.nodes().filter((node) => node.kind === 'topic')));
    case 'subscriptions':
      return page(`${target.topic}/Subscriptions`, byName(subscriptionsOf(target.topic, namespace)));
    case 'entity':
      return entryDocument(item(entityAt(target.path, namespace)), host);
    case 'subscription':
      return entryDocument(item(subscriptionAt(target.topic, target.name, namespace)), host);
    case 'rules': {
      const { path, rules } = rulesAt(target.topic, target.subscription, namespace);
      return feed(`${path}/Rules`, rules.list(), (rule) => ruleItem(path, rule), request, administered);
    }
    case 'rule': {
      const { path, rules } = rulesAt(target.topic, target.subscription, namespace);
      return entryDocument(ruleItem(path, rules.get(target.name)), host);
    }
  }
}

function write(target: Target, request: AdminRequest, administered: Administered): AdminAnswer {
  const { changes } = request;
  switch (target.kind) {
    case 'entity':
      if (describes(request.body, 'TopicDescription')) writeTopic(target.path, request, administered);
      else writeQueue(target.path, request, administered);
      break;
    case 'subscription':
      writeSubscription(target.topic, target.name, request, administered);
      break;
    case 'rule':
      writeRule(target, request, administered);
      break;
    default:
      throw new BrokerError('amqp:not-allowed', `Nothing can be created at '${request.path}'.`);
  }
  return { status: changes ? 200 : 201, body: read(target, request, administered) };
}

function writeQueue(path: string, request: AdminRequest, { namespace, notes, clock }: Administered): void {
  const { config, shown } = readQueue(path, request.body);
  if (request.changes) {
    const current = entityAt(path, namespace);
    if (current.kind !== 'queue') throw invalid(`'${path}' is not a queue.`);
    namespace.changeEntity(path, config);
    notes.updated(path, clock.now(), shown);
  } else {
    namespace.createQueue(config);
    notes.created(path, clock.now(), shown);
  }
}

function writeTopic(path: string, request: AdminRequest, { namespace, notes, clock }: Administered): void {
  const { config, shown } = readTopic(path, request.body);
  if (request.changes) {
    namespace.changeTopic(path, config);
    notes.updated(path, clock.now(), shown);
  } else {
    namespace.createTopic(config);
    notes.created(path, clock.now(), shown);
  }
}

/** A client that creates a subscription may name its first rule; else that lets everything in. */
function writeSubscription(topic: string, name: string, request: AdminRequest, administered: Administered): void {
  const { namespace, notes, clock } = administered;
  const { config, shown, description } = readSubscription(name, request.body);
  if (request.changes) {
    const path = pathOfNode(subscriptionAt(topic, name, namespace));
    namespace.changeEntity(path, config);
    notes.updated(path, clock.now(), shown);
    return;
  }
  const first = childOf(description, 'DefaultRuleDescription');
  const rules = first && [{ name: ruleNameOf(first) ?? '$Default', ...readRule(first) }];
  namespace.createSubscription(topic, { ...config, ...(rules && { rules }) });
  notes.created(pathOfNode(subscriptionAt(topic, name, namespace)), clock.now(), shown);
}

function writeRule(target: Target & { kind: 'rule' }, request: AdminRequest, administered: Administered): void {
  const { rules } = rulesAt(target.topic, target.subscription, administered.namespace);
  const parts = readRule(readDescription(request.body, 'RuleDescription'));
  const rule = { name: target.name, ...parts, createdAt: administered.clock.now() };
  if (request.changes) rules.replace(rule);
  else rules.add(rule);
}

function remove(target: Target, { namespace, notes }: Administered): void {
  switch (target.kind) {
    case 'entity':
    case 'subscription': {
      const node =
        target.kind === 'entity'
          ? entityAt(target.path, namespace)
          : subscriptionAt(target.topic, target.name, namespace);
      const path = pathOfNode(node);
      namespace.remove(path);
      notes.removed(path.toLowerCase());
      return;
    }
    case 'rule':
      rulesAt(target.topic, target.subscription, namespace).rules.remove(target.name);
      return;
    default:
      throw new BrokerError('amqp:not-allowed', 'A list cannot be removed.');
  }
}

/** A page of a list, with a link to the next one as long as there is more. */
function feed<T>(
  path: string,
  all: readonly T[],
  item: (value: T) => Item,
  { query, host }: AdminRequest,
  { clock }: Administered,
): string {
  const skip = numberIn(query, '$skip', 0);
  const top = Math.min(numberIn(query, '$top', MAX_PAGE), MAX_PAGE);
  const items = all.slice(skip, skip + top).map(item);
  const next = skip + top < all.length ? `$skip=${skip + top}&$top=${top}` : undefined;
  return feedDocument(items, { host, path, now: clock.now(), next });
}

function numberIn(query: URLSearchParams, name: string, missing: number): number {
  const text = query.get(name);
  if (text === null) return missing;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalid(`'${name}' must be a whole number.`);
}

function byName<T extends Described>(nodes: readonly T[]): T[] {
  return nodes.toSorted((a, b) => (pathOfNode(a).toLowerCase() < pathOfNode(b).toLowerCase() ? -1 : 1));
}

function entityAt(path: string, namespace: Namespace): Described {
  const node = namespace.find(path);
  if (node.kind === 'queue' || node.kind === 'topic') return node;
  throw notFound(path);
}

function subscriptionsOf(topic: string, namespace: Namespace): Described[] {
  const node = namespace.find(topic);
  if (node.kind !== 'topic') throw notFound(topic);
  return namespace.nodes().filter((each) => each.kind === 'subscription' && each.topic === node.destination);
}

function subscriptionAt(topic: string, name: string, namespace: Namespace): Node & { kind: 'subscription' } {
  const path = `${topic}/Subscriptions/${name}`;
  const node = namespace.find(path);
  if (node.kind === 'subscription') return node;
  throw notFound(path);
}

function rulesAt(topic: string, name: string, namespace: Namespace): { path: string; rules: RuleSet } {
  const node = subscriptionAt(topic, name, namespace);
  return { path: node.entity.path, rules: node.rules };
}

function ruleItem(path: string, rule: Parameters<typeof ruleContent>[0]): Item {
  const { createdAt } = rule;
  return { path: `${path}/Rules/${rule.name}`, createdAt, updatedAt: createdAt, content: ruleContent(rule) };
}

function namespaceItem({ name, startedAt }: Administered): Item {
  const time = new Date(startedAt).toISOString();
  const fields = [
    element('CreatedTime', time),
    element('MessagingSKU', 'Standard'),
    element('ModifiedTime', time),
    element('Name', escapeXml(name)),
    element('NamespaceType', 'Messaging'),
  ];
  const content = rootElement('NamespaceInfo', fields.join(''));
  return { path: '$namespaceinfo', createdAt: startedAt, updatedAt: startedAt, content };
}

function notFound(path: string): BrokerError {
  return new BrokerError('amqp:not-found', `The messaging entity '${path}' could not be found.`);
}
