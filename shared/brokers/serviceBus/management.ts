/**
 * Requests to an entity's management node over a link of our own. The client library could send most of them, but
 * it decodes the messages in the answers, which loses their AMQP types, and settles one lock token a request.
 *
 * Operations and fields: Microsoft, "AMQP 1.0 in Azure Service Bus: request-response-based operations".
 */
import { randomUUID } from 'node:crypto';
import { RequestResponseLink } from '@azure/core-amqp';
import { ReceiverEvents, SenderEvents, SessionEvents, types } from 'rhea-promise';
import type { SequenceNumber } from '../../letter.ts';
import { type EncodedMessage, encodedMessage, type LockToken, lockToken } from '../broker.ts';
import { type AmqpConnection, isAbort, type Wire } from './connection.ts';
import { assertStillOpen, codeOf } from './errors.ts';
import { int64, tokenBytes, uuidText } from './wireValues.ts';

/** A message from the management node, with its lock when it was locked. */
export interface Answered {
  readonly message: EncodedMessage;
  readonly lock: LockToken | undefined;
}

/** What a lock token is settled with; the misspelling is the broker's. */
export type Disposition = 'completed' | 'abandoned' | 'defered';

/** The management node of one entity. All calls throw what the AMQP library throws. */
export interface Management {
  isOpen(): boolean;
  /** Encoded messages from number `from` upwards; the broker gives fewer than `count` as it likes, none at the end. */
  peek(from: SequenceNumber, count: number, withBody: boolean): Promise<EncodedMessage[]>;
  /** Locks deferred messages. All or none: one that is locked, absent or not deferred refuses the request. */
  receive(numbers: readonly SequenceNumber[]): Promise<Answered[]>;
  settle(locks: readonly LockToken[], disposition: Disposition): Promise<void>;
  close(): void;
}

const UUID = 0x98;
const LONG = 0x81;
const LOCK_MODE = 1;

/** Longer than the two detaches of one pair of links lie apart. */
const DETACH_GRACE_MS = 100;

/** Opens the links to `path`/$management on `connection`. */
export async function openManagement(connection: AmqpConnection, path: string, wire: Wire): Promise<Management> {
  const address = `${path}/$management`;
  await connection.authorize(address);
  const over = new AbortController();
  const ended = AbortSignal.any([connection.ended, over.signal]);
  const replyTo = randomUUID();
  const session = await connection.createSession();
  const end = (why: string) => over.abort(new Error(why));
  const close = (why: string) => {
    end(why);
    // The broker detaches both links at once when the entity is gone. A session that ends between the two would have the
    // library answer the second on a channel that is no more, which costs the connection and everybody on it.
    setTimeout(() => void session.close().catch(() => {}), DETACH_GRACE_MS).unref();
  };
  session.on(SessionEvents.sessionClose, () => end('the session ended'));
  session.on(SessionEvents.sessionError, () => end('the session ended'));
  let link: RequestResponseLink;
  try {
    const options = { abortSignal: ended };
    const sender = await session.createSender({ target: { address }, ...options });
    const source = { source: { address }, target: { address: replyTo }, name: replyTo };
    const receiver = await session.createReceiver({ ...source, ...options });
    // The broker detaches links that were idle for ten minutes; requests on them would wait for nothing.
    for (const event of [SenderEvents.senderClose, SenderEvents.senderError]) {
      sender.on(event, () => close('the management link was detached'));
    }
    for (const event of [ReceiverEvents.receiverClose, ReceiverEvents.receiverError]) {
      receiver.on(event, () => close('the management link was detached'));
    }
    for (const one of [sender, receiver]) assertStillOpen(one);
    link = new RequestResponseLink(session, sender, receiver);
  } catch (error) {
    close('the management link could not be opened');
    throw connection.blame(error);
  }

  async function request(operation: string, body: Record<string, unknown>): Promise<unknown> {
    // Claims end after an hour or so; asking here keeps a busy link alive.
    await connection.authorize(address);
    const message = {
      body,
      message_id: randomUUID(),
      reply_to: replyTo,
      application_properties: { operation: `com.microsoft:${operation}`, 'com.microsoft:tracking-id': randomUUID() },
    };
    try {
      const options = { abortSignal: ended, timeoutInMs: wire.operationTimeoutMs, requestName: operation };
      return (await link.sendRequest(message, options)).body;
    } catch (error) {
      // After silence nobody knows what else the link has lost; the next request opens another one.
      if (codeOf(error) === 'OperationTimeoutError') close('the management node does not answer');
      throw isAbort(error) ? ended.reason : error;
    }
  }

  return {
    isOpen: () => !ended.aborted && link.isOpen(),
    close: () => close('the management link was closed'),
    async peek(from, count, withBody) {
      const body = {
        'from-sequence-number': types.wrap_long(int64(from)),
        'message-count': types.wrap_int(count),
        ...(withBody ? {} : { 'omit-message-body': types.wrap_boolean(true) }),
      };
      try {
        return messagesIn(await request('peek-message', body)).map((answer) => answer.message);
      } catch (error) {
        if (codeOf(error) === 'MessageNotFoundError') return [];
        throw error;
      }
    },
    async receive(numbers) {
      const body = {
        'sequence-numbers': types.wrap_array(numbers.map(int64), LONG, undefined),
        'receiver-settle-mode': types.wrap_uint(LOCK_MODE),
      };
      return messagesIn(await request('receive-by-sequence-number', body));
    },
    async settle(locks, disposition) {
      const body = {
        'disposition-status': types.wrap_string(disposition),
        'lock-tokens': types.wrap_array(locks.map(tokenBytes), UUID, undefined),
      };
      await request('update-disposition', body);
    },
  };
}

/** The messages of an answer; an answer without content (204) has none. */
function messagesIn(body: unknown): Answered[] {
  if (typeof body !== 'object' || body === null || !('messages' in body) || !Array.isArray(body.messages)) return [];
  return body.messages.map((item: Record<string, unknown>) => {
    const { message, 'lock-token': lock } = item;
    if (!Buffer.isBuffer(message)) throw new Error('the management node answered with something that is no message');
    return { message: encodedMessage(message), lock: Buffer.isBuffer(lock) ? lockToken(uuidText(lock)) : undefined };
  });
}
