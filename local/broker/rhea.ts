/**
 * Everything this broker leans on inside `rhea`, pinned to 3.0.5. rhea is a client library that can also listen; as a
 * broker's transport it needs help in the places below. All casts live here, and the wire tests fail when a shape
 * changes.
 *
 * - Messages of format 0 are decoded and their bytes dropped: {@link keepRawTransfers} hides the format.
 * - Outcomes are decoded and merged: `write_dispositions` joins neighbouring deliveries without comparing their
 *   outcomes, so a rejected send can be reported as accepted. Dispositions are read from the raw frame
 *   ({@link onRawDispositions}) and written one by one ({@link writeDisposition}).
 * - Frames of any size are waited for, and counts inside them are believed: {@link boundFrames} refuses both.
 * - A peer that announces tiny frames sends rhea into an endless loop: {@link acceptsFrames}.
 * - A drain is answered only while there is credit; the client then gives up on its link: {@link answerDrain}.
 */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { listItems, valueEnd } from '../../shared/serviceBus/amqp.ts';
import { checkValue } from './well-formed.ts';

/** A value with its AMQP type, as rhea's own encoder takes it. Opaque here. */
export interface RheaTyped {
  readonly type: unknown;
}

interface Performative {
  readonly role: boolean;
  readonly first: number;
  readonly last: number | undefined;
  readonly settled: boolean;
  readonly more: boolean;
  readonly aborted: boolean;
  readonly drain: boolean;
  message_format: number | undefined;
  dispatch(target: object, frame: Frame): void;
}

interface Frame {
  readonly type: number;
  readonly performative?: Performative;
  payload?: Buffer | undefined;
  /** The whole frame; set by {@link boundFrames}. */
  raw?: Buffer;
}

interface Terminus {
  readonly address: string | null | undefined;
  readonly filter: Record<string, unknown> | undefined;
  described(): RheaTyped;
}

interface Attach {
  source: Terminus | RheaTyped | null | undefined;
  target: Terminus | RheaTyped | null | undefined;
  snd_settle_mode: number;
  rcv_settle_mode: number;
  max_message_size: number | undefined;
}

/** A delivery in either direction. */
export interface RheaDelivery {
  readonly id: number;
  readonly tag: Buffer;
  readonly link: RheaLink;
  settled: boolean;
  remote_settled: boolean;
}

/** A link; `Sender` and `Receiver` as seen from the broker. */
export interface RheaLink {
  readonly name: string;
  readonly session: RheaSession;
  readonly connection: RheaConnection;
  readonly local: { readonly attach: Attach; readonly handle: number };
  readonly remote: { readonly attach: Attach };
  /** Credit not yet used up by transfers that were written. */
  credit: number;
  delivery_count: number;
  _draining: boolean;
  /** The delivery whose transfers have not all come in yet. */
  readonly _incomplete?: { settled: boolean } | undefined;
  is_open(): boolean;
  close(error?: { condition: string; description: string }): void;
  add_credit(credit: number): void;
  send(message: Buffer, tag: Buffer, format: number): RheaDelivery;
}

interface Ring {
  available(): number;
  by_id(id: number): RheaDelivery | undefined;
  get_head(): RheaDelivery | undefined;
  get_tail(): RheaDelivery | undefined;
}

/** A session and its two rings of unsettled deliveries. */
export interface RheaSession {
  readonly outgoing: {
    readonly deliveries: Ring;
    readonly next_delivery_id: number;
    readonly next_pending_delivery: number;
    readonly next_transfer_id: number;
    readonly window: number;
    available(): number;
  };
  readonly incoming: {
    readonly next_transfer_id: number;
    readonly window: number;
    on_transfer(frame: Frame, link: RheaLink): void;
  };
  on_disposition(frame: Frame): void;
  output(frame: object): void;
}

interface Transport {
  readonly header_received: object | undefined;
  readonly frame_type: number;
  readonly handler: object;
  read_complete: boolean;
  read(buffer: Buffer): number;
  peek_size(buffer: Buffer): number | undefined;
}

/** A connection accepted by the broker. */
export interface RheaConnection {
  /** Largest frame the peer takes, bytes. */
  readonly max_frame_size: number | undefined;
  readonly amqp_transport: Transport;
  readonly sasl_transport: { readonly transport: Transport } | undefined;
  accept(socket: Socket): void;
  on(event: string, listener: (context: RheaContext) => void): void;
  _register(): void;
  _disconnected(): void;
}

/** What rhea hands to an event listener; which fields are there depends on the event. */
export interface RheaContext {
  readonly session?: RheaSession;
  readonly sender?: RheaLink;
  readonly receiver?: RheaLink;
  readonly delivery?: RheaDelivery;
  readonly message?: unknown;
  readonly format?: number;
  readonly error?: unknown;
}

interface Container {
  readonly sasl_server_mechanisms: Record<string, () => { outcome: boolean | undefined; start(): void }>;
  create_connection(options: object): RheaConnection;
}

interface Rhea {
  create_container(options: object): Container;
  readonly message: {
    accepted(): { described(): RheaTyped };
    rejected(fields: { error: { condition: string; description: string } }): { described(): RheaTyped };
  };
}

const load = createRequire(import.meta.url);
const rhea = load('rhea') as Rhea;
const frames = load('rhea/lib/frames.js') as {
  read_frame(buffer: Buffer): Frame;
  disposition(fields: object): object;
  flow(fields: object): object;
};

/** Largest frame this broker takes and announces, bytes. */
export const MAX_FRAME_SIZE = 65_536;
const FRAME_HEAD = 8;

/** The container that owns a broker's connections, with the two SASL mechanisms Service Bus clients ask for. */
export function createContainer(id: string): Container {
  const container = rhea.create_container({
    id,
    require_sasl: true,
    sender_options: { autosettle: false, treat_modified_as_released: false },
    receiver_options: { autoaccept: false, autosettle: false, credit_window: 0 },
    max_frame_size: MAX_FRAME_SIZE,
    idle_time_out: 120_000,
    tcp_no_delay: true,
  });
  // Neither proves anything: the proof is the token put over $cbs.
  for (const name of ['ANONYMOUS', 'MSSBCBS']) {
    container.sasl_server_mechanisms[name] = () => ({
      outcome: undefined,
      start() {
        this.outcome = true;
      },
    });
  }
  return container;
}

/** A connection that accepts `socket`, with its frames bounded. */
export function acceptConnection(container: Container, socket: Socket): RheaConnection {
  const connection = container.create_connection({
    container_id: 'dead-letter-office',
    max_frame_size: MAX_FRAME_SIZE,
    idle_time_out: 120_000,
    reconnect: false,
  });
  boundFrames(connection.amqp_transport);
  connection.accept(socket);
  if (connection.sasl_transport) boundFrames(connection.sasl_transport.transport);
  return connection;
}

/** Reads frames as rhea does, but keeps each frame's bytes and refuses one of an impossible size. */
function boundFrames(transport: Transport): void {
  const { read } = transport;
  transport.read = (buffer) => {
    let at = 0;
    if (!transport.header_received) {
      if (buffer.length < FRAME_HEAD) return 0;
      at = read.call(transport, buffer.subarray(0, FRAME_HEAD));
    }
    while (buffer.length - at >= FRAME_HEAD && !transport.read_complete) {
      const size = frameSize(buffer, at);
      if (buffer.length < at + size) break;
      const raw = buffer.subarray(at, at + size);
      const performative = (raw[4] as number) * 4;
      if (performative < size) checkValue(raw, performative);
      const frame = frames.read_frame(raw);
      if (frame.type !== transport.frame_type) throw new Error(`unexpected frame type ${frame.type}`);
      at += size;
      if (!frame.performative) continue;
      frame.raw = raw;
      frame.performative.dispatch(transport.handler, frame);
    }
    return at;
  };
  transport.peek_size = (buffer) =>
    transport.header_received && buffer.length >= 4 ? frameSize(buffer, 0) : undefined;
}

function frameSize(buffer: Buffer, at: number): number {
  const size = buffer.readUInt32BE(at);
  if (size < FRAME_HEAD || size > MAX_FRAME_SIZE) throw new Error(`a frame claims ${size} bytes`);
  return size;
}

/** Whether the peer takes frames of the smallest size AMQP allows (part 2, 2.7.1). */
export function acceptsFrames(connection: RheaConnection): boolean {
  return (connection.max_frame_size ?? MAX_FRAME_SIZE) >= 512;
}

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

/** Deliveries of `link` that wait in the session to be written. rhea takes credit off only when it writes. */
export function unwritten(link: RheaLink): number {
  const { deliveries, next_delivery_id: end, next_pending_delivery: start } = link.session.outgoing;
  let count = 0;
  for (let id = start; id < end; id++) if (deliveries.by_id(id)?.link === link) count++;
  return count;
}

/** Answers a drain: gives all credit back and says so, also when there was none left. */
export function answerDrain(link: RheaLink): void {
  const { incoming, outgoing } = link.session;
  link.delivery_count += link.credit;
  link.credit = 0;
  link._draining = false;
  link.session.output(
    frames.flow({
      next_incoming_id: incoming.next_transfer_id >>> 0,
      incoming_window: incoming.window,
      next_outgoing_id: outgoing.next_transfer_id >>> 0,
      outgoing_window: outgoing.window,
      handle: link.local.handle,
      delivery_count: link.delivery_count,
      link_credit: 0,
      drain: true,
    }),
  );
}

/** Address of the terminus the peer named, `undefined` when it named none. */
export function remoteAddress(link: RheaLink, end: 'source' | 'target'): string | undefined {
  const terminus = link.remote.attach[end] as Terminus | null | undefined;
  return terminus?.address ?? undefined;
}

/** Names of the filters a peer put on its source. */
export function sourceFilters(link: RheaLink): string[] {
  return Object.keys((link.remote.attach.source as Terminus | null | undefined)?.filter ?? {});
}

/** Answers an attach with the peer's own terms. `maxMessageBytes` only on a link the broker receives on. */
export function confirmAttach(link: RheaLink, maxMessageBytes?: number): void {
  const { local, remote } = link;
  for (const end of ['source', 'target'] as const) {
    const terminus = remote.attach[end] as Terminus | null | undefined;
    if (terminus) local.attach[end] = terminus.described();
  }
  local.attach.snd_settle_mode = remote.attach.snd_settle_mode;
  local.attach.rcv_settle_mode = remote.attach.rcv_settle_mode;
  if (maxMessageBytes !== undefined) local.attach.max_message_size = maxMessageBytes;
}

/** Refuses an attach: the answer names no terminus, and a detach with the error follows (AMQP 1.0, part 2, 2.6.3). */
export function refuseAttach(link: RheaLink, error: { condition: string; description: string }): void {
  link.local.attach.source = null;
  link.local.attach.target = null;
  link.close({ condition: error.condition, description: error.description });
}
