/**
 * A check of encoded AMQP before anybody decodes it. Decoders trust counts: an array of four billion nulls is nine bytes
 * long and takes all memory. Nothing is allocated here, and every step moves forward in the bytes.
 */
import { AmqpFormatError } from '../../shared/brokers/serviceBus/amqp.ts';

const MAX_DEPTH = 32;
/** Items that cost no bytes, in one frame or message. */
const MAX_EMPTY_ITEMS = 65_536;

interface Walk {
  readonly bytes: Buffer;
  emptyItems: number;
}

/** Checks the single value at `at` and answers where it ends. Throws {@link AmqpFormatError}. */
export function checkValue(bytes: Buffer, at: number): number {
  return value({ bytes, emptyItems: 0 }, at, bytes.length, 0);
}

/** Checks values that fill `bytes` completely, as the sections of a message do. Throws {@link AmqpFormatError}. */
export function checkValues(bytes: Buffer): void {
  const walk = { bytes, emptyItems: 0 };
  for (let at = 0; at < bytes.length; ) at = value(walk, at, bytes.length, 0);
}

function value(walk: Walk, at: number, limit: number, depth: number): number {
  if (depth > MAX_DEPTH) throw new AmqpFormatError('values are nested too deeply');
  if (at >= limit) throw new AmqpFormatError(`a value is missing at byte ${at}`);
  const code = walk.bytes[at] as number;
  if (code !== 0x00) return content(walk, code, at + 1, limit, depth);
  return value(walk, value(walk, at + 1, limit, depth + 1), limit, depth + 1);
}

/** Checks what follows constructor `code`. */
function content(walk: Walk, code: number, at: number, limit: number, depth: number): number {
  const kind = code >> 4;
  if (kind >= 0x4 && kind <= 0x9) return within(at + fixedWidth(kind), limit);
  if (kind < 0xa) throw new AmqpFormatError(`unknown AMQP constructor 0x${code.toString(16)}`);
  const width = kind % 2 === 0 ? 1 : 4;
  const end = within(at + width + size(walk, at, width, limit), limit);
  if (kind >= 0xc) items(walk, kind >= 0xe, width, at + width, end, depth);
  return end;
}

function items(walk: Walk, isArray: boolean, width: number, at: number, end: number, depth: number): void {
  const count = size(walk, at, width, end);
  let next = at + width;
  if (!isArray) {
    for (let i = 0; i < count; i++) next = value(walk, next, end, depth + 1);
  } else if (next < end || count > 0) {
    let code = walk.bytes[next] as number;
    if (code === 0x00) {
      next = value(walk, next + 1, end, depth + 1);
      code = walk.bytes[next] as number;
    }
    next = within(next + 1, end);
    if (code >> 4 === 0x4) {
      walk.emptyItems += count;
      if (walk.emptyItems > MAX_EMPTY_ITEMS) throw new AmqpFormatError('an array claims too many items');
    } else {
      for (let i = 0; i < count; i++) next = content(walk, code, next, end, depth + 1);
    }
  }
  if (next !== end) throw new AmqpFormatError('a list, map or array is not as long as it claims');
}

/** 0, 1, 2, 4, 8 or 16 bytes for the constructors 0x4_ to 0x9_. */
function fixedWidth(kind: number): number {
  return kind === 0x4 ? 0 : 2 ** (kind - 5);
}

function size(walk: Walk, at: number, width: number, limit: number): number {
  within(at + width, limit);
  return width === 1 ? walk.bytes.readUInt8(at) : walk.bytes.readUInt32BE(at);
}

function within(at: number, limit: number): number {
  if (at > limit) throw new AmqpFormatError(`a value runs past byte ${limit}`);
  return at;
}
