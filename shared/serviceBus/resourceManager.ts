/**
 * Reads queues and topics from Azure Resource Manager (REST reference, Microsoft.ServiceBus 2024-01-01). The roles Data
 * Receiver and Data Sender include these reads, and nothing else there: not even the namespace itself.
 */
import { z } from 'zod';
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

const NAMESPACE_ID =
  /^\/subscriptions\/[\w-]+\/resourceGroups\/[\w().-]+\/providers\/Microsoft\.ServiceBus\/namespaces\/([\w-]+)\/?$/i;

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

/**
 * Reads the queue or topic `entity` of the namespace with this resource id. `status` is `missing` when there is neither.
 * Throws an `Error` that says why nothing can be told; it holds no secret.
 *
 * @param host the host that messages go to: facts about another namespace would be worse than none
 */
export async function readResource(
  { url, tokenFor }: ResourceManager,
  resourceId: string,
  host: string,
  entity: string,
  signal: AbortSignal,
): Promise<Described> {
  const name = NAMESPACE_ID.exec(resourceId)?.[1]?.toLowerCase();
  if (name === undefined) throw new Error('the resourceId in the catalog is not one of a Service Bus namespace');
  // Other hosts, such as that of a development emulator, do not tell their namespace.
  const named = /^([^.]+)\.servicebus\./i.exec(host)?.[1]?.toLowerCase();
  if (named !== undefined && named !== name) {
    throw new Error(`the resourceId in the catalog is of namespace "${name}", the connection leads to "${named}"`);
  }
  const token = await tokenFor(scopeOf(url), signal);
  const base = resourceId.replace(/\/$/, '');
  for (const kind of ['queues', 'topics']) {
    // A slash in a name is a tilde in a resource id.
    const address = new URL(`${base}/${kind}/${encodeURIComponent(entity.replaceAll('/', '~'))}`, url);
    address.searchParams.set('api-version', API_VERSION);
    const described = await readOne(address, token, entity, signal);
    if (described !== undefined) return described;
  }
  return { status: 'missing' };
}

/** The scope of a token for the Resource Manager at `url`. */
export function scopeOf(url: URL): string {
  return `${url.origin}/.default`;
}

/** `undefined` when there is certainly no such entity. */
async function readOne(url: URL, token: string, entity: string, signal: AbortSignal): Promise<Described | undefined> {
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
    return readDescription(data.properties);
  }
  const error = errorSchema.safeParse(json).data?.error;
  if (response.status === 404 && error !== undefined && isAboutEntity(error)) return undefined;
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
