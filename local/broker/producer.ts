/** A link on which a client sends messages to a queue or topic. */
import { randomUUID } from 'node:crypto';
import { forget, type RawTransfer, writeDisposition } from './delivery.ts';
import { asBrokerError, BrokerError } from './errors.ts';
import { keysOfBatch, messagesOfBatch, receiveMessage } from './message.ts';
import type { Destination } from './namespace.ts';
import type { Peer } from './peer.ts';
import type { RheaLink } from './rhea.ts';

const SINGLE = 0;
const BATCH = 0x80013700;
/** How many sends a client may have under way. */
const CREDIT = 1000;

export class Producer {
  readonly #link: RheaLink;
  readonly #destination: Destination;
  readonly #peer: Peer;

  constructor(link: RheaLink, destination: Destination, peer: Peer) {
    this.#link = link;
    this.#destination = destination;
    this.#peer = peer;
    link.add_credit(CREDIT);
  }

  /** Stores what came in, all of it or nothing, and answers. */
  receive(transfer: RawTransfer): void {
    const { delivery } = transfer;
    if (this.#link.credit < CREDIT / 2) this.#link.add_credit(CREDIT - this.#link.credit);
    if (transfer.aborted) {
      forget(delivery);
      return;
    }
    const { broker } = this.#peer;
    broker.faults.perform([{ at: 'send', entity: this.#destination.path }], {
      act: () => this.#store(transfer),
      succeed: () => this.#answer(transfer, undefined),
      fail: (error) => this.#answer(transfer, error),
      forget: () => forget(delivery),
      drop: () => this.#peer.drop(),
      toError: asBrokerError,
    });
  }

  #answer({ delivery }: RawTransfer, error: BrokerError | undefined): void {
    if (!this.#link.is_open()) return;
    // A sender that settled its transfer beforehand wants no answer.
    if (delivery.remote_settled) forget(delivery);
    else {
      writeDisposition(
        [delivery],
        true,
        error ? { condition: error.condition, description: error.message } : 'accepted',
      );
    }
  }

  #store({ bytes, format, oversize }: RawTransfer): void {
    const { maxMessageBytes } = this.#peer.broker;
    if (oversize || bytes.length > maxMessageBytes) {
      throw new BrokerError(
        'amqp:link:message-size-exceeded',
        `The message is larger than the ${maxMessageBytes} bytes '${this.#destination.path}' allows.`,
      );
    }
    if (format !== SINGLE && format !== BATCH) {
      throw new BrokerError('amqp:not-implemented', `The message format 0x${format.toString(16)} is not supported.`);
    }
    const arrivals = (format === BATCH ? messagesOfBatch(bytes) : [bytes]).map((encoded) =>
      receiveMessage(encoded, () => randomUUID().replaceAll('-', '')),
    );
    this.#destination.store(arrivals, format === BATCH ? keysOfBatch(bytes) : undefined);
  }
}
