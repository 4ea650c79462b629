/** Deliveries in both directions: their bytes, their outcomes as bytes, and the broker's own words about them. */
import { listItems, valueEnd } from '../../shared/brokers/serviceBus/amqp.ts';
import {
  frames,
  type Performative,
  type RheaContext,
  type RheaDelivery,
  type RheaLink,
  type RheaSession,
  rhea,
} from './rhea.ts';

/** The message format under which rhea hands on the bytes of an ordinary message; no real format. */
const HIDDEN_FORMAT = 0x7fff_ffff;

/** A transfer that has come in completely. */
export interface RawTransfer {
  readonly link: RheaLink;
  readonly delivery: RheaDelivery;
  readonly bytes: Buffer;
  readonly format: number;
  /** The sender took it back. */
  readonly aborted: boolean;
  /** It was longer than its link allows; `bytes` then holds only its beginning. */
  readonly oversize: boolean;
}

/** Makes rhea hand on the bytes of every message, and drop what goes beyond the limit of one message on its link. */
export function keepRawTransfers(session: RheaSession, maxBytesOf: (link: RheaLink) => number): void {
  const { incoming } = session;
  const original = incoming.on_transfer;
  incoming.on_transfer = (frame, link) => {
    const performative = frame.performative as Performative;
    frame.payload ??= Buffer.alloc(0);
    let progress = link._incomplete && transfers.get(link);
    if (!progress) {
      progress = { format: performative.message_format ?? 0, length: 0, aborted: false, maxBytes: maxBytesOf(link) };
      transfers.set(link, progress);
    }
    progress.length += frame.payload.length;
    progress.aborted ||= performative.aborted;
    if (link._incomplete && progress.length > progress.maxBytes) frame.payload = Buffer.alloc(0);
    performative.message_format = HIDDEN_FORMAT;
    original.call(incoming, frame, link);
  };
}

const transfers = new WeakMap<RheaLink, { format: number; length: number; aborted: boolean; maxBytes: number }>();

/** The transfer behind a `message` event. */
export function rawTransfer(context: RheaContext): RawTransfer {
  const link = context.receiver as RheaLink;
  const progress = transfers.get(link);
  if (!progress || !Buffer.isBuffer(context.message)) throw new Error('rhea handed on a message without its bytes');
  return {
    link,
    delivery: context.delivery as RheaDelivery,
    bytes: context.message,
    format: progress.format,
    aborted: progress.aborted,
    oversize: progress.length > progress.maxBytes,
  };
}

/** What a receiver says about one delivery; `state` is the encoded outcome, absent when it only settles. */
export interface RawDisposition {
  readonly delivery: RheaDelivery;
  readonly state: Buffer | undefined;
  readonly settled: boolean;
}

/**
 * Replaces rhea's handling of dispositions. The range is cut to the deliveries that exist, so a hostile range of four
 * billion ids costs nothing. What senders say about their own deliveries needs no answer: those are settled already.
 */
export function onRawDispositions(session: RheaSession, listener: (dispositions: RawDisposition[]) => void): void {
  session.on_disposition = (frame) => {
    const { role, first, last, settled } = frame.performative as Performative;
    const { deliveries } = session.outgoing;
    const oldest = deliveries.get_head();
    const newest = deliveries.get_tail();
    if (!role || !oldest || !newest) return;
    const state = stateOf(frame.raw as Buffer);
    const found: RawDisposition[] = [];
    for (let id = Math.max(first, oldest.id); id <= Math.min(last ?? first, newest.id); id++) {
      const delivery = deliveries.by_id(id);
      if (delivery?.id === id && !delivery.settled) found.push({ delivery, state, settled });
    }
    listener(found);
  };
}

/** The delivery state of a disposition frame: the fifth field of the performative. */
function stateOf(raw: Buffer): Buffer | undefined {
  const at = (raw[4] as number) * 4;
  const fields = listItems(raw, valueEnd(raw, at + 1));
  const state = fields[4];
  return state === undefined || state[0] === 0x40 ? undefined : state;
}

/** How a delivery ended, for a disposition of the broker. */
export type Outcome = { readonly condition: string; readonly description: string } | 'accepted';

/** Settles deliveries that follow each other on the wire with one outcome. */
export function writeDisposition(deliveries: readonly RheaDelivery[], asReceiver: boolean, outcome: Outcome): void {
  const first = deliveries[0];
  if (!first) return;
  const { message } = rhea;
  const state = outcome === 'accepted' ? message.accepted() : message.rejected({ error: outcome });
  first.link.session.output(
    frames.disposition({
      role: asReceiver,
      first: first.id,
      last: (deliveries.at(-1) as RheaDelivery).id,
      settled: true,
      state: state.described(),
    }),
  );
  for (const delivery of deliveries) forget(delivery);
}

/**
 * Marks a delivery as settled on both sides without a word to the peer. Needed after every settlement: a client in
 * settle mode "second" never sends its own final `settled`, and the ring of 2,048 deliveries would fill up.
 */
export function forget(delivery: RheaDelivery): void {
  delivery.settled = true;
  delivery.remote_settled = true;
  delivery.link.connection._register();
}

/** Forgets what a closed link has not settled. In a session that lives on it would block the ring for all others. */
export function forgetAll(link: RheaLink): void {
  const { deliveries } = link.session.outgoing;
  const oldest = deliveries.get_head();
  const newest = deliveries.get_tail();
  if (!oldest || !newest) return;
  for (let id = oldest.id; id <= newest.id; id++) {
    const delivery = deliveries.by_id(id);
    if (delivery?.link === link) forget(delivery);
  }
}

/** Deliveries of `link` that wait in the session to be written. rhea takes credit off only when it writes. */
export function unwritten(link: RheaLink): number {
  const { deliveries, next_delivery_id: end, next_pending_delivery: start } = link.session.outgoing;
  let count = 0;
  for (let id = start; id < end; id++) if (deliveries.by_id(id)?.link === link) count++;
  return count;
}
