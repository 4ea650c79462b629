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
import {
  AmqpFormatError,
  type AmqpValue,
  keyText,
  listItems,
  mapEntries,
  type RawEntry,
  readValue,
  type Section,
} from './amqp.ts';
import { bodyKind, bodyParts, type Envelope, openEnvelope } from './envelope.ts';
import { ANNOTATION, DEAD_LETTER, REPLAY } from './names.ts';
import { idText, integerOf, MAX_HEADER_TTL, timeOf, toProperty } from './propertyValue.ts';

/** What a letter whose number cannot be read has in its place; the broker begins numbering at 1. */
export const NO_NUMBER = '0' as SequenceNumber;

/** The application property is written as AMQP `int`, so no honest count is larger. */
const MAX_COUNT = 2n ** 31n - 1n;

/**
 * The letter that `message` (as peeked or received) is. Never throws: messages come from strangers, so a part
 * that cannot be read is left out, and a letter without readable number has {@link NO_NUMBER}.
 */
export function readLetter(message: Buffer): Letter {
  const envelope = openEnvelope(message);
  const header = list(envelope, envelope.header);
  const properties = list(envelope, envelope.properties);
  const annotations = map(envelope, envelope.messageAnnotations);
  const application = entries(envelope, envelope.applicationProperties);
  const evidence = typedValues(application);
  return {
    sequenceNumber: numberOf(annotations.get(ANNOTATION.sequenceNumber)) ?? NO_NUMBER,
    state: integerOf(annotations.get(ANNOTATION.state)) === 1n ? 'held' : 'active',
    messageId: text(properties[0]),
    to: text(properties[2]),
    subject: text(properties[3]),
    replyTo: text(properties[4]),
    correlationId: text(properties[5]),
    contentType: text(properties[6]),
    sessionId: text(properties[10]),
    partitionKey: text(annotations.get(ANNOTATION.partitionKey)),
    deadLetterSource: text(annotations.get(ANNOTATION.deadLetterSource)) || undefined,
    enqueuedAt: timeOf(annotations.get(ANNOTATION.enqueuedTime)) ?? 0,
    timeToLive: timeToLive(header, properties),
    deliveryCount: Number(integerOf(header[4]) ?? 0n),
    reason: stringOnly(evidence.get(DEAD_LETTER.reason)),
    description: stringOnly(evidence.get(DEAD_LETTER.description)),
    properties: application.map((entry) => toLetterProperty(entry)),
    propertySize: propertySize(application),
    body: summarize(envelope),
    bytes: message.length,
    replay: replayMark(evidence),
  };
}

/** When the lock on a received message ends, ms since 1970, if the broker said so. */
export function lockedUntilOf(message: Buffer): number | undefined {
  const envelope = openEnvelope(message);
  return timeOf(map(envelope, envelope.messageAnnotations).get(ANNOTATION.lockedUntil));
}

/**
 * Kind, size and fingerprint of the body. The fingerprint covers the contents, each with its length in front, not
 * the section's framing: a broker may write the same bytes as a short or a long binary.
 */
function summarize(envelope: Envelope): Letter['body'] {
  const kind = bodyKind(envelope);
  const hash = createHash('sha256').update(`${kind}\0`);
  let bytes = 0;
  for (const part of bodyParts(envelope)) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(part.length));
    hash.update(length).update(part);
    bytes += part.length;
  }
  return { kind, bytes, hash: hash.digest('hex') };
}

/**
 * The message's time to live. The header's field ends at 49.7 days, so the properties' two times come first:
 * clients write both, and their difference is the full value.
 */
function timeToLive(header: readonly AmqpValue[], properties: readonly AmqpValue[]): number | undefined {
  const expires = properties[8];
  const created = properties[9];
  if (expires?.type === 'timestamp' && created?.type === 'timestamp' && expires.value > created.value) {
    return Number(expires.value - created.value);
  }
  const ttl = integerOf(header[2]);
  // At its largest the header says "more than I can", and without the times that is for ever.
  return ttl === undefined || ttl >= MAX_HEADER_TTL ? undefined : Number(ttl);
}

/** Sizes of what goes back: without the two properties about the death. */
function propertySize(application: readonly RawEntry[]): Letter['propertySize'] {
  let longest = 0;
  let total = 0;
  for (const { key, value, bytes } of application) {
    const name = keyText(key) ?? '';
    if (name === DEAD_LETTER.reason || name === DEAD_LETTER.description) continue;
    const read = readable(() => readValue(value));
    longest = Math.max(longest, name.length, read?.type === 'string' ? read.value.length : value.length);
    total += bytes.length;
  }
  return { longest, total };
}

function replayMark(evidence: ReadonlyMap<string, AmqpValue>): ReplayMark {
  const seconds = integerOf(evidence.get(REPLAY.at));
  const at = seconds === undefined ? undefined : Number(seconds) * 1000;
  return {
    count: countOf(evidence.get(REPLAY.count)),
    planId: parsePlanId(text(evidence.get(REPLAY.id)) ?? ''),
    of: numberOf(evidence.get(REPLAY.of)),
    at: at !== undefined && Math.abs(at) <= 8.64e15 ? at : undefined,
  };
}

/** A count of replays; 0 for what is none. Other clients may have written it as another type, so digits count too. */
function countOf(value: AmqpValue | undefined): number {
  const digits = value?.type === 'string' && /^\d{1,10}$/.test(value.value) ? BigInt(value.value) : undefined;
  const count = digits ?? integerOf(value) ?? 0n;
  return count >= 0n && count <= MAX_COUNT ? Number(count) : 0;
}

function numberOf(value: AmqpValue | undefined): SequenceNumber | undefined {
  if (value === undefined) return undefined;
  return parseSequenceNumber(value.type === 'string' ? value.value : (integerOf(value)?.toString() ?? ''));
}

function toLetterProperty(entry: RawEntry): LetterProperty {
  return toProperty(keyText(entry.key) ?? idText(entry.key) ?? entry.key.type, entry.value);
}

function typedValues(from: readonly RawEntry[]): Map<string, AmqpValue> {
  const values = new Map<string, AmqpValue>();
  for (const entry of from) {
    const name = keyText(entry.key);
    const value = readable(() => readValue(entry.value));
    if (name !== undefined && value !== undefined) values.set(name, value);
  }
  return values;
}

function map(envelope: Envelope, section: Section | undefined): Map<string, AmqpValue> {
  return typedValues(entries(envelope, section));
}

function entries(envelope: Envelope, section: Section | undefined): RawEntry[] {
  return (section && readable(() => mapEntries(envelope.message, section.body))) ?? [];
}

function list(envelope: Envelope, section: Section | undefined): AmqpValue[] {
  const items = (section && readable(() => listItems(envelope.message, section.body))) ?? [];
  return items.map((item) => readable(() => readValue(item)) ?? { type: 'null', value: null });
}

function text(value: AmqpValue | undefined): string | undefined {
  return value && idText(value);
}

function stringOnly(value: AmqpValue | undefined): string | undefined {
  return value?.type === 'string' ? value.value : undefined;
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof AmqpFormatError) return undefined;
    throw error;
  }
}
