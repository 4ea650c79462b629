/** The bookstore around the office: who sends orders and who fails on them, all with the official client. */
import type { ServiceBusClient, ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { NotAsTold } from './check.ts';

/** A queue, or a topic with a subscription. */
export type Place = readonly [queue: string] | readonly [topic: string, subscription: string];

/** What a consumer makes of one message. */
export type Verdict =
  | { readonly kind: 'dead-letter'; readonly reason: string; readonly description: string }
  /** It threw; the message is abandoned and comes again, up to the delivery limit. */
  | { readonly kind: 'abandon' };

/** What became of one delivery. */
export interface Delivery {
  readonly messageId: string;
  readonly verdict: string;
  /** The message's own count of replays, as its consumer sees it. */
  readonly replayCount: number;
}

/** A dead letter as the broker shows it. */
export interface Peeked {
  readonly messageId: string;
  readonly state: string;
  readonly deliveryCount: number;
}

/** How long a consumer waits for its next message, ms. */
const PATIENCE_MS = 20_000;

/** Sends orders under the given message ids. */
export async function placeOrders(client: ServiceBusClient, to: string, ids: readonly string[]): Promise<void> {
  const sender = client.createSender(to);
  try {
    for (const [i, messageId] of ids.entries()) {
      await sender.sendMessages({
        messageId,
        subject: 'order-placed',
        contentType: 'application/json',
        body: { orderId: i + 1, amount: 42.5, currency: 'XXX' },
        applicationProperties: { 'customer-id': `c-${i + 1}` },
      });
    }
  } finally {
    await sender.close();
  }
}

/** Runs a consumer for that many deliveries. Throws {@link NotAsTold} when fewer come. */
export async function consume(
  client: ServiceBusClient,
  place: Place,
  deliveries: number,
  handle: (messageId: string) => Verdict,
): Promise<Delivery[]> {
  const receiver = receiverOf(client, place);
  const seen: Delivery[] = [];
  try {
    while (seen.length < deliveries) {
      const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: PATIENCE_MS });
      if (message === undefined) throw new NotAsTold(`deliveries to ${place.join('/')}`, deliveries, seen.length);
      const messageId = String(message.messageId);
      const verdict = handle(messageId);
      if (verdict.kind === 'abandon') await receiver.abandonMessage(message);
      else {
        const { reason: deadLetterReason, description: deadLetterErrorDescription } = verdict;
        await receiver.deadLetterMessage(message, { deadLetterReason, deadLetterErrorDescription });
      }
      const replayCount = Number(message.applicationProperties?.['x-replay-count'] ?? 0);
      seen.push({ messageId, verdict: verdict.kind, replayCount });
    }
  } finally {
    await receiver.close();
  }
  return seen;
}

/** The dead letters of a place, peeked: nothing is locked or changed. Ordered by message id. */
export async function peekDeadLetters(client: ServiceBusClient, place: Place): Promise<Peeked[]> {
  const receiver = receiverOf(client, place, 'deadLetter');
  try {
    // Without a start it would go on where the last peek on this connection ended, even with another receiver.
    const messages = await receiver.peekMessages(100, { fromSequenceNumber: Long.ZERO });
    const peeked = messages.map(({ messageId, state, deliveryCount }) => ({
      messageId: String(messageId),
      state,
      deliveryCount: deliveryCount ?? 0,
    }));
    return peeked.sort((a, b) => a.messageId.localeCompare(b.messageId));
  } finally {
    await receiver.close();
  }
}

function receiverOf(client: ServiceBusClient, place: Place, subQueueType?: 'deadLetter'): ServiceBusReceiver {
  const options = { maxAutoLockRenewalDurationInMs: 0, ...(subQueueType && { subQueueType }) };
  const [name, subscription] = place;
  return subscription === undefined
    ? client.createReceiver(name, options)
    : client.createReceiver(name, subscription, options);
}
