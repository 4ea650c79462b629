/** Service Bus triggers on queues and subscriptions, their dead-letter queues included. */
import { setTimeout as delay } from 'node:timers/promises';
import type {
  ProcessErrorArgs,
  ServiceBusClient,
  ServiceBusReceivedMessage,
  ServiceBusReceiver,
} from '@azure/service-bus';
import type { Settings } from '../../cli/settings.ts';
import { describe, type LoadedFunction } from './app.ts';
import { serviceBusClient } from './connections.ts';
import type { Binding } from './core.ts';
import type { HostJson } from './hostJson.ts';
import type { Invoker, WriteLog } from './invoke.ts';
import { toInvocation } from './serviceBusMessage.ts';

export interface ServiceBusTrigger {
  /** Receives until `signal` aborts; settles when the messages taken are done with. The broker may be away meanwhile. */
  listen(signal: AbortSignal): Promise<void>;
}

export interface ServiceBusTriggerOptions {
  settings: Settings;
  options: HostJson['extensions']['serviceBus'];
  invoker: Invoker;
  log: WriteLog;
}

/** Builds the trigger of `target`. Throws when its entity or connection is missing, or it asks for what is not offered here. */
export async function createServiceBusTrigger(
  target: LoadedFunction,
  given: ServiceBusTriggerOptions,
): Promise<ServiceBusTrigger> {
  const { trigger } = target;
  const open = entityOf(trigger);
  if (trigger.cardinality === 'many') throw new Error('cardinality "many" is not supported by the local host.');
  if (trigger.isSessionsEnabled) throw new Error('isSessionsEnabled is not supported by the local host.');
  if (trigger.sdkBinding) throw new Error('sdkBinding is not supported by the local host.');
  const client = await serviceBusClient(String(trigger.connection || 'AzureWebJobsServiceBus'), given.settings);
  const own = trigger.autoCompleteMessages;
  const autoComplete = typeof own === 'boolean' ? own : given.options.autoCompleteMessages;
  return { listen: (signal) => listen({ ...given, target, client, open, autoComplete }, signal) };
}

interface Context extends ServiceBusTriggerOptions {
  target: LoadedFunction;
  client: ServiceBusClient;
  open(client: ServiceBusClient): ServiceBusReceiver;
  autoComplete: boolean;
}

/** Body parsing and date conversion are left to this host; so is lock renewal (see `keepLocked`). */
const receiverOptions = { skipParsingBodyAsJson: true, skipConvertingDate: true, maxAutoLockRenewalDurationInMs: 0 };

function entityOf({ queueName, topicName, subscriptionName }: Binding): Context['open'] {
  if (typeof queueName === 'string' && queueName) return (client) => client.createReceiver(queueName, receiverOptions);
  if (typeof topicName === 'string' && topicName && typeof subscriptionName === 'string' && subscriptionName) {
    return (client) => client.createReceiver(topicName, subscriptionName, receiverOptions);
  }
  throw new Error('it needs queueName, or topicName and subscriptionName.');
}

async function listen(context: Context, signal: AbortSignal): Promise<void> {
  const { client, open, options, target, log } = context;
  const receiver = open(client);
  const settle = oneAtATime();
  const processing = new Set<Promise<void>>();
  let reported = '';

  // The client's subscription tries for ever, whether the broker is down, the entity missing or the connection cut.
  const subscription = receiver.subscribe(
    {
      processMessage: (message) => {
        reported = '';
        const work = processMessage(context, receiver, settle, message);
        processing.add(work);
        work.finally(() => processing.delete(work));
        return work;
      },
      processError: async ({ error, errorSource }: ProcessErrorArgs) => {
        const text = `${errorSource}: ${describe(error)}`;
        if (!signal.aborted && text !== reported) log('warning', target.name, text);
        reported = text;
      },
    },
    { autoCompleteMessages: false, maxConcurrentCalls: options.maxConcurrentCalls, abortSignal: signal },
  );

  await new Promise((stopped) => signal.addEventListener('abort', stopped, { once: true }));
  // Close the subscription first: it returns its credit, and what arrives meanwhile is still processed.
  await within(closeLimitMs, subscription.close()).catch(() => {});
  await Promise.all(processing);
  await within(closeLimitMs, client.close()).catch(() => {});
}

/** Runs the function, then settles: success completes if that is asked for, failure always abandons. Never throws. */
async function processMessage(
  context: Context,
  receiver: ServiceBusReceiver,
  settle: (work: () => Promise<void>) => Promise<void>,
  message: ServiceBusReceivedMessage,
): Promise<void> {
  const { invoker, target, autoComplete, log } = context;
  const lock = keepLocked(context, receiver, message);
  let failed = false;
  try {
    await invoker.invoke(target, toInvocation(message, target.trigger.dataType));
  } catch (error) {
    failed = true; // what the function threw is logged already; what could not be bound is not
    log('warning', target.name, `message ${message.messageId} is abandoned: ${describe(error)}`);
  }
  await lock.stop();
  try {
    if (failed) await settle(() => receiver.abandonMessage(message));
    else if (autoComplete) await settle(() => receiver.completeMessage(message));
  } catch (error) {
    log('error', target.name, `settling message ${message.messageId}: ${describe(error)}`);
  }
}

/**
 * Locks last five seconds at least in Azure. Tests move the clock of the local broker, so the end of a lock says little about
 * when it is by this process's clock: look again this often, whatever the lock says.
 */
const longestRenewalWait = 2000;

/**
 * Renews the lock of a message while its function runs, up to `maxAutoLockRenewalDuration` after it came. Not left to the
 * client, whose renewer knows messages by their id and mixes up two that share one.
 */
function keepLocked(
  { options, target, log }: Context,
  receiver: ServiceBusReceiver,
  message: ServiceBusReceivedMessage,
): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const until = Date.now() + options.maxAutoLockRenewalDuration;
  const renewing = (async () => {
    for (;;) {
      const left = (message.lockedUntilUtc?.getTime() ?? 0) - Date.now();
      // Ten seconds early, or at half-time of a short lock.
      const wait = Math.min(Math.max(left - 10_000, left / 2, 500), longestRenewalWait);
      await delay(wait, undefined, { signal: stopped.signal, ref: false }).catch(() => {});
      if (stopped.signal.aborted || Date.now() > until) return;
      await receiver.renewMessageLock(message);
    }
  })().catch((error) => log('warning', target.name, `renewing the lock of ${message.messageId}: ${describe(error)}`));
  return {
    stop: async () => {
      stopped.abort();
      await renewing;
    },
  };
}

/**
 * Queues up settlements so that each is answered before the next begins. The AMQP client merges dispositions made in one tick
 * into a range, and gives the whole range the outcome of one.
 */
function oneAtATime(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const answer = last.then(work);
    // One whose connection broke is answered late or never; it must not hold up the others for long.
    last = within(nextSettlementMs, answer).catch(() => {});
    return within(settlementLimitMs, answer);
  };
}

/** The client itself would wait a minute for a broker that is away, or without end for it to confirm a close. */
const closeLimitMs = 1000;
const nextSettlementMs = 500;
const settlementLimitMs = 5000;

/** What `work` answers. Throws when it takes longer than the limit, milliseconds. */
async function within(limit: number, work: Promise<void>): Promise<void> {
  const late = delay(limit, undefined, { ref: false }).then(() => {
    throw new Error(`no answer from the broker within ${limit} ms`);
  });
  await Promise.race([work, late]);
}
