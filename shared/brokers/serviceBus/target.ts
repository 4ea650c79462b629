/**
 * Sends messages exactly as they are encoded. Nothing here sends twice: an explicit refusal is told as one, and
 * whatever is not certain is `unknown`, for the caller's journal to decide.
 */

import { errorText, isMistake, isOfficeError, OfficeError } from '../../errors.ts';
import type { EncodedMessage, ReplayTarget, SendOutcome } from '../broker.ts';
import { encode, encodeSection, SECTION } from './amqp.ts';
import { OverBudget, SERVER_BUSY } from './budget.ts';
import { refusalOf, unavailable } from './errors.ts';
import type { Namespace } from './namespace.ts';
import { openSenderLink, type SenderLink, TOO_LARGE } from './senderLink.ts';

/** What a namespace of the smallest tier takes, when the link does not say. Microsoft, "Service Bus quotas". */
const DEFAULT_MAX_BYTES = 262_144;
/** Longest wait for a turn, ms: the locks of what is to be sent run out meanwhile. */
const MAX_WAIT_MS = 5_000;

/**
 * Opens `entity` for sending. Throws `DLO_TARGET_UNAVAILABLE` when the broker refuses the link, in its words, and
 * `DLO_BROKER_UNAVAILABLE` when the broker cannot be reached.
 */
export async function openReplayTarget(namespace: Namespace, entity: string): Promise<ReplayTarget> {
  let link = await attach(namespace, entity);
  const maxBytes = link.maxBytes ?? DEFAULT_MAX_BYTES;
  return {
    maxBytes,
    batchBytes,
    async send(messages, timeoutMs) {
      if (messages.length === 0) return { kind: 'accepted' };
      const bytes = batchBytes(messages);
      if (bytes > maxBytes) {
        return { kind: 'refused-message', code: TOO_LARGE, description: `${bytes} bytes, the limit is ${maxBytes}` };
      }
      try {
        if (!link.isOpen()) {
          link.close();
          link = await attach(namespace, entity);
        }
      } catch (error) {
        return notAttached(error);
      }
      const outcome = await transfer(namespace, link, messages, timeoutMs).catch(notAttached);
      // Whatever made this link fall silent may still hold; the next send gets another one.
      if (outcome.kind === 'unknown') link.close();
      return outcome;
    },
    async close() {
      link.close();
    },
  };
}

async function transfer(
  namespace: Namespace,
  link: SenderLink,
  messages: readonly EncodedMessage[],
  timeoutMs: number,
): Promise<SendOutcome> {
  // Entering `use` keeps the connection from being closed as idle while the outcome is awaited.
  return namespace.use('take the send', async ({ budget }) => {
    try {
      await budget.enter(messages.length, Math.min(timeoutMs, MAX_WAIT_MS));
    } catch (error) {
      const code = error instanceof OverBudget ? 'over-budget' : 'closed';
      return { kind: 'refused-busy', code, description: errorText(error) };
    }
    if (!(await link.canSend(timeoutMs))) {
      return { kind: 'refused-busy', code: 'no-credit', description: 'the broker takes no transfers at the moment' };
    }
    const [first] = messages;
    const isSingle = messages.length === 1 && first !== undefined;
    const bytes = isSingle ? first : encodeBatch(messages);
    if (!link.isOpen()) {
      return { kind: 'refused-busy', code: 'link-lost', description: 'the link ended before anything was written' };
    }
    const outcome = await link.transfer(bytes, !isSingle, timeoutMs);
    if (outcome.kind === 'refused-busy' && outcome.code === SERVER_BUSY) budget.slowDown();
    return outcome;
  });
}

async function attach(namespace: Namespace, entity: string): Promise<SenderLink> {
  return namespace.use('open the target', async ({ connection }) => {
    try {
      return await openSenderLink(connection, entity);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === undefined) throw unavailable('open the target', error);
      const message = `The broker lets nobody send to "${entity}" over this connection: ${refusal.description}`;
      throw new OfficeError('DLO_TARGET_UNAVAILABLE', message, { cause: error, data: { code: refusal.code } });
    }
  });
}

/** The outcome of a send for which no link could be had: nothing was written, so nothing is unknown. Throws mistakes of the program. */
function notAttached(error: unknown): SendOutcome {
  if (isMistake(error)) throw error;
  const code = isOfficeError(error) ? String(error.data.code ?? error.code) : 'no-link';
  const kind = isOfficeError(error, 'DLO_TARGET_UNAVAILABLE') ? 'refused-target' : 'refused-busy';
  return { kind, code, description: errorText(error) };
}

/** A run of data sections, each holding one complete message; the broker takes it apart again. */
function encodeBatch(messages: readonly EncodedMessage[]): Buffer {
  return Buffer.concat(messages.map((message) => encodeSection(SECTION.data, encode.binary(message))));
}

/** Bytes that `messages` need in one transfer: one goes as it is, several get a section's head each. */
function batchBytes(messages: readonly EncodedMessage[]): number {
  if (messages.length === 1) return messages[0]?.length ?? 0;
  return messages.reduce((sum, { length }) => sum + length + (length <= 255 ? 5 : 8), 0);
}
