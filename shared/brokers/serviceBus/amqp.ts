/**
 * The AMQP 1.0 type system at byte level: enough to cut an encoded message into its sections, to read values
 * with their types, and to change single map entries while every other byte stays as it came.
 *
 * Why not a decoder from a library: the JavaScript clients turn every integer type into a number and write it
 * back as `uint`, so a .NET consumer's cast fails. What is never decoded cannot be changed.
 *
 * Source: OASIS AMQP 1.0, part 1 (types) and part 3 (messaging).
 */

/** Section descriptor codes (AMQP 1.0, part 3, section 3.2). */
export const SECTION = {
  header: 0x70,
  deliveryAnnotations: 0x71,
  messageAnnotations: 0x72,
  properties: 0x73,
  applicationProperties: 0x74,
  data: 0x75,
  sequence: 0x76,
  value: 0x77,
  footer: 0x78,
} as const;

/** Raised when bytes are not well-formed AMQP: cut short, an unknown constructor, a size that does not fit. */
export class AmqpFormatError extends Error {
  override readonly name = 'AmqpFormatError';
}

/** A value with the name of its AMQP type, as it stood on the wire. 64-bit integers are bigint, times are ms since 1970. */
export type AmqpValue =
  | { type: 'null'; value: null }
  | { type: 'boolean'; value: boolean }
  | { type: 'ubyte' | 'ushort' | 'uint' | 'byte' | 'short' | 'int' | 'float' | 'double'; value: number }
  | { type: 'ulong' | 'long'; value: bigint }
  | { type: 'timestamp'; value: bigint }
  | { type: 'char' | 'uuid' | 'string' | 'symbol'; value: string }
  | { type: 'decimal32' | 'decimal64' | 'decimal128' | 'binary'; value: Buffer }
  | { type: 'list' | 'array'; value: AmqpValue[] }
  | { type: 'map'; value: [AmqpValue, AmqpValue][] }
  | { type: 'described'; descriptor: AmqpValue; value: AmqpValue };

/** One section of a message; `start`..`end` is the whole described value, `body` where its inner value begins. */
export interface Section {
  readonly code: number;
  readonly start: number;
  readonly body: number;
  readonly end: number;
}

/** One entry of a map or list as the bytes it has on the wire. */
export interface RawEntry {
  readonly key: AmqpValue;
  /** Key and value together. */
  readonly bytes: Buffer;
  /** The value alone. */
  readonly value: Buffer;
}

const MAX_DEPTH = 64;

/** Number of bytes of the value at `at`, its constructor included. Throws {@link AmqpFormatError}. */
export function valueEnd(bytes: Buffer, at: number, depth = 0): number {
  const code = byteAt(bytes, at);
  if (code === 0x00) {
    if (depth > MAX_DEPTH) throw new AmqpFormatError('described values are nested too deeply');
    return valueEnd(bytes, valueEnd(bytes, at + 1, depth + 1), depth + 1);
  }
  return bodyEnd(bytes, code, at + 1);
}

/** End of the data that follows constructor `code`. */
function bodyEnd(bytes: Buffer, code: number, at: number): number {
  const width = widthOf(code);
  let end: number;
  if (width >= 0) end = at + width;
  else if (width === -1) end = at + 1 + byteAt(bytes, at);
  else end = at + 4 + uint32At(bytes, at);
  if (end > bytes.length)
    throw new AmqpFormatError(`value at byte ${at - 1} runs past the end of ${bytes.length} bytes`);
  return end;
}

/** Fixed width in bytes, or -1 / -4 for a one- or four-byte size in front. */
function widthOf(code: number): number {
  switch (code >> 4) {
    case 0x4:
      return 0;
    case 0x5:
      return 1;
    case 0x6:
      return 2;
    case 0x7:
      return 4;
    case 0x8:
      return 8;
    case 0x9:
      return 16;
    case 0xa:
    case 0xc:
    case 0xe:
      return -1;
    case 0xb:
    case 0xd:
    case 0xf:
      return -4;
    default:
      throw new AmqpFormatError(`unknown AMQP constructor 0x${code.toString(16)}`);
  }
}

/** Cuts an encoded message into its sections, in wire order. Throws {@link AmqpFormatError} for anything else. */
export function sectionsOf(message: Buffer): Section[] {
  const sections: Section[] = [];
  for (let at = 0; at < message.length; ) {
    const section = sectionAt(message, at);
    sections.push(section);
    at = section.end;
  }
  return sections;
}

/** The section that starts at `at`. Throws {@link AmqpFormatError} when none does. */
export function sectionAt(message: Buffer, at: number): Section {
  if (byteAt(message, at) !== 0x00) throw new AmqpFormatError(`no section starts at byte ${at}`);
  // Every peer writes the descriptor as a one-byte ulong; other forms are legal and take the longer way.
  const short = message[at + 1] === 0x53;
  const body = short ? at + 3 : valueEnd(message, at + 1);
  const code = short ? knownSection(byteAt(message, at + 2)) : sectionCode(readValue(message, at + 1));
  return { code, start: at, body, end: valueEnd(message, body) };
}

const SYMBOLIC_SECTIONS: Record<string, number> = {
  'amqp:header:list': SECTION.header,
  'amqp:delivery-annotations:map': SECTION.deliveryAnnotations,
  'amqp:message-annotations:map': SECTION.messageAnnotations,
  'amqp:properties:list': SECTION.properties,
  'amqp:application-properties:map': SECTION.applicationProperties,
  'amqp:data:binary': SECTION.data,
  'amqp:amqp-sequence:list': SECTION.sequence,
  'amqp:amqp-value:*': SECTION.value,
  'amqp:footer:map': SECTION.footer,
};

function sectionCode(descriptor: AmqpValue): number {
  const code =
    descriptor.type === 'ulong'
      ? Number(descriptor.value)
      : descriptor.type === 'symbol'
        ? SYMBOLIC_SECTIONS[descriptor.value]
        : undefined;
  if (code === undefined) throw new AmqpFormatError('a descriptor does not name a message section');
  return knownSection(code);
}

function knownSection(code: number): number {
  if (code < SECTION.header || code > SECTION.footer) {
    throw new AmqpFormatError(`descriptor 0x${code.toString(16)} is not a message section`);
  }
  return code;
}

/** Reads the value at `at` with its type. Throws {@link AmqpFormatError}. */
export function readValue(bytes: Buffer, at = 0): AmqpValue {
  valueEnd(bytes, at);
  return read(bytes, at, 0);
}

function read(bytes: Buffer, at: number, depth: number): AmqpValue {
  if (depth > MAX_DEPTH) throw new AmqpFormatError('values are nested too deeply');
  const code = byteAt(bytes, at);
  if (code === 0x00) {
    const inner = valueEnd(bytes, at + 1);
    return { type: 'described', descriptor: read(bytes, at + 1, depth + 1), value: read(bytes, inner, depth + 1) };
  }
  return readBody(bytes, code, at + 1, depth);
}

function readBody(b: Buffer, code: number, at: number, depth: number): AmqpValue {
  const end = bodyEnd(b, code, at);
  switch (code) {
    case 0x40:
      return { type: 'null', value: null };
    case 0x41:
      return { type: 'boolean', value: true };
    case 0x42:
      return { type: 'boolean', value: false };
    case 0x56:
      return { type: 'boolean', value: b[at] !== 0 };
    case 0x50:
      return { type: 'ubyte', value: b.readUInt8(at) };
    case 0x51:
      return { type: 'byte', value: b.readInt8(at) };
    case 0x60:
      return { type: 'ushort', value: b.readUInt16BE(at) };
    case 0x61:
      return { type: 'short', value: b.readInt16BE(at) };
    case 0x43:
      return { type: 'uint', value: 0 };
    case 0x52:
      return { type: 'uint', value: b.readUInt8(at) };
    case 0x70:
      return { type: 'uint', value: b.readUInt32BE(at) };
    case 0x54:
      return { type: 'int', value: b.readInt8(at) };
    case 0x71:
      return { type: 'int', value: b.readInt32BE(at) };
    case 0x44:
      return { type: 'ulong', value: 0n };
    case 0x53:
      return { type: 'ulong', value: BigInt(b.readUInt8(at)) };
    case 0x80:
      return { type: 'ulong', value: b.readBigUInt64BE(at) };
    case 0x55:
      return { type: 'long', value: BigInt(b.readInt8(at)) };
    case 0x81:
      return { type: 'long', value: b.readBigInt64BE(at) };
    case 0x72:
      return { type: 'float', value: b.readFloatBE(at) };
    case 0x82:
      return { type: 'double', value: b.readDoubleBE(at) };
    case 0x74:
      return { type: 'decimal32', value: copy(b, at, end) };
    case 0x84:
      return { type: 'decimal64', value: copy(b, at, end) };
    case 0x94:
      return { type: 'decimal128', value: copy(b, at, end) };
    case 0x73:
      return { type: 'char', value: codePoint(b.readUInt32BE(at)) };
    case 0x83:
      return { type: 'timestamp', value: b.readBigInt64BE(at) };
    case 0x98:
      return { type: 'uuid', value: uuidText(b.subarray(at, end)) };
    case 0xa0:
      return { type: 'binary', value: copy(b, at + 1, end) };
    case 0xb0:
      return { type: 'binary', value: copy(b, at + 4, end) };
    case 0xa1:
      return { type: 'string', value: b.toString('utf8', at + 1, end) };
    case 0xb1:
      return { type: 'string', value: b.toString('utf8', at + 4, end) };
    case 0xa3:
      return { type: 'symbol', value: b.toString('latin1', at + 1, end) };
    case 0xb3:
      return { type: 'symbol', value: b.toString('latin1', at + 4, end) };
    case 0x45:
      return { type: 'list', value: [] };
    case 0xc0:
    case 0xd0:
      return { type: 'list', value: itemsOf(b, at, end, code === 0xc0, depth) };
    case 0xc1:
    case 0xd1:
      return { type: 'map', value: pairs(itemsOf(b, at, end, code === 0xc1, depth)) };
    case 0xe0:
    case 0xf0:
      return { type: 'array', value: arrayItems(b, at, end, code === 0xe0, depth) };
    default:
      throw new AmqpFormatError(`unknown AMQP constructor 0x${code.toString(16)}`);
  }
}

function itemsOf(b: Buffer, at: number, end: number, small: boolean, depth: number): AmqpValue[] {
  const items: AmqpValue[] = [];
  const { count, first } = compoundHead(b, at, end, small);
  let next = first;
  for (let i = 0; i < count; i++) {
    const itemEnd = valueEnd(b, next);
    if (itemEnd > end) throw new AmqpFormatError('a list or map item runs past its container');
    items.push(read(b, next, depth + 1));
    next = itemEnd;
  }
  return items;
}

function compoundHead(b: Buffer, at: number, end: number, small: boolean): { count: number; first: number } {
  const head = small ? 2 : 8;
  if (at + head > end) throw new AmqpFormatError('a list or map has no count');
  return { count: small ? b.readUInt8(at + 1) : b.readUInt32BE(at + 4), first: at + head };
}

function arrayItems(b: Buffer, at: number, end: number, small: boolean, depth: number): AmqpValue[] {
  if (depth > MAX_DEPTH) throw new AmqpFormatError('values are nested too deeply');
  const { count, first } = compoundHead(b, at, end, small);
  const code = byteAt(b, first);
  if (code === 0x00) throw new AmqpFormatError('arrays of described values are not supported');
  // Zero-width items cost no bytes: without this bound a hostile count would allocate without end.
  if (count > 65_536) throw new AmqpFormatError('an array claims too many items');
  const items: AmqpValue[] = [];
  let next = first + 1;
  for (let i = 0; i < count; i++) {
    const itemEnd = bodyEnd(b, code, next);
    if (itemEnd > end) throw new AmqpFormatError('an array item runs past its array');
    items.push(readBody(b, code, next, depth + 1));
    next = itemEnd;
  }
  return items;
}

function pairs(items: AmqpValue[]): [AmqpValue, AmqpValue][] {
  if (items.length % 2 !== 0) throw new AmqpFormatError('a map has a key without a value');
  const result: [AmqpValue, AmqpValue][] = [];
  for (let i = 0; i < items.length; i += 2) result.push([items[i] as AmqpValue, items[i + 1] as AmqpValue]);
  return result;
}

/** The entries of the map at `at` (a section's `body`), each with the bytes it came in. */
export function mapEntries(bytes: Buffer, at: number): RawEntry[] {
  const code = byteAt(bytes, at);
  if (code === 0x40) return [];
  if (code !== 0xc1 && code !== 0xd1) throw new AmqpFormatError(`expected a map, found 0x${code.toString(16)}`);
  const slices = itemSlices(bytes, code === 0xc1, at);
  if (slices.length % 2 !== 0) throw new AmqpFormatError('a map has a key without a value');
  const entries: RawEntry[] = [];
  for (let i = 0; i < slices.length; i += 2) {
    const key = slices[i] as Buffer;
    const value = slices[i + 1] as Buffer;
    entries.push({ key: readValue(key), value, bytes: Buffer.concat([key, value]) });
  }
  return entries;
}

/** The items of the list at `at` (a section's `body`), each as the bytes it came in. */
export function listItems(bytes: Buffer, at: number): Buffer[] {
  const code = byteAt(bytes, at);
  if (code === 0x45 || code === 0x40) return [];
  if (code !== 0xc0 && code !== 0xd0) throw new AmqpFormatError(`expected a list, found 0x${code.toString(16)}`);
  return itemSlices(bytes, code === 0xc0, at);
}

function itemSlices(bytes: Buffer, small: boolean, at: number): Buffer[] {
  const end = valueEnd(bytes, at);
  const { count, first } = compoundHead(bytes, at + 1, end, small);
  const slices: Buffer[] = [];
  let next = first;
  for (let i = 0; i < count; i++) {
    const itemEnd = valueEnd(bytes, next);
    if (itemEnd > end) throw new AmqpFormatError('a list or map item runs past its container');
    slices.push(bytes.subarray(next, itemEnd));
    next = itemEnd;
  }
  // Bytes behind the last item would be lost when the container is written again.
  if (next !== end) throw new AmqpFormatError('a list or map is longer than its items');
  return slices;
}

/** Text of a string or symbol key; `undefined` for a key of another type. */
export function keyText(key: AmqpValue): string | undefined {
  return key.type === 'string' || key.type === 'symbol' ? key.value : undefined;
}

/** A whole section with the given inner bytes, in the short form of the descriptor that every peer writes. */
export function encodeSection(code: number, inner: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x00, 0x53, code]), inner]);
}

/** A map of already encoded keys and values (`entries` holds key bytes followed by value bytes). */
export function encodeMap(entries: readonly Buffer[]): Buffer {
  return encodeCompound(0xc1, 0xd1, entries.length * 2, entries);
}

/** A list of already encoded items. */
export function encodeList(items: readonly Buffer[]): Buffer {
  if (items.length === 0) return Buffer.from([0x45]);
  return encodeCompound(0xc0, 0xd0, items.length, items);
}

function encodeCompound(small: number, large: number, count: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length + 1 <= 255 && count <= 255) {
    return Buffer.concat([Buffer.from([small, body.length + 1, count]), body]);
  }
  const head = Buffer.alloc(9);
  head.writeUInt8(large, 0);
  head.writeUInt32BE(body.length + 4, 1);
  head.writeUInt32BE(count, 5);
  return Buffer.concat([head, body]);
}

/** Encoded values of chosen types, for the few things that are added to a message. */
export const encode = {
  null: (): Buffer => Buffer.from([0x40]),
  boolean: (value: boolean): Buffer => Buffer.from([value ? 0x41 : 0x42]),
  uint(value: number): Buffer {
    const bytes = Buffer.alloc(5);
    bytes.writeUInt8(0x70, 0);
    bytes.writeUInt32BE(value, 1);
    return bytes;
  },
  int(value: number): Buffer {
    const bytes = Buffer.alloc(5);
    bytes.writeUInt8(0x71, 0);
    bytes.writeInt32BE(value, 1);
    return bytes;
  },
  long(value: bigint): Buffer {
    const bytes = Buffer.alloc(9);
    bytes.writeUInt8(0x81, 0);
    bytes.writeBigInt64BE(value, 1);
    return bytes;
  },
  timestamp(ms: number): Buffer {
    const bytes = Buffer.alloc(9);
    bytes.writeUInt8(0x83, 0);
    bytes.writeBigInt64BE(BigInt(ms), 1);
    return bytes;
  },
  string: (value: string): Buffer => variable(0xa1, 0xb1, Buffer.from(value, 'utf8')),
  symbol: (value: string): Buffer => variable(0xa3, 0xb3, Buffer.from(value, 'latin1')),
  binary: (value: Uint8Array): Buffer => variable(0xa0, 0xb0, value),
};

function variable(small: number, large: number, bytes: Uint8Array): Buffer {
  if (bytes.length <= 255) return Buffer.concat([Buffer.from([small, bytes.length]), bytes]);
  const head = Buffer.alloc(5);
  head.writeUInt8(large, 0);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function copy(bytes: Buffer, start: number, end: number): Buffer {
  return Buffer.from(bytes.subarray(start, end));
}

function codePoint(value: number): string {
  return value <= 0x10ffff ? String.fromCodePoint(value) : '�';
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function byteAt(bytes: Buffer, at: number): number {
  const value = bytes[at];
  if (value === undefined)
    throw new AmqpFormatError(`value expected at byte ${at}, but there are only ${bytes.length}`);
  return value;
}

function uint32At(bytes: Buffer, at: number): number {
  if (at + 4 > bytes.length)
    throw new AmqpFormatError(`size expected at byte ${at}, but there are only ${bytes.length}`);
  return bytes.readUInt32BE(at);
}
