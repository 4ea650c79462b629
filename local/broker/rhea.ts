/**
 * What this broker leans on inside `rhea`, pinned to 3.0.5: the shapes, and the only casts. rhea is a client library that
 * can also listen; as a broker's transport it needs help in the places below. The wire tests fail when a shape changes.
 *
 * - Messages of format 0 are decoded and their bytes dropped: `keepRawTransfers` hides the format.
 * - Outcomes are decoded and merged: `write_dispositions` joins neighbouring deliveries without comparing their
 *   outcomes, so a rejected send can be reported as accepted. Dispositions are read from the raw frame
 *   (`onRawDispositions`) and written one by one (`writeDisposition`).
 * - Frames of any size are waited for, and counts inside them are believed: `acceptConnection` refuses both.
 * - A peer that announces tiny frames sends rhea into an endless loop: `acceptsFrames`.
 * - A link is opened before anybody is asked: `waitForSession` takes that back and opens it when there is a session.
 * - A drain is answered only while there is credit, and the client then gives up on its link: `answerDrain`.
 */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';

/** A value with its AMQP type, as rhea's own encoder takes it. Opaque here. */
export interface RheaTyped {
  readonly type: unknown;
}

export interface Performative {
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

export interface Frame {
  readonly type: number;
  readonly performative?: Performative;
  payload?: Buffer | undefined;
  /** The whole frame; set while it is read. */
  raw?: Buffer;
}

export interface Terminus {
  readonly address: string | null | undefined;
  filter: Record<string, unknown> | undefined;
  described(): RheaTyped;
}

interface Attach<End> {
  source: End | null | undefined;
  target: End | null | undefined;
  snd_settle_mode: number;
  rcv_settle_mode: number;
  max_message_size: number | undefined;
  properties: Record<string, unknown> | undefined;
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
  readonly local: { readonly attach: Attach<RheaTyped>; readonly handle: number };
  readonly remote: { readonly attach: Attach<Terminus> };
  /** What is open, and how often that is still to be written. */
  readonly state: { local_open: boolean; open_requests: number };
  /** Credit not yet used up by transfers that were written. */
  credit: number;
  delivery_count: number;
  _draining: boolean;
  /** The delivery whose transfers have not all come in yet. */
  readonly _incomplete?: { settled: boolean } | undefined;
  is_open(): boolean;
  open(): void;
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

export interface Transport {
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

export interface Container {
  readonly sasl_server_mechanisms: Record<string, () => { outcome: boolean | undefined; start(): void }>;
  create_connection(options: object): RheaConnection;
}

interface Rhea {
  create_container(options: object): Container;
  readonly types: { wrap_long(bytes: Buffer): RheaTyped };
  readonly message: {
    accepted(): { described(): RheaTyped };
    rejected(fields: { error: { condition: string; description: string } }): { described(): RheaTyped };
  };
}

const load = createRequire(import.meta.url);
/** rhea itself. */
export const rhea = load('rhea') as Rhea;
/** Its frame codec. */
export const frames = load('rhea/lib/frames.js') as {
  read_frame(buffer: Buffer): Frame;
  disposition(fields: object): object;
  flow(fields: object): object;
};
