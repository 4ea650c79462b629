/**
 * The Azure Resource Manager reads of a namespace, its queues, topics, subscriptions and rules (REST reference,
 * Microsoft.ServiceBus 2024-01-01). Whatever subscription, group and namespace a resource id names, it is this broker:
 * a catalog for Azure can be tried here unchanged. It authorizes before it looks, as Resource Manager does.
 */
import type { Described, Description } from './description.ts';
import { describeNode } from './description.ts';
import type { Administered } from './service.ts';

const RESOURCE =
  /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.ServiceBus\/namespaces\/([^/]+)(?:\/(queues|topics)\/([^/]+)(?:\/subscriptions\/([^/]+))?)?$/i;
const TYPE = 'Microsoft.ServiceBus/Namespaces';
const LOCATION = 'local';

/** Fields that the other interface has and this one has not. */
const NOT_HERE = new Set([
  'IsAnonymousAccessible',
  'EntityAvailabilityStatus',
  'SupportOrdering',
  'FilteringMessagesBeforePublishing',
  'EnableSubscriptionPartitioning',
]);

export interface ResourceAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Whether a path, undecoded, is one of a resource. */
export function isResourcePath(path: string): boolean {
  return /^\/subscriptions\/[^/]+\/resourceGroups\//i.test(path);
}

/** Answers a read of the resource at `path`, undecoded; everything else is refused as the service does. */
export function readResource(
  method: string,
  path: string,
  query: URLSearchParams,
  administered: Administered,
  readable: readonly string[] = [EVERYTHING],
): ResourceAnswer {
  if (!query.get('api-version')) {
    return failure(400, 'MissingApiVersionParameter', 'The api-version query parameter (?api-version=) is required.');
  }
  const match = RESOURCE.exec(path);
  if (!match) return failure(404, 'InvalidResourceType', `The resource '${path}' is of no type that is known here.`);
  if (method !== 'GET') return failure(405, 'MethodNotAllowed', 'This broker answers reads only.');
  const [, namespaceName = '', kind, encodedName, encodedSubscription] = match;
  if (!mayRead(path, readable)) {
    const types = ['namespaces', kind, encodedSubscription && 'subscriptions'].filter(Boolean).join('/');
    const message = `The client does not have authorization to perform action 'Microsoft.ServiceBus/${types}/read' over scope '${path}' or the scope is invalid.`;
    return failure(403, 'AuthorizationFailed', message);
  }
  if (kind === undefined) return { status: 200, body: namespaceResource(path, namespaceName, administered) };
  const name = nameOf(encodedName ?? '');
  const subscription = encodedSubscription === undefined ? undefined : nameOf(encodedSubscription);
  const node = findNode(kind.toLowerCase() === 'queues' ? 'queue' : 'topic', name, subscription, administered);
  if (!node) {
    return failure(404, 'ResourceNotFound', `The Resource '${path.split('/').slice(8).join('/')}' was not found.`);
  }
  const type =
    node.kind === 'subscription'
      ? `${TYPE}/Topics/Subscriptions`
      : `${TYPE}/${kind === 'queues' ? 'Queues' : 'Topics'}`;
  const description = describeNode(node, administered.namespace, administered.notes);
  return {
    status: 200,
    body: { id: path, name: subscription ?? name, type, location: LOCATION, properties: propertiesOf(description) },
  };
}

/** The scope of a role on the whole namespace. */
const EVERYTHING = '';

/** Whether a role on one of these scopes covers the resource at `path`: a scope covers all that is below it. */
function mayRead(path: string, readable: readonly string[]): boolean {
  const inside = `/${path.split('/').slice(9).join('/')}/`.toLowerCase();
  return readable.some((scope) => scope === EVERYTHING || inside.startsWith(`/${scope.toLowerCase()}/`));
}

/** Slashes in names are written as tildes in resource ids. */
function nameOf(encoded: string): string {
  try {
    return decodeURIComponent(encoded).replaceAll('~', '/');
  } catch {
    return '';
  }
}

function findNode(
  kind: 'queue' | 'topic',
  name: string,
  subscription: string | undefined,
  { namespace }: Administered,
): Described | undefined {
  const path = subscription === undefined ? name : `${name}/Subscriptions/${subscription}`;
  const wanted = subscription === undefined ? kind : 'subscription';
  if (subscription !== undefined && kind !== 'topic') return undefined;
  return namespace
    .nodes()
    .find(
      (node) =>
        node.kind === wanted &&
        (node.kind === 'topic' ? node.destination.path : node.entity.path).toLowerCase() === path.toLowerCase(),
    );
}

function propertiesOf({ fields }: Description): Record<string, unknown> {
  const kept = fields.filter(([name]) => !NOT_HERE.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name.charAt(0).toLowerCase() + name.slice(1), value]));
}

function namespaceResource(path: string, name: string, { startedAt }: Administered): unknown {
  const time = new Date(startedAt).toISOString();
  return {
    id: path,
    name,
    type: TYPE,
    location: LOCATION,
    sku: { name: 'Standard', tier: 'Standard' },
    properties: {
      provisioningState: 'Succeeded',
      status: 'Active',
      createdAt: time,
      updatedAt: time,
      serviceBusEndpoint: `https://${name}.servicebus.windows.net:443/`,
      disableLocalAuth: false,
      zoneRedundant: false,
    },
  };
}

function failure(status: number, code: string, message: string): ResourceAnswer {
  return { status, body: { error: { code, message } } };
}
