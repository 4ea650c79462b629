/** What the office is compared with: the official client alone, without records, checks or journal. */
import type { ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { MAX_CHUNK } from '../../../shared/plan/prepare.ts';

/** As the office receives. */
export const BATCH = 100;
/** What one link of the client can hold without settling; its ring has 2,048 places. */
const HOLD = 2000;
const EXACT = { subQueueType: 'deadLetter', skipParsingBodyAsJson: true, maxAutoLockRenewalDurationInMs: 0 } as const;

/** Receives `count` letters and defers them, in the batches of the office. Gives their numbers. */
export async function hold(client: ServiceBusClient, queue: string, count: number): Promise<Long[]> {
  const receiver = client.createReceiver(queue, EXACT);
  const numbers: Long[] = [];
  while (numbers.length < count) {
    const messages = await receiver.receiveMessages(BATCH, { maxWaitTimeInMs: 10_000 });
    if (messages.length === 0) throw new Error(`only ${numbers.length} of ${count} letters came`);
    await Promise.all(messages.map((message) => receiver.deferMessage(message)));
    numbers.push(...messages.map(numberOf));
  }
  await receiver.close();
  return numbers;
}

/** Moves deferred letters back to `queue` in the chunks of the office: take, send as one batch, complete side by side. */
export async function move(client: ServiceBusClient, queue: string, numbers: readonly Long[]): Promise<void> {
  const receiver = client.createReceiver(queue, EXACT);
  const sender = client.createSender(queue);
  for (let i = 0; i < numbers.length; i += MAX_CHUNK) {
    const messages = await receiver.receiveDeferredMessages(numbers.slice(i, i + MAX_CHUNK));
    await sender.sendMessages(messages);
    await Promise.all(messages.map((message) => receiver.completeMessage(message)));
  }
  await sender.close();
  await receiver.close();
}

/** The loop that everybody writes first: get a letter, publish it, acknowledge it. */
export async function moveOneByOne(client: ServiceBusClient, queue: string, numbers: readonly Long[]): Promise<void> {
  const receiver = client.createReceiver(queue, EXACT);
  const sender = client.createSender(queue);
  for (const number of numbers) {
    const [message] = await receiver.receiveDeferredMessages(number);
    if (message === undefined) throw new Error(`letter ${number} did not come`);
    await sender.sendMessages(message);
    await receiver.completeMessage(message);
  }
  await sender.close();
  await receiver.close();
}

/**
 * How tools without deferral get at chosen letters: they receive and hold what comes until they have them all, send those, and
 * give the others back. `isChosen` is about the message id. Gives how long it took until the chosen were sent, and in all, ms.
 */
export async function scan(
  client: ServiceBusClient,
  queue: string,
  wanted: number,
  isChosen: (messageId: string) => boolean,
): Promise<{ found: number; all: number }> {
  const began = performance.now();
  const sender = client.createSender(queue);
  const held: { receiver: ServiceBusReceiver; messages: ServiceBusReceivedMessage[] }[] = [];
  let found = 0;
  while (found < wanted) {
    // A link of its own for each ringful.
    const receiver = client.createReceiver(queue, EXACT);
    const kept: ServiceBusReceivedMessage[] = [];
    held.push({ receiver, messages: kept });
    for (let room = HOLD; room > 0 && found < wanted; ) {
      const messages = await receiver.receiveMessages(room, { maxWaitTimeInMs: 10_000 });
      if (messages.length === 0) throw new Error(`only ${found} of ${wanted} letters were found`);
      room -= messages.length;
      const hits = messages.filter(({ messageId }) => isChosen(String(messageId)));
      kept.push(...messages.filter((message) => !hits.includes(message)));
      if (hits.length === 0) continue;
      await sender.sendMessages(hits);
      await Promise.all(hits.map((message) => receiver.completeMessage(message)));
      found += hits.length;
    }
  }
  const sent = performance.now() - began;
  for (const { receiver, messages } of held) {
    await Promise.all(messages.map((message) => receiver.abandonMessage(message)));
    await receiver.close();
  }
  await sender.close();
  return { found: sent, all: performance.now() - began };
}

function numberOf({ sequenceNumber }: ServiceBusReceivedMessage): Long {
  if (sequenceNumber === undefined) throw new Error('a received letter has no number');
  return Long.fromString(sequenceNumber.toString());
}
