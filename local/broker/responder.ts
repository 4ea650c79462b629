/** Links for requests: a client sends to `$cbs` or `<entity>/$management` and is answered on a link of its own. */
import { encode } from '../../shared/brokers/serviceBus/amqp.ts';
import { putToken } from './cbs.ts';
import type { Clock } from './clock.ts';
import { forget, type RawTransfer, writeDisposition } from './delivery.ts';
import { encodeAnswer } from './encoding.ts';
import { asBrokerError, BrokerError } from './errors.ts';
import type { FaultEvent } from './faults.ts';
import { locksOf, manage, rightFor, settlementKind } from './management.ts';
import type { Node } from './namespace.ts';
import type { Peer } from './peer.ts';
import { type Request, readRequest } from './request.ts';
import type { RheaLink } from './rhea.ts';
import type { Right } from './sas.ts';

/**
 * How many requests a client may have under way. Enough for what one does at once: a client that finds no credit looks again
 * after a second, and once only (`waitForSendable` of the JavaScript client).
 */
const CREDIT = 1000;

/** How one kind of request is carried out and answered. */
export interface Service {
  events(request: Request): FaultEvent[];
  /** Carries the request out; answers the whole encoded message to send back. Throws what `refuse` can tell. */
  answer(request: Request): Buffer;
  refuse(request: Request, error: BrokerError): Buffer;
  /** Lets the locks be lost that a well-formed request names. */
  loseLocks(request: Request): void;
}

export class Responder {
  readonly #link: RheaLink;
  readonly #service: Service;
  readonly #peer: Peer;

  constructor(link: RheaLink, service: Service, peer: Peer) {
    this.#link = link;
    this.#service = service;
    this.#peer = peer;
    link.add_credit(CREDIT);
  }

  /**
   * Accepts the transfer, carries the request out and answers it. What cannot be answered is rejected, and one that is longer
   * than the link allows ends the link, as in the service: clients do not look at the outcome of a request.
   */
  receive(transfer: RawTransfer): void {
    const { delivery, bytes, aborted, oversize } = transfer;
    if (this.#link.credit < CREDIT / 2) this.#link.add_credit(CREDIT - this.#link.credit);
    if (aborted) {
      forget(delivery);
      return;
    }
    let request: Request;
    try {
      if (oversize)
        throw new BrokerError('amqp:link:message-size-exceeded', 'The request is larger than the link allows.');
      request = readRequest(bytes);
      this.#peer.checkReply(request.replyTo);
    } catch (caught) {
      this.#refuse(delivery, asBrokerError(caught), oversize);
      return;
    }
    if (delivery.remote_settled) forget(delivery);
    else writeDisposition([delivery], true, 'accepted');
    this.#peer.broker.faults.perform(eventsOf(this.#service, request), {
      act: () => this.#service.answer(request),
      succeed: (answer) => this.#peer.reply(request.replyTo, answer),
      fail: (error) => this.#peer.reply(request.replyTo, this.#service.refuse(request, error)),
      forget: () => {},
      drop: () => this.#peer.drop(),
      loseLocks: () => this.#service.loseLocks(request),
      toError: asBrokerError,
    });
  }

  /** Tells by the outcome of the transfer; where that is settled already, by the end of the link. */
  #refuse(delivery: RawTransfer['delivery'], { condition, message }: BrokerError, endsLink: boolean): void {
    const isSettled = delivery.remote_settled;
    if (isSettled) forget(delivery);
    else writeDisposition([delivery], true, { condition, description: message });
    if (endsLink || isSettled) this.#link.close({ condition, description: message });
  }
}

/** The events of a request whose arguments may be malformed; that is then said by the answer. */
function eventsOf(service: Service, request: Request): FaultEvent[] {
  try {
    return service.events(request);
  } catch {
    return [];
  }
}

/**
 * The `$management` node of an entity, for the connection that `caller` stands for. `authorize` throws unless it has the
 * right. Property names are in camel case here, and in dashes at `$cbs`.
 */
export function managementService(
  node: Node,
  clock: Clock,
  caller: object,
  authorize: (right: Right) => void,
): Service {
  const entity = node.kind === 'topic' ? node.destination.entity : node.entity;
  const target = {
    entity,
    caller,
    isTopic: node.kind === 'topic',
    rules: node.kind === 'subscription' ? node.rules : undefined,
  };
  return {
    events(request) {
      const operation = settlementKind(request);
      const events: FaultEvent[] = [{ at: 'manage', entity: entity.path, operation: request.operation }];
      if (operation) events.push({ at: 'settle', entity: entity.path, operation, via: 'management' });
      return events;
    },
    answer(request) {
      authorize(rightFor(request.operation));
      const { status, body } = manage(target, request, clock.now());
      const statusDescription = encode.string(status === 200 ? 'OK' : 'No Content');
      return encodeAnswer(request.messageId, { statusCode: encode.int(status), statusDescription }, body);
    },
    loseLocks(request) {
      const { tokens, session } = locksOf(request);
      entity.loseLocks(tokens);
      if (session !== undefined) entity.loseSession(session);
    },
    refuse: (request, error) =>
      encodeAnswer(
        request.messageId,
        {
          statusCode: encode.int(error.status),
          statusDescription: encode.string(error.message),
          errorCondition: encode.symbol(error.condition),
        },
        encode.null(),
      ),
  };
}

/** The `$cbs` node of a connection. */
export function cbsService(peer: Peer): Service {
  return {
    events: () => [],
    loseLocks: () => {},
    answer(request) {
      putToken(request, peer);
      const accepted = { 'status-code': encode.int(202), 'status-description': encode.string('Accepted') };
      return encodeAnswer(request.messageId, accepted, encode.null());
    },
    refuse: (request, error) =>
      encodeAnswer(
        request.messageId,
        {
          'status-code': encode.int(error.status),
          'status-description': encode.string(error.message),
          'error-condition': encode.symbol(error.condition),
        },
        encode.null(),
      ),
  };
}
