/**
 * A message of RabbitMQ in one piece, as it is kept in custody and passed on: where it was published, its properties as they stood
 * in the content header, and its body. The protocol has no such form: a message travels as three kinds of frames.
 *
 *     version (1) | length of exchange (1) | exchange | length of key (1) | key | length of properties (4) | properties | body
 */
import { FieldFormatError } from './fieldTable.ts';

/** A message taken apart. `exchange` and `routingKey` are those of its last publishing: to the dead-letter exchange. */
export interface Envelope {
  readonly exchange: Buffer;
  readonly routingKey: Buffer;
  /** As in the content header: flags, then fields. */
  readonly properties: Buffer;
  readonly body: Buffer;
}

const VERSION = 1;

/** Puts a message together. Throws RangeError where a name has more than 255 bytes, which the protocol does not allow either. */
export function sealEnvelope({ exchange, routingKey, properties, body }: Envelope): Buffer {
  if (exchange.length > 255 || routingKey.length > 255) throw new RangeError('names have at most 255 bytes');
  const size = Buffer.alloc(4);
  size.writeUInt32BE(properties.length);
  const names = [Buffer.of(exchange.length), exchange, Buffer.of(routingKey.length), routingKey];
  return Buffer.concat([Buffer.of(VERSION), ...names, size, properties, body]);
}

/** Takes a message apart. Throws {@link FieldFormatError} for what {@link sealEnvelope} has not made. */
export function openEnvelope(message: Buffer): Envelope {
  let at = 0;
  const take = (count: number): Buffer => {
    if (at + count > message.length) throw new FieldFormatError('the message is cut short');
    at += count;
    return message.subarray(at - count, at);
  };
  const version = take(1).readUInt8();
  if (version !== VERSION) throw new FieldFormatError(`version ${version} is not known`);
  const exchange = take(take(1).readUInt8());
  const routingKey = take(take(1).readUInt8());
  const properties = take(take(4).readUInt32BE());
  return { exchange, routingKey, properties, body: message.subarray(at) };
}
