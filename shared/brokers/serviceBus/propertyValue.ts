/** Typed AMQP values as JSON can carry them, for records, lists and rules. Nothing here goes back to the broker. */
import type { LetterProperty } from '../../letter.ts';
import { AmqpFormatError, type AmqpValue, readValue } from './amqp.ts';

/** Largest time to live that a header can say, ms: 49.7 days. */
export const MAX_HEADER_TTL = 2n ** 32n - 1n;

/** Beyond this `Date` has no text (ECMAScript, time values). */
const MAX_DATE = 8_640_000_000_000_000n;

/**
 * One application property from its encoded value. Wide integers become decimal text unless they are safe, times
 * ISO text, binary base64, nested values JSON text. A value that cannot be read has the type `unreadable`.
 */
export function toProperty(name: string, encoded: Buffer): LetterProperty {
  try {
    const value = readValue(encoded);
    return { name, type: value.type, value: flat(value) };
  } catch (error) {
    if (!(error instanceof AmqpFormatError)) throw error;
    return { name, type: 'unreadable', value: null };
  }
}

/** Text of an id (string, ulong, uuid or binary), or `undefined` for null and for what is not an id. */
export function idText(value: AmqpValue): string | undefined {
  switch (value.type) {
    case 'null':
    case 'list':
    case 'map':
    case 'array':
    case 'described':
      return undefined;
    default:
      return String(flat(value));
  }
}

/** Whole number of any integer type, or of a float that is whole; `undefined` for everything else. */
export function integerOf(value: AmqpValue | undefined): bigint | undefined {
  if (typeof value?.value === 'bigint') return value.value;
  if (typeof value?.value === 'number' && Number.isInteger(value.value)) return BigInt(value.value);
  return undefined;
}

/** `ms` as a JavaScript time; `undefined` when it is outside what `Date` knows. */
export function timeOf(value: AmqpValue | undefined): number | undefined {
  if (value?.type !== 'timestamp') return undefined;
  return isDate(value.value) ? Number(value.value) : undefined;
}

function flat(value: AmqpValue): string | number | boolean | null {
  const plain = toPlain(value);
  return typeof plain === 'object' && plain !== null ? JSON.stringify(plain) : plain;
}

type Plain = string | number | boolean | null | Plain[] | { [key: string]: Plain };

function toPlain(value: AmqpValue): Plain {
  switch (value.type) {
    case 'null':
    case 'boolean':
    case 'string':
    case 'symbol':
    case 'char':
    case 'uuid':
      return value.value;
    case 'long':
    case 'ulong':
      return Number.isSafeInteger(Number(value.value)) ? Number(value.value) : value.value.toString();
    case 'timestamp':
      return isDate(value.value) ? new Date(Number(value.value)).toISOString() : value.value.toString();
    case 'binary':
    case 'decimal32':
    case 'decimal64':
    case 'decimal128':
      return value.value.toString('base64');
    case 'list':
    case 'array':
      return value.value.map(toPlain);
    case 'map':
      return mapToPlain(value.value);
    case 'described':
      return { descriptor: toPlain(value.descriptor), value: toPlain(value.value) };
    default:
      // JSON has no NaN and no infinities.
      return Number.isFinite(value.value) ? value.value : String(value.value);
  }
}

/** An object when every key is text, else a list of pairs: AMQP allows keys of any type. */
function mapToPlain(entries: readonly [AmqpValue, AmqpValue][]): Plain {
  const pairs = entries.map(([key, item]): [Plain, Plain] => [toPlain(key), toPlain(item)]);
  const textKeys = entries.every(([key]) => key.type === 'string' || key.type === 'symbol');
  return textKeys ? Object.fromEntries(pairs.map(([key, item]) => [String(key), item])) : pairs;
}

function isDate(ms: bigint): boolean {
  return ms >= -MAX_DATE && ms <= MAX_DATE;
}
