/**
 * Locks active letters over a receive link of our own. The link only makes the locks; they are settled over the
 * management node, where a lock of a plain entity is good on any connection until it ends.
 */
import { type Receiver, ReceiverEvents, SessionEvents } from 'rhea-promise';
import { parseSequenceNumber, type SequenceNumber } from '../../letter.ts';
import type { LockToken } from '../broker.ts';
import { type AmqpConnection, after } from './connection.ts';
import { conditionOf } from './errors.ts';
import { ANNOTATION } from './names.ts';
import { lockTokenOfTag } from './wireValues.ts';

/** A lock as it came with a delivery. */
export interface Lock {
  readonly lock: LockToken;
  /** ms since 1970, if the broker said when it ends. */
  readonly until: number | undefined;
  /** The message id as the library decodes it: text, a number, or the bytes of a uuid or binary. */
  readonly messageId: unknown;
}

/** The session holds at most 2048 unsettled deliveries; beyond that it stalls. */
const MAX_CREDIT = 1_000;
/** After the first message the broker pushes what it has; this long a silence means that was all. */
const QUIET_MS = 150;
const DRAIN_TIMEOUT_MS = 1_000;

/**
 * Locks up to `max` active messages of the entity at `path`, waiting at most `waitMs` for the first. Throws what the
 * AMQP library throws; locks made until then end by themselves.
 */
export async function lockActive(
  connection: AmqpConnection,
  path: string,
  max: number,
  waitMs: number,
): Promise<Map<SequenceNumber, Lock>> {
  const wanted = Math.min(max, MAX_CREDIT);
  const locks = new Map<SequenceNumber, Lock>();
  let arrived = 0;
  await connection.authorize(path);
  const session = await connection.createSession();
  const closed = new AbortController();
  let receiver: Receiver | undefined;
  try {
    const signals = new Signals();
    receiver = await session.createReceiver({
      source: { address: path },
      snd_settle_mode: 0,
      rcv_settle_mode: 1,
      autoaccept: false,
      credit_window: 0,
      abortSignal: connection.ended,
    });
    const fail = () => {
      const error = receiver?.error;
      signals.fail(conditionOf(error)?.description ?? 'the receive link was detached', error);
    };
    receiver.on(ReceiverEvents.receiverClose, fail);
    receiver.on(ReceiverEvents.receiverError, fail);
    // A broker refuses a link by opening and closing it at once: both can have come before anybody listened. Unheard, the
    // refusal would pass for an empty queue.
    if (!receiver.isOpen()) fail();
    session.on(SessionEvents.sessionClose, fail);
    const onEnd = () => signals.fail('the connection ended');
    connection.ended.addEventListener('abort', onEnd, { once: true, signal: closed.signal });
    receiver.on(ReceiverEvents.receiverDrained, () => signals.notify('drained'));
    receiver.on(ReceiverEvents.message, ({ message, delivery }) => {
      arrived += 1;
      const number = numberOf(message?.message_annotations?.[ANNOTATION.sequenceNumber]);
      const until: unknown = message?.message_annotations?.[ANNOTATION.lockedUntil];
      if (number !== undefined && delivery !== undefined && Buffer.isBuffer(delivery.tag)) {
        locks.set(number, {
          lock: lockTokenOfTag(delivery.tag),
          until: until instanceof Date ? until.getTime() : undefined,
          messageId: message?.message_id,
        });
      }
      signals.notify('message');
    });
    receiver.addCredit(wanted);
    let isQuiet = !(await signals.wait('message', waitMs));
    while (!isQuiet && arrived < wanted) isQuiet = !(await signals.wait('message', QUIET_MS));
    if (arrived < wanted) {
      // Without this the broker could still lock messages for a link that nobody reads any more.
      receiver.drainCredit();
      await signals.wait('drained', DRAIN_TIMEOUT_MS);
    }
    return locks;
  } catch (error) {
    throw connection.blame(error);
  } finally {
    closed.abort();
    void (receiver?.close({ closeSession: true }) ?? session.close()).catch(() => {});
  }
}

/** Waits for the next event of a kind, or for the end. */
class Signals {
  #waiting: { event: string; done: (seen: boolean) => void; failed: (error: Error) => void } | undefined;
  #seen = new Set<string>();
  #error: Error | undefined;

  notify(event: string): void {
    if (this.#waiting?.event === event) this.#waiting.done(true);
    else this.#seen.add(event);
  }

  fail(why: string, cause?: unknown): void {
    this.#error ??= new Error(why, cause === undefined ? undefined : { cause });
    this.#waiting?.failed(this.#error);
  }

  async wait(event: string, ms: number): Promise<boolean> {
    if (this.#error !== undefined) throw this.#error;
    if (this.#seen.delete(event)) return true;
    const arrival = new Promise<boolean>((done, failed) => {
      this.#waiting = { event, done, failed };
    });
    try {
      return await Promise.race([arrival, after(ms).then(() => false)]);
    } finally {
      this.#waiting = undefined;
    }
  }
}

/** The library gives a long as a number while it is safe, else as its bytes. */
function numberOf(value: unknown): SequenceNumber | undefined {
  if (typeof value === 'number') return parseSequenceNumber(String(value));
  if (Buffer.isBuffer(value) && value.length === 8) return parseSequenceNumber(value.readBigInt64BE().toString());
  return undefined;
}
