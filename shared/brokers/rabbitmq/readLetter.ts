/** Reads a letter from the bytes of its message. */
import { createHash } from 'node:crypto';
import {
  type Letter,
  type LetterProperty,
  parsePlanId,
  parseSequenceNumber,
  type ReplayMark,
  type SequenceNumber,
} from '../../letter.ts';
import { openEnvelope } from './envelope.ts';
import { FieldFormatError, type FieldValue, type RawField, readField } from './fieldTable.ts';
import { FOREIGN_COUNT, HEADER, isReset, REPLAY } from './names.ts';
import { headersOf, type PropertyName, type RawProperties, readProperties, shortText } from './properties.ts';
import { originalExpiration } from './reset.ts';

/** Largest count that a 32-bit header can say. */
const MAX_COUNT = 2n ** 31n - 1n;
/** Beyond this `Date` has no text, seconds. */
const MAX_SECONDS = 8_640_000_000_000n;

/**
 * The letter that `message` is, under the number the office gave it, taken at `takenAt` (ms since 1970). Never throws: messages come
 * from strangers, so what cannot be read is left out.
 */
export function readLetter(message: Buffer, sequenceNumber: SequenceNumber, takenAt: number): Letter {
  const { body, properties: bytes } = openEnvelope(message);
  const properties = readable(() => readProperties(bytes)) ?? new Map<PropertyName, Buffer>();
  const fields = readable(() => headersOf(properties)) ?? [];
  const headers = new Map<string, FieldValue>();
  for (const { name, value } of fields) {
    const read = readable(() => readField(value));
    if (read !== undefined) headers.set(name, read);
  }
  const text = (name: PropertyName) => shortText(properties, name)?.toString() || undefined;
  const deaths = deathsOf(headers.get(HEADER.deaths));
  return {
    sequenceNumber,
    // Taken into custody it is delivered to nobody any more.
    state: 'held',
    messageId: text('messageId'),
    correlationId: text('correlationId'),
    subject: text('type'),
    contentType: text('contentType'),
    sessionId: undefined,
    partitionKey: undefined,
    to: undefined,
    replyTo: text('replyTo'),
    // The broker keeps no time of its own; the first death is the earliest it tells.
    enqueuedAt: deaths.at(-1)?.at ?? timestampOf(properties) ?? takenAt,
    timeToLive: readable(() => originalExpiration(fields)) ?? expirationOf(text('expiration')),
    deliveryCount: countOf(headers.get(HEADER.deliveryCount)),
    deadLetterSource: undefined,
    reason: deaths[0]?.reason,
    description: undefined,
    properties: fields.map(({ name }): LetterProperty => toProperty(name, headers.get(name))),
    propertySize: sizeOf(fields),
    body: { kind: 'data', bytes: body.length, hash: createHash('sha256').update(body).digest('hex') },
    bytes: message.length,
    replay: replayMark(headers),
  };
}

/** Headers that a replay leaves out count for nothing: they do not go back. */
function sizeOf(fields: readonly RawField[]): Letter['propertySize'] {
  const kept = fields.filter(({ name }) => !isReset(name)).map(({ bytes }) => bytes.length);
  return { longest: Math.max(0, ...kept), total: kept.reduce((sum, length) => sum + length, 0) };
}

interface Death {
  readonly reason: string | undefined;
  readonly at: number | undefined;
}

/** What the header of deaths tells, newest first. */
function deathsOf(value: FieldValue | undefined): Death[] {
  if (value?.type !== 'array') return [];
  return value.value.flatMap((entry) => {
    if (entry.type !== 'table') return [];
    const fields = new Map(entry.value);
    const reason = fields.get('reason');
    return [{ reason: reason?.type === 'string' ? reason.value : undefined, at: secondsOf(fields.get('time')) }];
  });
}

function timestampOf(properties: RawProperties): number | undefined {
  const bytes = properties.get('timestamp');
  return bytes && secondsOf({ type: 'timestamp', value: bytes.readBigUInt64BE() });
}

/** A timestamp in ms since 1970. */
function secondsOf(value: FieldValue | undefined): number | undefined {
  if (value?.type !== 'timestamp' || value.value > MAX_SECONDS) return undefined;
  return Number(value.value) * 1000;
}

function expirationOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

function replayMark(headers: ReadonlyMap<string, FieldValue>): ReplayMark {
  const textOfHeader = (name: string) => {
    const value = headers.get(name);
    return value?.type === 'string' ? value.value : '';
  };
  const seconds = integerOf(headers.get(REPLAY.at));
  const at = seconds === undefined || seconds < 0n || seconds > MAX_SECONDS ? undefined : Number(seconds) * 1000;
  return {
    // Scripts count with another name: the larger of both decides.
    count: Math.max(countOf(headers.get(REPLAY.count)), countOf(headers.get(FOREIGN_COUNT))),
    planId: parsePlanId(textOfHeader(REPLAY.id)),
    of: parseSequenceNumber(textOfHeader(REPLAY.of)),
    at,
  };
}

/** A count; 0 for what is none. Clients write it in any integer type or as digits. */
function countOf(value: FieldValue | undefined): number {
  const digits = value?.type === 'string' && /^\d{1,10}$/.test(value.value) ? BigInt(value.value) : undefined;
  const count = digits ?? integerOf(value) ?? 0n;
  return count >= 0n && count <= MAX_COUNT ? Number(count) : 0;
}

function integerOf(value: FieldValue | undefined): bigint | undefined {
  if (typeof value?.value === 'bigint' && value.type !== 'decimal') return value.value;
  if (typeof value?.value === 'number' && Number.isInteger(value.value)) return BigInt(value.value);
  return undefined;
}

/** A header as records, lists and rules show it; wide integers are text, times ISO text, bytes base64, nested values JSON text. */
function toProperty(name: string, value: FieldValue | undefined): LetterProperty {
  if (value === undefined) return { name, type: 'unreadable', value: null };
  const plain = toPlain(value);
  return {
    name,
    type: SHOWN[value.type] ?? value.type,
    value: typeof plain === 'object' && plain !== null ? JSON.stringify(plain) : plain,
  };
}

/** The words that are used for the types of other brokers. */
const SHOWN: Readonly<Record<string, string>> = { void: 'null', bytes: 'binary', table: 'map' };

type Plain = string | number | boolean | null | Plain[] | { [key: string]: Plain };

function toPlain(value: FieldValue): Plain {
  switch (value.type) {
    case 'void':
    case 'boolean':
    case 'string':
      return value.value;
    case 'long':
      return Number.isSafeInteger(Number(value.value)) ? Number(value.value) : value.value.toString();
    case 'timestamp':
      return value.value > MAX_SECONDS ? value.value.toString() : new Date(Number(value.value) * 1000).toISOString();
    case 'decimal':
      return `${value.value}e-${value.scale}`;
    case 'bytes':
      return value.value.toString('base64');
    case 'array':
      return value.value.map(toPlain);
    case 'table':
      return Object.fromEntries(value.value.map(([name, item]) => [name, toPlain(item)]));
    default:
      // JSON has no NaN and no infinities.
      return Number.isFinite(value.value) ? value.value : String(value.value);
  }
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof FieldFormatError) return undefined;
    throw error;
  }
}
