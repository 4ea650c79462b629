/** One sender link and the fate of what was written on it. */
import { randomUUID } from 'node:crypto';
import { type Sender, SenderEvents, type Session, SessionEvents } from 'rhea-promise';
import { errorText, isMistake } from '../../errors.ts';
import type { SendOutcome } from '../broker.ts';
import type { AmqpConnection } from './connection.ts';
import { assertStillOpen, conditionOf } from './errors.ts';
import { classifyRefusal } from './refusal.ts';

/** Message format of a transfer that holds several messages, each in a data section. Source: Service Bus clients. */
const BATCH_FORMAT = 0x80013700;
const SINGLE_FORMAT = 0;

/** An attached sender link. */
export interface SenderLink {
  /** Largest transfer in bytes, if the broker told. */
  readonly maxBytes: number | undefined;
  isOpen(): boolean;
  /** Waits until the broker takes transfers; `false` when it does not within `ms`. Nothing is written. */
  canSend(ms: number): Promise<boolean>;
  /** Writes one transfer, once, and waits for its outcome at most `ms`. Throws mistakes of the program alone: nobody knows what was written then. */
  transfer(bytes: Buffer, isBatch: boolean, ms: number): Promise<SendOutcome>;
  close(): void;
}

/** Attaches a sender link to `entity`. Throws the broker's error, or the reason of the connection's end. */
export async function openSenderLink(connection: AmqpConnection, entity: string): Promise<SenderLink> {
  await connection.authorize(entity);
  const session = await connection.createSession();
  const closed = new AbortController();
  let sender: Sender;
  try {
    const name = `dead-letter-office-${randomUUID()}`;
    sender = await session.createSender({ name, target: { address: entity }, abortSignal: connection.ended });
    assertStillOpen(sender);
  } catch (error) {
    void session.close().catch(() => {});
    throw connection.blame(error);
  }
  const pending = followDeliveries(connection, session, sender, closed.signal);
  return {
    maxBytes:
      Number.isSafeInteger(sender.maxMessageSize) && sender.maxMessageSize > 0 ? sender.maxMessageSize : undefined,
    isOpen: () => !connection.ended.aborted && sender.isOpen(),
    close() {
      closed.abort();
      void sender.close({ closeSession: true }).catch(() => {});
    },
    canSend(ms) {
      if (sender.sendable()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), ms);
        const onSendable = () => finish(true);
        const finish = (isSendable: boolean) => {
          clearTimeout(timer);
          sender.removeListener(SenderEvents.sendable, onSendable);
          resolve(isSendable);
        };
        sender.on(SenderEvents.sendable, onSendable);
      });
    },
    transfer(bytes, isBatch, ms) {
      return new Promise((resolve, reject) => {
        let id: number;
        try {
          id = sender.send(bytes, { format: isBatch ? BATCH_FORMAT : SINGLE_FORMAT }).id;
        } catch (error) {
          if (isMistake(error)) {
            reject(error);
            return;
          }
          // Thrown when the session holds as many unanswered transfers as it can, before anything is written.
          resolve({ kind: 'refused-busy', code: 'session-full', description: errorText(error) });
          return;
        }
        const timer = setTimeout(() => settle({ kind: 'unknown', description: `no answer within ${ms} ms` }), ms);
        const settle = (outcome: SendOutcome) => {
          clearTimeout(timer);
          pending.delete(id);
          resolve(outcome);
        };
        pending.set(id, settle);
      });
    },
  };
}

/** Hands each outcome that the broker tells to the one who waits for it, by delivery id. */
function followDeliveries(
  connection: AmqpConnection,
  session: Session,
  sender: Sender,
  closed: AbortSignal,
): Map<number, (outcome: SendOutcome) => void> {
  const pending = new Map<number, (outcome: SendOutcome) => void>();
  sender.on(SenderEvents.accepted, ({ delivery }) => {
    if (delivery) pending.get(delivery.id)?.({ kind: 'accepted' });
  });
  sender.on(SenderEvents.rejected, ({ delivery }) => {
    if (!delivery) return;
    const state: unknown = delivery.remote_state;
    const error =
      typeof state === 'object' && state !== null && 'error' in state ? conditionOf(state.error) : undefined;
    pending.get(delivery.id)?.(classifyRefusal(error?.condition ?? 'rejected', error?.description ?? ''));
  });
  for (const event of [SenderEvents.released, SenderEvents.modified]) {
    sender.on(event, ({ delivery }) => {
      const description = 'the broker gave the transfer back';
      if (delivery) pending.get(delivery.id)?.({ kind: 'refused-busy', code: event, description });
    });
  }
  const endAll = (why: string) => {
    for (const settle of [...pending.values()]) settle({ kind: 'unknown', description: why });
  };
  const onDetach = () => {
    const error = conditionOf(sender.error);
    const [only] = pending.values();
    // Service Bus answers a transfer that is too large by detaching; with one in flight it is clear which was meant.
    if (error?.condition === TOO_LARGE && only !== undefined && pending.size === 1) {
      only(classifyRefusal(error.condition, error.description));
    }
    endAll(`the link was detached before the outcome was told: ${error?.condition ?? 'no reason given'}`);
  };
  sender.on(SenderEvents.senderError, onDetach);
  sender.on(SenderEvents.senderClose, onDetach);
  session.on(SessionEvents.sessionError, () => endAll('the session ended before the outcome was told'));
  session.on(SessionEvents.sessionClose, () => endAll('the session ended before the outcome was told'));
  const onEnd = () => endAll('the connection ended before the outcome was told');
  connection.ended.addEventListener('abort', onEnd, { once: true, signal: closed });
  return pending;
}

/** Condition of a message or batch beyond the link's limit. */
export const TOO_LARGE = 'amqp:link:message-size-exceeded';
