/** Names on the wire: what Service Bus writes on a message, and what a replay adds to it. */
import { ORIGINAL_MESSAGE_ID } from '../../letter.ts';

/** Annotations that the office reads. Names: Microsoft, "AMQP 1.0 in Azure Service Bus protocol guide". */
export const ANNOTATION = {
  sequenceNumber: 'x-opt-sequence-number',
  enqueuedTime: 'x-opt-enqueued-time',
  lockedUntil: 'x-opt-locked-until',
  state: 'x-opt-message-state',
  partitionKey: 'x-opt-partition-key',
  /** Only on what was forwarded out of a dead-letter queue (Microsoft, `ServiceBusReceivedMessage.DeadLetterSource`). */
  deadLetterSource: 'x-opt-deadletter-source',
} as const;

/**
 * Annotations that the broker writes about this one stay of the message in this entity. A replay drops these and
 * no others: a partition key must stay, and without `x-opt-jms-msg-type` a JMS consumer cannot read the body.
 */
export const BROKER_ANNOTATIONS: ReadonlySet<string> = new Set([
  'x-opt-sequence-number',
  'x-opt-enqueue-sequence-number',
  'x-opt-enqueued-time',
  'x-opt-locked-until',
  'x-opt-message-state',
  'x-opt-deadletter-source',
  'x-opt-scheduled-enqueue-time',
  'x-opt-lock-token',
]);

/** Application properties in which a dead-lettered message says why it died. */
export const DEAD_LETTER = { reason: 'DeadLetterReason', description: 'DeadLetterErrorDescription' } as const;

/** Application properties of a replayed message. */
export const REPLAY = {
  /** int: how often the message has been sent back. */
  count: 'x-replay-count',
  /** long: when it was sent back last, unix seconds. */
  at: 'x-replayed-at',
  /** string: the plan that sent it back. */
  id: 'x-replay-id',
  /** string: the number it had in the dead-letter queue. */
  of: 'x-replay-of',
  /** string: the subscription it is meant for, when it was sent to a topic. */
  for: 'x-replay-for',
  /** The id it had before the replay gave it a new one, in the type it had. */
  originalMessageId: ORIGINAL_MESSAGE_ID,
  /** string `1`: outside effects that already happened shall be skipped. */
  bypass: 'replay-bypass',
  /** The same for consumers built on BabelQueue, whose own properties begin with `bq-`. */
  babelQueueBypass: 'bq-replay-bypass',
  sandbox: 'x-replay-sandbox',
} as const;
