/**
 * Reads queues and topics through the administration interface. It asks for the right to manage, so it is for connection
 * strings; identities have Resource Manager.
 */
import type { ServiceBusAdministrationClient } from '@azure/service-bus';
import { z } from 'zod';
import type { Entity } from '../../catalog.ts';
import { type Described, readDescription } from './description.ts';
import { orAbort } from './orAbort.ts';

/** The administration interface of one namespace. */
export interface Administration {
  /**
   * Reads the queue or topic at `entity`. `status` is `missing` when there is neither. Throws an `Error` that says why
   * nothing can be told.
   */
  read(entity: string, signal: AbortSignal): Promise<Described>;
  /** Dead letters of a queue or subscription, as the service counts them. Throws likewise. */
  count(of: Entity, signal: AbortSignal): Promise<number>;
}

const MAX_ANSWER_BYTES = 262_144;

/**
 * Loads nothing yet. `url` is where the interface of a development emulator is: the client knows Azure alone, where it is
 * at the namespace's own address, over TLS.
 */
export function administrationOf(connectionString: string, url: URL | undefined): Administration {
  let client: Promise<ServiceBusAdministrationClient> | undefined;
  const open = () => {
    client ??= createClient(connectionString, url).catch((error: unknown) => {
      client = undefined;
      throw error;
    });
    return client;
  };
  return {
    async read(entity, signal) {
      const opened = await open();
      const queue = await ask(signal, (options) => opened.getQueue(entity, options));
      // Both are asked for at the same path; the client refuses to make a queue of a topic's description.
      const found = queue === 'other' ? await ask(signal, (options) => opened.getTopic(entity, options)) : queue;
      if (found === 'missing') return { status: 'missing' };
      if (found === 'other') throw new Error('the answer describes no queue or topic');
      return readDescription(found);
    },
    async count(of, signal) {
      const opened = await open();
      const found = await ask(
        signal,
        (options): Promise<{ deadLetterMessageCount: number }> =>
          of.kind === 'queue'
            ? opened.getQueueRuntimeProperties(of.queue, options)
            : opened.getSubscriptionRuntimeProperties(of.topic, of.subscription, options),
      );
      if (found === 'missing' || found === 'other') throw new Error('the answer describes no queue or subscription');
      return countSchema.parse(found.deadLetterMessageCount);
    },
  };
}

const countSchema = z.number().int().min(0);

async function createClient(connectionString: string, url: URL | undefined): Promise<ServiceBusAdministrationClient> {
  // Loading it takes some tenths of a second: only who asks waits for it.
  const { ServiceBusAdministrationClient } = await import('./administrationClient.ts');
  // A redirect is followed nowhere; repeating is for the next plan or run.
  const options = { retryOptions: { maxRetries: 0 }, redirectOptions: { maxRetries: 0 } };
  if (url === undefined) return new ServiceBusAdministrationClient(connectionString, options);
  const there = connectionString.replace(/((?:^|;)\s*Endpoint=)[^;]*/i, `$1sb://${url.host}/`);
  const client = new ServiceBusAdministrationClient(there, options);
  if (url.protocol === 'http:') goOverHttp(client);
  return client;
}

/** The scheme is changed after signing: the signature covers the address as the client writes it. */
function goOverHttp(client: ServiceBusAdministrationClient): void {
  client.pipeline.addPolicy(
    {
      name: 'over-http',
      sendRequest(request, next) {
        request.url = request.url.replace(/^https:/, 'http:');
        request.allowInsecureConnection = true;
        return next(request);
      },
    },
    { afterPhase: 'Sign' },
  );
}

/** What an error of the client tells; `bodyAsText` is what came. */
const restErrorSchema = z.object({
  code: z.string(),
  statusCode: z.number().optional(),
  response: z.object({ bodyAsText: z.string().nullish() }).optional(),
});

type Ask<T> = (options: { abortSignal: AbortSignal; requestOptions: object }) => Promise<T>;

/** `other`: there is an answer, but not one that the client takes for what was asked. */
async function ask<T>(signal: AbortSignal, request: Ask<T>): Promise<T | 'missing' | 'other'> {
  const limit = new AbortController();
  const onDownloadProgress = ({ loadedBytes }: { loadedBytes: number }) => {
    if (loadedBytes > MAX_ANSWER_BYTES) {
      limit.abort(new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`));
    }
  };
  try {
    const abortSignal = AbortSignal.any([signal, limit.signal]);
    // The client ends the download when it is aborted, but its promise stays open for ever.
    return await orAbort(request({ abortSignal, requestOptions: { onDownloadProgress } }), abortSignal);
  } catch (error) {
    if (limit.signal.aborted) throw limit.signal.reason;
    const { data } = restErrorSchema.safeParse(error);
    if (data?.code === 'PARSE_ERROR') return 'other';
    if (data?.code !== 'MessageEntityNotFoundError') throw error;
    // Service Bus says "no such entity" by 404 with an error document, or by a feed that is empty. The client takes
    // every 404 and every empty answer for it, also those of others.
    const body = data.response?.bodyAsText ?? '';
    if (data.statusCode === 404 ? /<Error[\s>]/.test(body) : /<feed[\s>]/.test(body)) return 'missing';
    throw new Error(`the answer ${data.statusCode ?? ''} is none of Service Bus`, { cause: error });
  }
}
