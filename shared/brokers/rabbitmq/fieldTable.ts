/**
 * AMQP 0-9-1 field tables at byte level, in the dialect that RabbitMQ speaks: enough to read values with their types and to
 * leave out or add single entries while every other byte stays as it came.
 *
 * Why not the library's codec: it writes each integer in the smallest type that holds it and replaces text that is not UTF-8, so
 * a consumer that casts a header to the type it was sent with fails. What is never decoded cannot be changed.
 *
 * Source: RabbitMQ, "AMQP 0-9-1 Errata", section 3 (field types), which differs from the specification.
 */

/** Raised when bytes are not a well-formed table: cut short, an unknown type, a size that does not fit. */
export class FieldFormatError extends Error {
  override readonly name = 'FieldFormatError';
}

/** A value with the name of its type. 64-bit integers are bigint, a timestamp is in seconds since 1970. */
export type FieldValue =
  | { readonly type: 'void'; readonly value: null }
  | { readonly type: 'boolean'; readonly value: boolean }
  | {
      readonly type: 'byte' | 'ubyte' | 'short' | 'ushort' | 'int' | 'uint' | 'float' | 'double';
      readonly value: number;
    }
  | { readonly type: 'long' | 'timestamp'; readonly value: bigint }
  | { readonly type: 'decimal'; readonly scale: number; readonly value: bigint }
  /** Text that is not UTF-8 is told as `bytes`. */
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'bytes'; readonly value: Buffer }
  | { readonly type: 'array'; readonly value: readonly FieldValue[] }
  | { readonly type: 'table'; readonly value: readonly (readonly [string, FieldValue])[] };

/** One entry of a table as the bytes it has on the wire. */
export interface RawField {
  readonly name: string;
  /** Length of the name, the name, the type and the value. */
  readonly bytes: Buffer;
  /** The type and the value. */
  readonly value: Buffer;
}

/** Tables in tables in …: RabbitMQ sets no limit, but nobody means more. */
const MAX_DEPTH = 64;

/** The entries of a table without its length in front. A name may occur twice. Throws {@link FieldFormatError}. */
export function fieldsOf(table: Buffer): RawField[] {
  const fields: RawField[] = [];
  for (let at = 0; at < table.length; ) {
    const nameEnd = at + 1 + need(table, at, 1).readUInt8(at);
    need(table, nameEnd, 0);
    const end = valueEnd(table, nameEnd);
    fields.push({
      name: table.toString('utf8', at + 1, nameEnd),
      bytes: table.subarray(at, end),
      value: table.subarray(nameEnd, end),
    });
    at = end;
  }
  return fields;
}

/** The value whose type stands at `at`. Throws {@link FieldFormatError}. */
export function readField(bytes: Buffer, at = 0, depth = 0): FieldValue {
  if (depth > MAX_DEPTH) throw new FieldFormatError('values are nested too deeply');
  const end = valueEnd(bytes, at);
  const body = at + 1;
  switch (typeAt(bytes, at)) {
    case 'V':
      return { type: 'void', value: null };
    case 't':
      return { type: 'boolean', value: bytes.readUInt8(body) !== 0 };
    case 'b':
      return { type: 'byte', value: bytes.readInt8(body) };
    case 'B':
      return { type: 'ubyte', value: bytes.readUInt8(body) };
    case 's':
      return { type: 'short', value: bytes.readInt16BE(body) };
    case 'u':
      return { type: 'ushort', value: bytes.readUInt16BE(body) };
    case 'I':
      return { type: 'int', value: bytes.readInt32BE(body) };
    case 'i':
      return { type: 'uint', value: bytes.readUInt32BE(body) };
    case 'l':
    case 'L':
      return { type: 'long', value: bytes.readBigInt64BE(body) };
    case 'f':
      return { type: 'float', value: bytes.readFloatBE(body) };
    case 'd':
      return { type: 'double', value: bytes.readDoubleBE(body) };
    case 'D':
      return { type: 'decimal', scale: bytes.readUInt8(body), value: BigInt(bytes.readInt32BE(body + 1)) };
    case 'T':
      return { type: 'timestamp', value: bytes.readBigUInt64BE(body) };
    case 'S':
      return textOf(bytes.subarray(body + 4, end));
    case 'x':
      return { type: 'bytes', value: bytes.subarray(body + 4, end) };
    case 'A':
      return { type: 'array', value: itemsOf(bytes.subarray(body + 4, end), depth) };
    default: {
      const entries = fieldsOf(bytes.subarray(body + 4, end));
      return { type: 'table', value: entries.map(({ name, value }) => [name, readField(value, 0, depth + 1)]) };
    }
  }
}

function itemsOf(bytes: Buffer, depth: number): FieldValue[] {
  const items: FieldValue[] = [];
  for (let at = 0; at < bytes.length; at = valueEnd(bytes, at)) items.push(readField(bytes, at, depth + 1));
  return items;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes as text where they are UTF-8, else as bytes. */
export function textOf(bytes: Buffer): FieldValue {
  try {
    return { type: 'string', value: utf8.decode(bytes) };
  } catch {
    return { type: 'bytes', value: bytes };
  }
}

/** Widths of the types that have a fixed one, bytes. */
const WIDTHS: Readonly<Record<string, number>> = {
  V: 0,
  t: 1,
  b: 1,
  B: 1,
  s: 2,
  u: 2,
  I: 4,
  i: 4,
  l: 8,
  L: 8,
  f: 4,
  d: 8,
  D: 5,
  T: 8,
};
const SIZED = 'SxAF';

/** Where the value ends whose type stands at `at`. */
function valueEnd(bytes: Buffer, at: number): number {
  const type = typeAt(bytes, at);
  const width = Object.hasOwn(WIDTHS, type) ? WIDTHS[type] : undefined;
  if (width === undefined && !SIZED.includes(type)) {
    throw new FieldFormatError(`unknown field type 0x${bytes.subarray(at, at + 1).toString('hex')} at byte ${at}`);
  }
  const end = at + 1 + (width ?? 4 + need(bytes, at + 1, 4).readUInt32BE(at + 1));
  need(bytes, end, 0);
  return end;
}

function typeAt(bytes: Buffer, at: number): string {
  return String.fromCharCode(need(bytes, at, 1).readUInt8(at));
}

/** `bytes`, if `count` of them are there from `at` on. */
function need(bytes: Buffer, at: number, count: number): Buffer {
  if (at + count <= bytes.length) return bytes;
  throw new FieldFormatError(`byte ${at + count} is wanted and there are ${bytes.length}`);
}

/** A new entry: an `int`, a `long` (bigint) or a text. Throws RangeError for a name above 255 bytes. */
export function encodeField(name: string, value: number | bigint | string): Buffer {
  const key = Buffer.from(name);
  if (key.length > 255) throw new RangeError(`a field's name has at most 255 bytes: ${name}`);
  return Buffer.concat([Buffer.of(key.length), key, encodeValue(value)]);
}

function encodeValue(value: number | bigint | string): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value);
    const sized = Buffer.alloc(5, 'S');
    sized.writeUInt32BE(text.length, 1);
    return Buffer.concat([sized, text]);
  }
  const bytes = Buffer.alloc(typeof value === 'bigint' ? 9 : 5, typeof value === 'bigint' ? 'l' : 'I');
  if (typeof value === 'bigint') bytes.writeBigInt64BE(value, 1);
  else bytes.writeInt32BE(value, 1);
  return bytes;
}
