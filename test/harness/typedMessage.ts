/**
 * Encoded messages for tests, made and judged by rhea, a decoder that shares no code with the office's own.
 */
import rhea, { type Typed } from 'rhea';
import { type EncodedMessage, encodedMessage } from '../../shared/brokers/broker.ts';

type Constructor =
  | 'Null'
  | 'True'
  | 'False'
  | 'Boolean'
  | 'Ubyte'
  | 'Ushort'
  | 'Uint0'
  | 'SmallUint'
  | 'Uint'
  | 'Ulong0'
  | 'SmallUlong'
  | 'Ulong'
  | 'Byte'
  | 'Short'
  | 'SmallInt'
  | 'Int'
  | 'SmallLong'
  | 'Long'
  | 'Float'
  | 'Double'
  | 'Decimal32'
  | 'Decimal64'
  | 'Decimal128'
  | 'CharUTF32'
  | 'Timestamp'
  | 'Uuid'
  | 'Vbin8'
  | 'Vbin32'
  | 'Str8'
  | 'Str32'
  | 'Sym8'
  | 'Sym32'
  | 'List0'
  | 'List8'
  | 'List32'
  | 'Map8'
  | 'Map32';

interface Reader {
  position: number;
  read(): Typed;
  skip(bytes: number): void;
  remaining(): number;
}

interface RheaTypes extends Record<Constructor, (value?: unknown) => Typed> {
  Reader: new (bytes: Buffer) => Reader;
  Writer: new () => { write(value: Typed): void; toBuffer(): Buffer };
  wrap_string(value: string): Typed;
  wrap_symbol(value: string): Typed;
  wrap_binary(value: Buffer): Typed;
  wrap_described(value: Typed, descriptor: string): Typed;
}

/** rhea's own table of types; its declarations leave most of it out. */
export const types = rhea.types as unknown as RheaTypes;

/** Descriptor codes of the sections, in wire order. */
export const CODE = {
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

/** Bytes of one typed value. */
export function encodeValue(value: Typed): Buffer {
  const writer = new types.Writer();
  writer.write(value);
  return Buffer.from(writer.toBuffer());
}

/** Bytes of one section. */
export function section(code: number, value: Typed): Buffer {
  return Buffer.concat([Buffer.from([0x00, 0x53, code]), encodeValue(value)]);
}

/** A map of typed values; keys are strings, or symbols for annotations. */
export function mapOf(entries: readonly (readonly [string, Typed])[], symbols = false): Typed {
  return types.Map32(
    entries.flatMap(([key, value]) => [symbols ? types.wrap_symbol(key) : types.wrap_string(key), value]),
  );
}

/** The usual sections of a message; what is not given is not there. */
export interface Parts {
  header?: Typed[];
  deliveryAnnotations?: [string, Typed][];
  messageAnnotations?: [string, Typed][];
  properties?: Typed[];
  applicationProperties?: [string, Typed][];
  body?: Buffer[];
  footer?: [string, Typed][];
}

/** An encoded message. */
export function messageOf(parts: Parts): EncodedMessage {
  const sections: Buffer[] = [];
  if (parts.header) sections.push(section(CODE.header, types.List8(parts.header)));
  if (parts.deliveryAnnotations) {
    sections.push(section(CODE.deliveryAnnotations, mapOf(parts.deliveryAnnotations, true)));
  }
  if (parts.messageAnnotations) sections.push(section(CODE.messageAnnotations, mapOf(parts.messageAnnotations, true)));
  if (parts.properties) sections.push(section(CODE.properties, types.List32(parts.properties)));
  if (parts.applicationProperties) {
    sections.push(section(CODE.applicationProperties, mapOf(parts.applicationProperties)));
  }
  sections.push(...(parts.body ?? [data('hello')]));
  if (parts.footer) sections.push(section(CODE.footer, mapOf(parts.footer, true)));
  return encodedMessage(Buffer.concat(sections));
}

/** A data section. */
export function data(content: string | Buffer): Buffer {
  return section(CODE.data, types.wrap_binary(Buffer.from(content)));
}

/** One section as rhea reads it: its bytes, the value's bytes, and for maps and lists the bytes of every item. */
export interface ReadSection {
  readonly code: number;
  readonly bytes: string;
  readonly value: string;
  readonly items: readonly string[];
  readonly entries: ReadonlyMap<string, string>;
}

/** Takes a message apart with rhea's reader. Bytes are hex, so that a failed comparison can be read. */
export function sectionsByRhea(message: Buffer): ReadSection[] {
  const reader = new types.Reader(message);
  const sections: ReadSection[] = [];
  while (reader.remaining() > 0) {
    const start = reader.position;
    reader.skip(1);
    const code = Number(reader.read().value);
    const body = reader.position;
    reader.position = start;
    reader.read();
    const value = message.subarray(body, reader.position);
    const items = itemsByRhea(value);
    sections.push({
      code,
      bytes: message.toString('hex', start, reader.position),
      value: value.toString('hex'),
      items,
      entries: new Map(
        items.flatMap((item, i): [string, string][] => (i % 2 === 0 ? [[keyOf(item), items[i + 1] ?? '']] : [])),
      ),
    });
  }
  return sections;
}

/** The section with this code, which must be there once. */
export function sectionByRhea(message: Buffer, code: number): ReadSection | undefined {
  const found = sectionsByRhea(message).filter((candidate) => candidate.code === code);
  if (found.length > 1) throw new Error(`section 0x${code.toString(16)} is there ${found.length} times`);
  return found[0];
}

function itemsByRhea(value: Buffer): string[] {
  const code = value[0];
  const isSmall = code === 0xc0 || code === 0xc1;
  if (!isSmall && code !== 0xd0 && code !== 0xd1) return [];
  const reader = new types.Reader(value);
  reader.skip(isSmall ? 3 : 9);
  const items: string[] = [];
  while (reader.remaining() > 0) {
    const start = reader.position;
    reader.read();
    items.push(value.toString('hex', start, reader.position));
  }
  return items;
}

function keyOf(item: string): string {
  return String(new types.Reader(Buffer.from(item, 'hex')).read().value);
}

const eightBytes = (value: bigint) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
};

/** A value of every AMQP type that an application property can have, in every encoding that a client may choose. */
export const PROPERTY_VALUES: Readonly<Record<string, Typed>> = {
  null: types.Null(),
  true: types.True(),
  false: types.False(),
  booleanByte: types.Boolean(1),
  ubyte: types.Ubyte(5),
  ushort: types.Ushort(5),
  uintZero: types.Uint0(),
  uintSmall: types.SmallUint(5),
  uint: types.Uint(5),
  ulongZero: types.Ulong0(),
  ulongSmall: types.SmallUlong(5),
  ulong: types.Ulong(eightBytes(-1n)),
  byte: types.Byte(-5),
  short: types.Short(-5),
  intSmall: types.SmallInt(5),
  int: types.Int(5),
  longSmall: types.SmallLong(-5),
  long: types.Long(eightBytes(2n ** 60n + 1n)),
  float: types.Float(1.5),
  doubleWhole: types.Double(2),
  doubleNaN: types.Double(Number.NaN),
  decimal32: types.Decimal32(Buffer.from('22700005', 'hex')),
  decimal64: types.Decimal64(Buffer.from('2234000000000005', 'hex')),
  decimal128: types.Decimal128(Buffer.from('22080000000000000000000000000005', 'hex')),
  char: types.CharUTF32(0x1f4ec),
  timestamp: types.Timestamp(1_700_000_000_123),
  uuid: types.Uuid(Buffer.from('00112233445566778899aabbccddeeff', 'hex')),
  binary: types.Vbin8(Buffer.from([0, 255, 128])),
  binaryLong: types.Vbin32(Buffer.from([1, 2, 3])),
  string: types.Str8('grün 📨'),
  stringEmpty: types.Str8(''),
  stringLong: types.Str32('x'.repeat(300)),
  symbol: types.Sym8('symbol'),
  symbolLong: types.Sym32('s'.repeat(300)),
  dateTimeOffset: types.wrap_described(
    types.Long(eightBytes(638_000_000_000_000_000n)),
    'com.microsoft:datetime-offset',
  ),
};

/** A body of every shape, as its sections. */
export const BODIES: Readonly<Record<string, Buffer[]>> = {
  'binary that is no text': [data(Buffer.from(Array.from({ length: 256 }, (_, i) => i)))],
  'an empty data section': [data('')],
  '200 KB': [data(Buffer.alloc(200 * 1024, 'dead letter '))],
  'text that only looks like JSON': [data('{"n": 12345678901234567890, "x": 1.0 } ')],
  'several data sections': [data('one'), data(''), data(Buffer.alloc(300, 1))],
  'a string value': [section(CODE.value, types.Str32('text'))],
  'a null value': [section(CODE.value, types.Null())],
  'a binary value': [section(CODE.value, types.Vbin8(Buffer.from('bytes')))],
  'a map value': [section(CODE.value, mapOf([['n', types.Int(5)]]))],
  'a sequence': [section(CODE.sequence, types.List8([types.Int(5), types.Str8('x')]))],
  'several sequences': [section(CODE.sequence, types.List8([types.Long(5)])), section(CODE.sequence, types.List0())],
};

/** A message with every section and a property of every type, or those of `values`, around `body`. */
export function fullMessage(id: string, body: Buffer[], values = PROPERTY_VALUES): EncodedMessage {
  const now = Date.now();
  return messageOf({
    header: [types.True(), types.Ubyte(7), types.Uint(3_000_000)],
    messageAnnotations: [
      ['x-opt-partition-key', types.Str8('session')],
      ['x-opt-jms-msg-type', types.Byte(5)],
      ['x-strange', types.Ulong(7)],
    ],
    properties: [
      types.Str8(id),
      types.Vbin8(Buffer.from([0, 255])),
      types.Str8('to'),
      types.Str8('subject'),
      types.Str8('reply'),
      types.Uuid(Buffer.alloc(16, 3)),
      types.Sym8('application/octet-stream'),
      types.Sym8('gzip'),
      types.Timestamp(now + 3_000_000),
      types.Timestamp(now),
      types.Str8('session'),
      types.SmallUint(4),
      types.Str8('reply-session'),
    ],
    applicationProperties: [...Object.entries(values), ['traceparent', types.Str8(`00-${'ab'.repeat(16)}-01`)]],
    body,
    footer: [['x-foot', types.Int(1)]],
  });
}
