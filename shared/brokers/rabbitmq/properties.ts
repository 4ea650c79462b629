/**
 * The properties of a message as they stand in its content header: two bytes of flags, then one field for each flag. They are
 * kept as bytes; what a replay does not change goes back as it came.
 *
 * Source: AMQP 0-9-1, part 2, section 4.2.6 (the content header) and the class `basic`.
 */
import { FieldFormatError, fieldsOf, type RawField } from './fieldTable.ts';

/** The properties in the order of their flags, from the highest bit on. */
const ORDER = [
  'contentType',
  'contentEncoding',
  'headers',
  'deliveryMode',
  'priority',
  'correlationId',
  'replyTo',
  'expiration',
  'messageId',
  'timestamp',
  'type',
  'userId',
  'appId',
  'clusterId',
] as const;
export type PropertyName = (typeof ORDER)[number];

/** Each property that is there, as the bytes it has on the wire. */
export type RawProperties = ReadonlyMap<PropertyName, Buffer>;

/** Bytes of the properties that have a fixed width; `headers` has four bytes of length in front, the others one. */
const WIDTHS: Readonly<Partial<Record<PropertyName, number>>> = { deliveryMode: 1, priority: 1, timestamp: 8 };

const TOP_BIT = 15;

/** Cuts the properties apart. Throws {@link FieldFormatError} for what is not well formed. */
export function readProperties(bytes: Buffer): RawProperties {
  const properties = new Map<PropertyName, Buffer>();
  if (bytes.length < 2) throw new FieldFormatError('there are no flags');
  const flags = bytes.readUInt16BE(0);
  // The lowest bit says that more flags follow; the class `basic` has none.
  if ((flags & 1) !== 0) throw new FieldFormatError('there are more flags than properties');
  let at = 2;
  for (const [index, name] of ORDER.entries()) {
    if ((flags & (1 << (TOP_BIT - index))) === 0) continue;
    const end = at + sizeAt(bytes, at, name);
    if (end > bytes.length) throw new FieldFormatError(`${name} is cut short`);
    properties.set(name, bytes.subarray(at, end));
    at = end;
  }
  if (at !== bytes.length) throw new FieldFormatError(`${bytes.length - at} bytes follow the last property`);
  return properties;
}

function sizeAt(bytes: Buffer, at: number, name: PropertyName): number {
  const fixed = WIDTHS[name];
  if (fixed !== undefined) return fixed;
  const prefix = name === 'headers' ? 4 : 1;
  if (at + prefix > bytes.length) throw new FieldFormatError(`${name} is cut short`);
  return prefix + bytes.readUIntBE(at, prefix);
}

/** Puts properties together, in the order of the wire. */
export function writeProperties(properties: RawProperties): Buffer {
  let flags = 0;
  const parts: Buffer[] = [];
  for (const [index, name] of ORDER.entries()) {
    const bytes = properties.get(name);
    if (bytes === undefined) continue;
    flags |= 1 << (TOP_BIT - index);
    parts.push(bytes);
  }
  const head = Buffer.alloc(2);
  head.writeUInt16BE(flags);
  return Buffer.concat([head, ...parts]);
}

/** The entries of the headers; none where there are no headers. Throws {@link FieldFormatError}. */
export function headersOf(properties: RawProperties): RawField[] {
  const headers = properties.get('headers');
  return headers === undefined ? [] : fieldsOf(headers.subarray(4));
}

/** Headers with these entries, as the bytes of the property. */
export function encodeHeaders(entries: readonly Buffer[]): Buffer {
  const body = Buffer.concat(entries);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(body.length);
  return Buffer.concat([size, body]);
}

/** Bytes of a property of text, without its length in front. */
export function shortText(properties: RawProperties, name: PropertyName): Buffer | undefined {
  return properties.get(name)?.subarray(1);
}

/** A property of text as its bytes. Throws RangeError for more than 255 bytes. */
export function encodeShortText(text: string | Buffer): Buffer {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  if (bytes.length > 255) throw new RangeError(`a property of text has at most 255 bytes, not ${bytes.length}`);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}
