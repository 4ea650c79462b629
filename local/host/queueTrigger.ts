/** Storage queue triggers. */
import { setTimeout as delay } from 'node:timers/promises';
import type { DequeuedMessageItem, QueueClient, QueueServiceClient } from '@azure/storage-queue';
import type { Settings } from '../../cli/settings.ts';
import { describe, type LoadedFunction } from './app.ts';
import { queueServiceClient } from './connections.ts';
import type { HostJson } from './hostJson.ts';
import type { Invocation, Invoker, WriteLog } from './invoke.ts';
import { encodeMetadata, overlayBody, toDateTime } from './triggerMetadata.ts';

type QueueOptions = HostJson['extensions']['queues'];

/** A running function keeps its message hidden for this long at a time, renewed at half-time (the real host's figure). */
const hiddenSeconds = 600;
const shortestPoll = 100;
const longestQueueName = 63;

export interface QueueTrigger {
  /** Polls until `signal` aborts; settles when the messages taken are done with. Storage errors are logged and waited out. */
  listen(signal: AbortSignal): Promise<void>;
}

export interface QueueTriggerOptions {
  settings: Settings;
  options: QueueOptions;
  /** Upper limit of the wait between polls of an empty queue, milliseconds; the smaller of this and host.json's counts. */
  longestPoll: number;
  invoker: Invoker;
  log: WriteLog;
}

/** Builds the trigger of `target`. Throws when its queue name or connection is missing. */
export async function createQueueTrigger(target: LoadedFunction, given: QueueTriggerOptions): Promise<QueueTrigger> {
  const { queueName, connection } = target.trigger;
  if (typeof queueName !== 'string' || !queueName) throw new Error('queueName is missing.');
  const service = await queueServiceClient(String(connection || 'AzureWebJobsStorage'), given.settings);
  const name = queueName.toLowerCase();
  const context: Context = {
    ...given,
    target,
    queue: service.getQueueClient(name),
    poison: poisonQueue(service, name),
  };
  return { listen: (signal) => listen(context, signal) };
}

/** What a queue function gets for the text of a message. */
export function queueInvocation(text: string, message?: DequeuedMessageItem): Invocation {
  const metadata = encodeMetadata({
    QueueTrigger: text,
    DequeueCount: message?.dequeueCount ?? 0,
    ExpirationTime: toDateTime(message?.expiresOn ?? new Date(0), '+00:00'),
    Id: message?.messageId ?? '',
    InsertionTime: toDateTime(message?.insertedOn ?? new Date(), '+00:00'),
    NextVisibleTime: toDateTime(message?.nextVisibleOn ?? new Date(0), '+00:00'),
    PopReceipt: message?.popReceipt ?? '',
  });
  return { data: { string: text }, metadata: overlayBody(metadata, text) };
}

interface Context extends QueueTriggerOptions {
  target: LoadedFunction;
  queue: QueueClient;
  /** Undefined for a queue that is itself a poison queue, or whose name leaves no room for the suffix. */
  poison: QueueClient | undefined;
}

function poisonQueue(service: QueueServiceClient, name: string): QueueClient | undefined {
  const poison = `${name}-poison`;
  return name.endsWith('-poison') || poison.length > longestQueueName ? undefined : service.getQueueClient(poison);
}

async function listen(context: Context, signal: AbortSignal): Promise<void> {
  const { options, queue, target, log } = context;
  const threshold = options.newBatchThreshold ?? Math.floor(options.batchSize / 2);
  const longest = Math.max(shortestPoll, Math.min(context.longestPoll, options.maxPollingInterval));
  const processing = new Set<Promise<void>>();
  let wait = shortestPoll;
  let reported = '';

  while (!signal.aborted) {
    let received: DequeuedMessageItem[] = [];
    try {
      // Not aborted at a stop: the storage may have answered already, and would hide those messages for ten minutes.
      const answer = await queue.receiveMessages({
        numberOfMessages: options.batchSize,
        visibilityTimeout: hiddenSeconds,
      });
      received = answer.receivedMessageItems;
      reported = '';
    } catch (error) {
      // A queue that is not there yet is no error: the host waits for it (and does not create it; the sender must).
      const text = describe(error);
      if (!signal.aborted && !isMissing(error) && text !== reported) log('warning', target.name, `polling: ${text}`);
      reported = text;
    }
    for (const message of received) {
      const work = processMessage(context, message).catch((error) => {
        log('error', target.name, `queue message ${message.messageId}: ${describe(error)}`);
      });
      processing.add(work);
      work.finally(() => processing.delete(work));
    }
    if (received.length > 0) {
      wait = shortestPoll;
      while (processing.size > threshold) await Promise.race(processing);
    } else {
      await delay(wait, undefined, { signal }).catch(() => {});
      wait = Math.min(wait * 2, longest);
    }
  }
  await Promise.all(processing);
}

async function processMessage(context: Context, message: DequeuedMessageItem): Promise<void> {
  const { options, queue, target, invoker, log } = context;
  const text = decode(message.messageText, options.messageEncoding);
  // The real host moves a message it cannot decode at once, its text untouched, without calling the function.
  if (text === undefined) {
    log('warning', target.name, `queue message ${message.messageId} is not base64; it goes to the poison queue.`);
    return moveToPoison(context, message);
  }
  if (message.dequeueCount > options.maxDequeueCount) return moveToPoison(context, message);

  const hidden = keepHidden(context, message);
  let failed = false;
  try {
    await invoker.invoke(target, queueInvocation(text, message));
  } catch {
    failed = true; // the invoker has logged it
  }
  const popReceipt = await hidden.stop();
  const current = { ...message, popReceipt };
  if (!failed) return ignoreMissing(queue.deleteMessage(message.messageId, popReceipt));
  if (!context.poison) return;
  if (message.dequeueCount >= options.maxDequeueCount) return moveToPoison(context, current);
  const seconds = Math.ceil(options.visibilityTimeout / 1000);
  return ignoreMissing(queue.updateMessage(message.messageId, popReceipt, undefined, seconds));
}

async function moveToPoison(context: Context, message: DequeuedMessageItem): Promise<void> {
  if (!context.poison) return;
  await context.poison.createIfNotExists();
  await context.poison.sendMessage(message.messageText);
  await ignoreMissing(context.queue.deleteMessage(message.messageId, message.popReceipt));
}

/** Renews the invisibility of a message while its function runs. `stop` answers the latest pop receipt. */
function keepHidden(context: Context, message: DequeuedMessageItem): { stop(): Promise<string> } {
  let popReceipt = message.popReceipt;
  const stopped = new AbortController();
  const renewing = (async () => {
    while (!stopped.signal.aborted) {
      await delay((hiddenSeconds / 2) * 1000, undefined, { signal: stopped.signal }).catch(() => {});
      if (stopped.signal.aborted) return;
      const answer = await context.queue.updateMessage(message.messageId, popReceipt, undefined, hiddenSeconds);
      popReceipt = answer.popReceipt ?? popReceipt;
    }
  })().catch((error) => context.log('warning', context.target.name, `renewing a queue message: ${describe(error)}`));
  return {
    stop: async () => {
      stopped.abort();
      await renewing;
      return popReceipt;
    },
  };
}

/** The text of a message, or undefined when it is not base64 of UTF-8 where that is expected. */
function decode(text: string, encoding: QueueOptions['messageEncoding']): string | undefined {
  if (encoding === 'none') return text;
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  return Buffer.from(text, 'base64').toString();
}

function isMissing(error: unknown): boolean {
  return (error as { statusCode?: number }).statusCode === 404;
}

/** Someone else may have taken or deleted the message meanwhile: the real host lets that pass too. */
async function ignoreMissing(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const { code, statusCode } = error as { code?: string; statusCode?: number };
    if (code !== 'PopReceiptMismatch' && statusCode !== 404) throw error;
  }
}
