/** Encoded AMQP values that only a broker has to write: request answers and their maps, arrays and ids. */
import { encode, encodeList, encodeMap, encodeSection, SECTION } from '../../shared/brokers/serviceBus/amqp.ts';

/** A map with string keys and already encoded values. */
export function encodeStringMap(entries: Record<string, Buffer>): Buffer {
  return encodeMap(Object.entries(entries).map(([key, value]) => Buffer.concat([encode.string(key), value])));
}

/** An array of timestamps, milliseconds since 1970. */
export function encodeTimestamps(times: readonly number[]): Buffer {
  return encodeArray(
    0x83,
    times.map((time) => BigInt(time)),
  );
}

/** An array of longs. */
export function encodeLongs(numbers: readonly bigint[]): Buffer {
  return encodeArray(0x81, numbers);
}

/** An array of eight-byte whole numbers of the type with this constructor code. */
function encodeArray(code: number, numbers: readonly bigint[]): Buffer {
  const items = Buffer.alloc(numbers.length * 8);
  numbers.forEach((number, index) => {
    items.writeBigInt64BE(number, index * 8);
  });
  const head = Buffer.alloc(10);
  head.writeUInt8(0xf0, 0);
  head.writeUInt32BE(5 + items.length, 1);
  head.writeUInt32BE(numbers.length, 5);
  head.writeUInt8(code, 9);
  return Buffer.concat([head, items]);
}

/**
 * A lock token as a uuid. A delivery tag holds it in the byte order of .NET's `Guid.ToByteArray`, every uuid value in
 * the order of RFC 4122 (seen on the wire); the swap is its own inverse.
 */
export function swapGuid(guid: Buffer): Buffer {
  return Buffer.from([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map((at) => guid[at] as number));
}

/** An encoded uuid value for a lock token given as a delivery tag. */
export function encodeLockToken(tag: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x98]), swapGuid(tag)]);
}

/** A whole answer message: `correlationId` is the request's encoded message id. */
export function encodeAnswer(correlationId: Buffer, properties: Record<string, Buffer>, body: Buffer): Buffer {
  const none = encode.null();
  return Buffer.concat([
    encodeSection(SECTION.properties, encodeList([none, none, none, none, none, correlationId])),
    encodeSection(SECTION.applicationProperties, encodeStringMap(properties)),
    encodeSection(SECTION.value, body),
  ]);
}

/** An encoded double. */
export function encodeDouble(value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes.writeUInt8(0x82, 0);
  bytes.writeDoubleBE(value, 1);
  return bytes;
}

/** An encoded ulong. */
export function encodeUlong(value: bigint): Buffer {
  const bytes = Buffer.alloc(9);
  bytes.writeUInt8(0x80, 0);
  bytes.writeBigUInt64BE(value, 1);
  return bytes;
}
