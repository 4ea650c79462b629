/**
 * Numbers for messages. A partitioned entity numbers each partition on its own, and the partition stands in the top 16
 * bits of every number (Service Bus documentation, message sequencing), beyond what a JavaScript number holds.
 */
import { BrokerError } from './errors.ts';
import type { Arrival, Keys } from './message.ts';

const BITS = 48n;
/** The service does not say how it names partitions; these put every number beyond 2^53, where careless readers round. */
const FIRST_PARTITION = 33;

/** The partition a sequence number belongs to; 0 for a number of an entity that has none. */
export function partitionOf(sequenceNumber: bigint): number {
  return Number(sequenceNumber >> BITS);
}

/** Place of a number within its partition. */
export function rankOf(sequenceNumber: bigint): number {
  return Number(BigInt.asUintN(Number(BITS), sequenceNumber));
}

export class Numbering {
  readonly #partitions: number;
  readonly #last: number[];
  #turn = 0;

  /** `partitions`: how many; 0 for an entity that is not partitioned. */
  constructor(partitions: number) {
    this.#partitions = partitions;
    this.#last = new Array<number>(Math.max(1, partitions)).fill(0);
  }

  /** The next number in the partition of a key; without a key the partitions take turns. */
  next(key: string | undefined): bigint {
    if (this.#partitions === 0) return this.#take(0);
    return this.#take(key === undefined ? this.#turn++ % this.#partitions : hash(key) % this.#partitions);
  }

  /** The next number in the partition of a number. */
  nextBeside(sequenceNumber: bigint): bigint {
    return this.#take(this.#partitions === 0 ? 0 : partitionOf(sequenceNumber) - FIRST_PARTITION);
  }

  #take(index: number): bigint {
    const rank = (this.#last[index] as number) + 1;
    this.#last[index] = rank;
    return this.#partitions === 0 ? BigInt(rank) : (BigInt(index + FIRST_PARTITION) << BITS) | BigInt(rank);
  }
}

/** The key that decides about the partition. Where both are there they must be the same, so the order is no matter. */
export function keyOf({ sessionId, partitionKey }: Keys): string | undefined {
  return sessionId ?? partitionKey;
}

/**
 * Throws unless a batch can be stored in one partition: all its messages have one key or none has, and the envelope
 * says the same. With duplicate detection the message id is the key of a message that has no other.
 */
export function checkBatch(arrivals: readonly Arrival[], envelope: Keys, path: string, byMessageId: boolean): void {
  const keys = new Set(arrivals.map((arrival) => keyOf(arrival) ?? (byMessageId ? arrival.messageId : undefined)));
  if (keys.size > 1) {
    throw new BrokerError(
      'amqp:not-allowed',
      `A batch sent to the partitioned entity '${path}' needs one session id or partition key for all its messages.`,
    );
  }
  const first = arrivals[0];
  if (first && keyOf(envelope) !== keyOf(first)) {
    throw new BrokerError(
      'amqp:not-allowed',
      `The envelope of a batch sent to the partitioned entity '${path}' must carry the key of its messages.`,
    );
  }
}

/** Throws unless all the numbers belong to one partition (the service's limit for receiving by number). */
export function checkOnePartition(numbers: readonly bigint[]): void {
  const first = numbers[0];
  if (first === undefined || numbers.every((number) => partitionOf(number) === partitionOf(first))) return;
  throw new BrokerError(
    'amqp:not-allowed',
    'Receiving a batch of sequence numbers from different partitions is not supported.',
  );
}

/** FNV-1a, 32 bits: spreads keys evenly enough and is the same in every run. */
function hash(key: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(key)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}
