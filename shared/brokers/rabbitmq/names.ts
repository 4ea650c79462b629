/** Names on the wire: what RabbitMQ and its clients write on a message, and what a replay adds to it. */

/** Headers that the office reads. Names: RabbitMQ documentation, "Dead Letter Exchanges" and "Quorum Queues". */
export const HEADER = {
  deaths: 'x-death',
  firstDeathQueue: 'x-first-death-queue',
  firstDeathReason: 'x-first-death-reason',
  deliveryCount: 'x-delivery-count',
} as const;

/**
 * Headers that tell of a death or a delivery, or say where else a message goes. With `CC` or `BCC` left on, the default exchange
 * gives a replayed message to the queues named there, too. A delivery count that a client sends is shown to the consumer.
 */
const ABOUT_DEATH: ReadonlySet<string> = new Set([
  HEADER.deaths,
  HEADER.deliveryCount,
  'x-acquired-count',
  // Written by the .NET client when it tracks confirms: the number of a publish that is over.
  'x-dotnet-pub-seq-no',
  'x-stream-offset',
  'CC',
  'BCC',
]);
const DEATH_PREFIXES = ['x-first-death-', 'x-last-death-'] as const;

/** Headers of a replayed message. They do not begin with `x-`: that prefix is the broker's. */
export const REPLAY = {
  /** int: how often the message has been sent back. */
  count: 'dlq-replay-count',
  /** long: when it was sent back last, unix seconds. */
  at: 'dlq-replayed-at',
  /** text: the plan that sent it back. */
  id: 'dlq-replay-id',
  /** text: the number it had in the dead-letter queue. */
  of: 'dlq-replay-of',
  /** The id it had before the replay gave it a new one. */
  originalMessageId: 'dlq-original-message-id',
  /** The user it was published by, where the office publishes as another: the broker refuses a user id that is not its own. */
  originalUserId: 'dlq-original-user-id',
  /** text `1`: outside effects that already happened shall be skipped. */
  bypass: 'replay-bypass',
  /** The same for consumers built on BabelQueue. */
  babelQueueBypass: 'bq-replay-bypass',
  sandbox: 'dlq-replay-sandbox',
} as const;

/** The counter of scripts and older tools, read beside the office's own. */
export const FOREIGN_COUNT = 'x-replay-count';

/** Replaced by each replay: left over from an earlier one they would say something that is not so any more. */
const REPLACED: ReadonlySet<string> = new Set([
  REPLAY.count,
  REPLAY.at,
  REPLAY.id,
  REPLAY.of,
  REPLAY.bypass,
  REPLAY.babelQueueBypass,
  REPLAY.sandbox,
  FOREIGN_COUNT,
]);

/** Whether a replay leaves this header out. */
export function isReset(name: string): boolean {
  return ABOUT_DEATH.has(name) || REPLACED.has(name) || DEATH_PREFIXES.some((prefix) => name.startsWith(prefix));
}
