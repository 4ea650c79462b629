/**
 * Reads queues and topics from Azure Resource Manager (REST reference, Microsoft.ServiceBus 2024-01-01). The roles Data
 * Receiver and Data Sender include these reads, and nothing else there: not even the namespace itself.
 */
import { z } from 'zod';
import type { Entity } from '../../catalog.ts';
import { NAMESPACE_ID } from './connectionSetting.ts';
import { type Described, readDescription } from './description.ts';

/** Where to ask, and as whom. */
export interface ResourceManager {
  /** Its address; the token is for the same address, as in every Azure cloud. */
  readonly url: URL;
  /** A token for `scope`. */
  tokenFor(scope: string, signal: AbortSignal): Promise<string>;
}

const API_VERSION = '2024-01-01';
/** A description has about two kilobytes. */
const MAX_ANSWER_BYTES = 262_144;

const entitySchema = z.object({ name: z.string(), properties: z.unknown() });
const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

/** What is missing is not the entity but something above it, as far as the code tells. */
const NOT_THE_ENTITY: ReadonlySet<string> = new Set([
  'InvalidResourceNamespace',
  'InvalidResourceType',
  'InvalidSubscriptionId',
  'NoRegisteredProviderFound',
  'ParentResourceNotFound',
  'ResourceGroupNotFound',
  'SubscriptionNotFound',
]);

/** The kinds of entity that messages are sent to, as resource ids name them. */
export type TargetKind = 'queues' | 'topics';

/**
 * Resource Manager does not let the office read something. It authorizes before it looks: where roles are an entity's own, an entity
 * that does not exist is refused in the same words.
 */
export class ReadRefused extends Error {
  override readonly name = 'ReadRefused';

  constructor({ pathname }: URL, told: string) {
    const kinds = pathname
      .split('/')
      .slice(7)
      .filter((_, index) => index % 2 === 0);
    super(`it needs Microsoft.ServiceBus/${kinds.join('/')}/read on ${decodeURIComponent(pathname)} (${told})`);
  }
}

/**
 * Reads the queue or topic `entity` of the namespace with this resource id. `status` is `missing` when there is none of that kind: only
 * the kind that is meant is asked for, since a role on a topic tells nothing about a queue of its name.
 * Throws {@link ReadRefused}, or an `Error` that says why nothing can be told; it holds no secret.
 *
 * @param host the host that messages go to: facts about another namespace would be worse than none
 */
export async function readResource(
  manager: ResourceManager,
  resourceId: string,
  host: string,
  kind: TargetKind,
  entity: string,
  signal: AbortSignal,
): Promise<Described> {
  const { url } = manager;
  const base = baseOf(resourceId, host);
  const token = await manager.tokenFor(scopeOf(url), signal);
  const described = await readOne(addressOf(url, base, `${kind}/${segment(entity)}`), token, entity, signal);
  return described === undefined ? { status: 'missing' } : readDescription(described);
}

const countsSchema = z.object({ countDetails: z.object({ deadLetterMessageCount: z.number().int().min(0) }) });

/** What Service Bus counts in the dead-letter queue of a queue or subscription. Otherwise like {@link readResource}; asks once. */
export async function readDeadLetterCount(
  { url, tokenFor }: ResourceManager,
  resourceId: string,
  host: string,
  of: Entity,
  signal: AbortSignal,
): Promise<number> {
  const base = baseOf(resourceId, host);
  const token = await tokenFor(scopeOf(url), signal);
  const isQueue = of.kind === 'queue';
  const path = isQueue
    ? `queues/${segment(of.queue)}`
    : `topics/${segment(of.topic)}/subscriptions/${segment(of.subscription)}`;
  const name = isQueue ? of.queue : of.subscription;
  const properties = await readOne(addressOf(url, base, path), token, name, signal);
  if (properties === undefined) throw new Error(`there is no "${name}"`);
  const { data } = countsSchema.safeParse(properties);
  if (data === undefined) throw new Error('the answer counts no dead letters');
  return data.countDetails.deadLetterMessageCount;
}

/** A slash in a name is a tilde in a resource id. */
function segment(name: string): string {
  return encodeURIComponent(name.replaceAll('/', '~'));
}

function addressOf(url: URL, base: string, path: string): URL {
  const address = new URL(`${base}/${path}`, url);
  address.searchParams.set('api-version', API_VERSION);
  return address;
}

/** The resource id of the namespace that `host` is in. Throws an `Error` where it is another one's, or none. */
function baseOf(resourceId: string, host: string): string {
  const name = NAMESPACE_ID.exec(resourceId)?.[1]?.toLowerCase();
  if (name === undefined) throw new Error('the resource id is not one of a Service Bus namespace');
  // Other hosts, such as that of a development emulator, do not tell their namespace.
  const named = /^([^.]+)\.servicebus\./i.exec(host)?.[1]?.toLowerCase();
  if (named !== undefined && named !== name) {
    throw new Error(`the resource id is of namespace "${name}", the connection leads to "${named}"`);
  }
  return resourceId.replace(/\/$/, '');
}

/** The scope of a token for the Resource Manager at `url`. */
export function scopeOf(url: URL): string {
  return `${url.origin}/.default`;
}

/** The properties of an entity; `undefined` when there is certainly no such one. */
async function readOne(url: URL, token: string, entity: string, signal: AbortSignal): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  // Resource Manager does not redirect; whoever does must not get the token.
  const response = await fetch(url, { headers, signal, redirect: 'error' });
  const json = parse(await limitedText(response));
  if (response.ok) {
    const { data } = entitySchema.safeParse(json);
    const name = data?.name.replaceAll('~', '/').toLowerCase();
    if (data === undefined || name !== entity.toLowerCase()) {
      throw new Error(`the answer is none of Resource Manager about "${entity}"`);
    }
    return data.properties;
  }
  const error = errorSchema.safeParse(json).data?.error;
  if (response.status === 404 && error !== undefined && isAboutEntity(error)) return undefined;
  if (response.status === 403)
    throw new ReadRefused(url, `Resource Manager answered 403, ${error?.code ?? 'no reason'}`);
  const told = error === undefined ? '' : `, ${error.code}: ${error.message}`;
  throw new Error(`Resource Manager answered ${response.status}${told}`);
}

function isAboutEntity({ code, message }: { code: string; message: string }): boolean {
  // The same code is used for a missing namespace; then the message quotes the path as far as the namespace.
  return !NOT_THE_ENTITY.has(code) && !/Microsoft\.ServiceBus\/namespaces\/[\w-]+['"]/i.test(message);
}

async function limitedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** `undefined` for anything but JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
