/**
 * Property bytes in and out of the client as they are on the wire. The client decodes headers with loss (integers change their type,
 * wide ones lose digits, text that is not UTF-8 is replaced), and what it decodes it would send.
 *
 * Leans on the inside of amqplib, whose version is pinned; everything that does is in this file, and tests hold it against real
 * servers. Two methods of one connection are wrapped: the one that reads a frame keeps the bytes of a content header beside what
 * the library makes of them, the one that writes a message writes given bytes in their place.
 */
import type { ChannelModel, Message } from 'amqplib';
import { OfficeError } from '../../errors.ts';

/** What is used of a connection of amqplib 2.3.1. */
interface Internals {
  rest: Buffer;
  readonly frameMax: number;
  sentSinceLastCheck: boolean;
  readonly channels: { readonly buffer: { write(bytes: Buffer): boolean } }[];
  recvFrame(): unknown;
  sendMessage(channel: number, method: number, fields: PublishFields, ...rest: unknown[]): boolean;
  sendContent(channel: number, body: Buffer): boolean;
}

interface PublishFields {
  readonly exchange: string;
  readonly routingKey: string;
  readonly mandatory?: boolean;
}

const HEADER_FRAME = 2;
const METHOD_FRAME = 1;
const FRAME_END = 0xce;
/** Type, channel and size in front of a frame; one byte ends it. */
const FRAME_HEAD = 7;
/** Class, weight and size of the body in front of the flags. */
const CONTENT_HEAD = 12;
const BASIC = 60;
const PUBLISH = 40;
const MANDATORY = 1;

/** One connection whose messages come and go with exact properties. */
export interface ExactConnection {
  /** The properties of a message that this connection delivered, as they were on the wire. */
  propertiesOf(message: Message): Buffer;
  /** Largest properties that fit one frame, bytes: the protocol does not divide them. */
  readonly maxPropertyBytes: number;
  /** Runs `publish`, which has to publish one message before it returns, and writes these properties instead of its own. */
  withProperties(properties: Buffer, publish: () => boolean): boolean;
}

/** Wraps a connection that was just opened. Throws `DLO_BROKER_UNAVAILABLE` when the library is not the one that was pinned. */
export function keepExact(model: ChannelModel): ExactConnection {
  const connection: unknown = model.connection;
  if (!isInternals(connection)) {
    throw new OfficeError(
      'DLO_BROKER_UNAVAILABLE',
      'amqplib is another version than the one this office was built with',
    );
  }
  const kept = new WeakMap<object, Buffer>();
  let outgoing: Buffer | undefined;
  const receive = connection.recvFrame;
  connection.recvFrame = function (this: Internals) {
    const properties = contentHeader(this.rest);
    const frame = receive.call(this);
    // Where the frame was not whole yet, the call above has called this method again.
    if (properties !== undefined && hasFields(frame)) kept.set(frame.fields, properties);
    return frame;
  };
  const send = connection.sendMessage;
  connection.sendMessage = function (this: Internals, channel, method, fields, ...rest) {
    const properties = outgoing;
    const content: unknown = rest[2];
    if (properties === undefined || !Buffer.isBuffer(content)) return send.call(this, channel, method, fields, ...rest);
    outgoing = undefined;
    this.sentSinceLastCheck = true;
    this.channels[channel]?.buffer.write(publishFrames(channel, fields, properties, content.length));
    return this.sendContent(channel, content);
  };
  return {
    propertiesOf: ({ properties }) => {
      const bytes = kept.get(properties);
      if (bytes === undefined) throw new Error('the message was not delivered by this connection');
      return bytes;
    },
    maxPropertyBytes: connection.frameMax - FRAME_HEAD - 1 - CONTENT_HEAD,
    withProperties: (properties, publish) => {
      outgoing = properties;
      try {
        return publish();
      } finally {
        outgoing = undefined;
      }
    },
  };
}

function isInternals(connection: unknown): connection is Internals {
  const names = ['recvFrame', 'sendMessage', 'sendContent'];
  return (
    typeof connection === 'object' &&
    connection !== null &&
    names.every((name) => typeof Reflect.get(connection, name) === 'function') &&
    Buffer.isBuffer(Reflect.get(connection, 'rest')) &&
    Array.isArray(Reflect.get(connection, 'channels')) &&
    typeof Reflect.get(connection, 'frameMax') === 'number'
  );
}

function hasFields(frame: unknown): frame is { readonly fields: object } {
  return typeof frame === 'object' && frame !== null && typeof Reflect.get(frame, 'fields') === 'object';
}

/** The properties in `bytes`, if these begin with a whole content header. A copy: the library lets go of its buffer. */
function contentHeader(bytes: Buffer): Buffer | undefined {
  if (bytes.length < FRAME_HEAD || bytes[0] !== HEADER_FRAME) return undefined;
  const end = FRAME_HEAD + bytes.readUInt32BE(3);
  return bytes.length > end ? Buffer.from(bytes.subarray(FRAME_HEAD + CONTENT_HEAD, end)) : undefined;
}

/** `basic.publish` and its content header; the body follows in frames of its own. */
function publishFrames(channel: number, fields: PublishFields, properties: Buffer, bodyBytes: number): Buffer {
  const exchange = Buffer.from(fields.exchange);
  const key = Buffer.from(fields.routingKey);
  const head = Buffer.alloc(6);
  head.writeUInt16BE(BASIC, 0);
  head.writeUInt16BE(PUBLISH, 2);
  const method = Buffer.concat([
    head,
    Buffer.of(exchange.length),
    exchange,
    Buffer.of(key.length),
    key,
    Buffer.of(fields.mandatory === true ? MANDATORY : 0),
  ]);
  const content = Buffer.alloc(CONTENT_HEAD);
  content.writeUInt16BE(BASIC, 0);
  content.writeBigUInt64BE(BigInt(bodyBytes), 4);
  return Buffer.concat([frame(METHOD_FRAME, channel, [method]), frame(HEADER_FRAME, channel, [content, properties])]);
}

function frame(type: number, channel: number, parts: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUInt8(type, 0);
  head.writeUInt16BE(channel, 1);
  head.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    3,
  );
  return Buffer.concat([head, ...parts, Buffer.of(FRAME_END)]);
}
