/** What every measurement has at hand: the broker in its own process, one client of it, and messages. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import {
  ServiceBusClient,
  type ServiceBusMessage,
  type ServiceBusReceivedMessage,
  type ServiceBusReceiver,
  type ServiceBusSender,
} from '@azure/service-bus';
import type { Question } from './child.ts';

export const QUEUE = 'q';
/** Characters of a body. */
export const BODY_LENGTH = 200;
/** How many messages a client asks for at most: what it has not settled has to fit into its ring. */
const TAKE = 1000;

export class Kit {
  readonly client: ServiceBusClient;
  readonly sender: ServiceBusSender;
  /** Under locks that nobody renews. */
  readonly receiver: ServiceBusReceiver;
  /** Receives and deletes. */
  readonly remover: ServiceBusReceiver;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, connectionString: string) {
    this.#child = child;
    this.client = new ServiceBusClient(connectionString, { retryOptions: { maxRetries: 0 } });
    this.sender = this.client.createSender(QUEUE);
    this.receiver = this.client.createReceiver(QUEUE, { maxAutoLockRenewalDurationInMs: 0 });
    this.remover = this.client.createReceiver(QUEUE, { receiveMode: 'receiveAndDelete' });
  }

  /** Starts the broker and opens a connection to it. */
  static async open(): Promise<Kit> {
    const child = fork(join(import.meta.dirname, 'child.ts'), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const ended = once(child, 'exit').then((): never => {
      throw new Error('the broker ended before it was open');
    });
    const [connectionString] = await Promise.race([once(child, 'message'), ended]);
    ended.catch(() => {}); // from now on that is how it closes
    return new Kit(child, String(connectionString));
  }

  async close(): Promise<void> {
    await this.client.close();
    const ended = once(this.#child, 'exit');
    this.#child.disconnect();
    await ended;
  }

  /** Empties the queue. */
  async clear(): Promise<void> {
    await this.#ask('recreate');
  }

  /** CPU time that the broker has used so far, microseconds. */
  brokerCpu(): Promise<number> {
    return this.#ask('cpu');
  }

  /** Memory that the broker holds on to, bytes. */
  brokerMemory(): Promise<number> {
    return this.#ask('memory');
  }

  /** Puts `count` messages into the empty queue. */
  async fill(count: number): Promise<void> {
    await this.clear();
    await this.add(count);
  }

  /** Sends `count` messages. */
  async add(count: number): Promise<void> {
    for (let sent = 0; sent < count; sent += 100) await this.sender.sendMessages(messages(Math.min(100, count - sent)));
  }

  /** Receives exactly `count` messages. Throws when they do not come. */
  async take(count: number, receiver = this.receiver): Promise<ServiceBusReceivedMessage[]> {
    const taken: ServiceBusReceivedMessage[] = [];
    while (taken.length < count) {
      const more = await receiver.receiveMessages(Math.min(TAKE, count - taken.length), { maxWaitTimeInMs: 10_000 });
      if (more.length === 0) throw new Error(`only ${taken.length} of ${count} messages came`);
      taken.push(...more);
    }
    return taken;
  }

  async #ask(ask: Question['ask']): Promise<number> {
    const answered = once(this.#child, 'message');
    this.#child.send({ ask, queue: QUEUE } satisfies Question);
    return Number((await answered)[0]);
  }
}

/** Messages of one size. */
export function messages(count: number): ServiceBusMessage[] {
  return Array.from({ length: count }, () => ({ body: 'x'.repeat(BODY_LENGTH) }));
}

/** How many a second `work` does of `count`. */
export async function rateOf(count: number, work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (count * 1000) / (performance.now() - began);
}
