/** Makes the message that goes back from the message that came. The whole of what a replay changes is in this file. */

import { OfficeError } from '../../errors.ts';
import { type EncodedMessage, encodedMessage, type ResendChange } from '../broker.ts';
import {
  AmqpFormatError,
  encode,
  encodeList,
  encodeMap,
  encodeSection,
  keyText,
  listItems,
  mapEntries,
  type RawEntry,
  readValue,
  SECTION,
  type Section,
} from './amqp.ts';
import { binaryContent, type Envelope, openEnvelope } from './envelope.ts';
import { BROKER_ANNOTATIONS, DEAD_LETTER, REPLAY } from './names.ts';
import { integerOf, MAX_HEADER_TTL } from './propertyValue.ts';

/** 9999-12-31T23:59:59.999Z: .NET clients write it for "never" and cannot read anything later. */
const MAX_EXPIRY = 253_402_300_799_999n;
const MAX_INT = 2 ** 31 - 1;
const NULL = encode.null();
const EMPTY = Buffer.alloc(0);

const HEADER_TTL = 2;
const MESSAGE_ID = 0;
const ABSOLUTE_EXPIRY = 8;
const CREATION = 9;

/** Never taken over: about the death, or replaced by this replay's own. */
const REPLACED: ReadonlySet<string> = new Set([
  DEAD_LETTER.reason,
  DEAD_LETTER.description,
  REPLAY.count,
  REPLAY.at,
  REPLAY.id,
  REPLAY.of,
  REPLAY.for,
  // Also when this plan wants no bypass: a sign left over from an earlier plan would suppress effects that are due.
  REPLAY.bypass,
  REPLAY.babelQueueBypass,
  REPLAY.sandbox,
]);

/**
 * The message to send in place of `message`. Everything but the following is taken over byte for byte:
 * the two dead-letter properties go; delivery count and first acquirer go back to their defaults; creation and
 * expiry time are renewed or dropped so that the time to live stays, or the one that the plan chose is set; the broker's annotations go by name; the replay
 * properties come. Throws `DLO_NOT_RESENDABLE` when `message` cannot be taken apart or has no body.
 */
export function reset(message: EncodedMessage, change: ResendChange): EncodedMessage {
  const envelope = openEnvelope(message);
  if (envelope.problem !== undefined) throw notResendable(envelope.problem);
  if (envelope.body.length === 0) throw notResendable('it has no body section');
  try {
    return encodedMessage(rebuild(envelope, change));
  } catch (cause) {
    if (cause instanceof AmqpFormatError) throw notResendable(cause.message, cause);
    throw cause;
  }
}

function rebuild(envelope: Envelope, change: ResendChange): Buffer {
  const { message } = envelope;
  for (const part of envelope.body) checkBody(message, part);
  const oldHeader = envelope.header ? listItems(message, envelope.header.body) : [];
  const oldProperties = envelope.properties ? listItems(message, envelope.properties.body) : [];
  // Durable, priority and ttl stay; first-acquirer and delivery-count behind them fall back to false and 0.
  const header = oldHeader.slice(0, HEADER_TTL + 1);
  const properties = [...oldProperties];
  if (change.timeToLive === undefined) renewTimes(header, properties, change.replayedAt);
  else setTimeToLive(header, properties, change.timeToLive);
  if (change.newMessageId !== undefined) setItem(properties, MESSAGE_ID, encode.string(change.newMessageId));
  return Buffer.concat([
    listSection(envelope, SECTION.header, envelope.header, oldHeader, header),
    // By the specification these are for one hop. The broker's own are dropped by name; which of the others are
    // the sender's cannot be known here, so they stay.
    annotations(envelope, SECTION.deliveryAnnotations, envelope.deliveryAnnotations),
    annotations(envelope, SECTION.messageAnnotations, envelope.messageAnnotations),
    listSection(envelope, SECTION.properties, envelope.properties, oldProperties, properties),
    applicationProperties(envelope, change, oldProperties[MESSAGE_ID]),
    ...envelope.body.map((part) => message.subarray(part.start, part.end)),
    envelope.footer ? message.subarray(envelope.footer.start, envelope.footer.end) : EMPTY,
  ]);
}

/** A list section with items `now`: the bytes that were there when nothing changed, none when there is nothing. */
function listSection(
  envelope: Envelope,
  code: number,
  was: Section | undefined,
  before: readonly Buffer[],
  now: readonly Buffer[],
): Buffer {
  if (was === undefined && now.length === 0) return EMPTY;
  const isSame = was !== undefined && before.length === now.length && now.every((item, i) => item === before[i]);
  return isSame ? envelope.message.subarray(was.start, was.end) : encodeSection(code, encodeList(now));
}

/**
 * The time to live is the difference of the two times. Up to 49.7 days the header says it too and the times go;
 * a header without it gets it. Above that only the times can say it, so they begin anew.
 */
function renewTimes(header: Buffer[], properties: Buffer[], replayedAt: number): void {
  const expires = timestamp(properties[ABSOLUTE_EXPIRY]);
  const created = timestamp(properties[CREATION]);
  const ttl = expires !== undefined && created !== undefined && expires > created ? expires - created : undefined;
  if (ttl !== undefined && ttl > MAX_HEADER_TTL) {
    const expiry = BigInt(replayedAt) + ttl;
    setItem(properties, ABSOLUTE_EXPIRY, encode.timestamp(Number(expiry < MAX_EXPIRY ? expiry : MAX_EXPIRY)));
    setItem(properties, CREATION, encode.timestamp(replayedAt));
    return;
  }
  if (properties[ABSOLUTE_EXPIRY] !== undefined) properties[ABSOLUTE_EXPIRY] = NULL;
  if (properties[CREATION] !== undefined) properties[CREATION] = NULL;
  const told = header[HEADER_TTL] && readValue(header[HEADER_TTL]);
  const inHeader = told !== undefined && told.type !== 'null';
  // "More than the header can say" is for ever where no times say how much; alone it would become 49.7 days.
  if (ttl === undefined && integerOf(told) === MAX_HEADER_TTL) header[HEADER_TTL] = NULL;
  if (ttl !== undefined && !inHeader) setItem(header, HEADER_TTL, encode.uint(Number(ttl)));
}

/** What the plan says instead of what the message said. An absolute expiry would count more than the header, so it goes. */
function setTimeToLive(header: Buffer[], properties: Buffer[], timeToLive: number | 'drop'): void {
  for (const time of [ABSOLUTE_EXPIRY, CREATION]) if (properties[time] !== undefined) properties[time] = NULL;
  if (timeToLive !== 'drop') setItem(header, HEADER_TTL, encode.uint(timeToLive));
  else if (header[HEADER_TTL] !== undefined) header[HEADER_TTL] = NULL;
}

function annotations(envelope: Envelope, code: number, was: Section | undefined): Buffer {
  if (was === undefined) return EMPTY;
  const all = mapEntries(envelope.message, was.body);
  const kept = all.filter((entry) => !BROKER_ANNOTATIONS.has(keyText(entry.key) ?? ''));
  if (kept.length === all.length) return envelope.message.subarray(was.start, was.end);
  return kept.length === 0 ? EMPTY : encodeSection(code, encodeMap(kept.map((entry) => entry.bytes)));
}

function applicationProperties(envelope: Envelope, change: ResendChange, oldId: Buffer | undefined): Buffer {
  const was = envelope.applicationProperties;
  const all = was ? mapEntries(envelope.message, was.body) : [];
  const kept = all.filter((entry) => !REPLACED.has(keyText(entry.key) ?? ''));
  const added = [...replayProperties(change, kept), ...originalId(change, kept, oldId)];
  return encodeSection(SECTION.applicationProperties, encodeMap([...kept.map((entry) => entry.bytes), ...added]));
}

function replayProperties(change: ResendChange, kept: readonly RawEntry[]): Buffer[] {
  const added = [
    entry(REPLAY.count, encode.int(Math.min(change.replayCount, MAX_INT))),
    entry(REPLAY.at, encode.long(BigInt(Math.floor(change.replayedAt / 1000)))),
    entry(REPLAY.id, encode.string(change.planId)),
    entry(REPLAY.of, encode.string(change.replayOf)),
  ];
  if (change.replayFor !== undefined) added.push(entry(REPLAY.for, encode.string(change.replayFor)));
  if (change.sandbox) added.push(entry(REPLAY.sandbox, encode.string('1')));
  if (change.bypass) {
    added.push(entry(REPLAY.bypass, encode.string('1')));
    const isBabelQueue = kept.some((property) => keyText(property.key)?.startsWith('bq-'));
    if (isBabelQueue) added.push(entry(REPLAY.babelQueueBypass, encode.string('1')));
  }
  return added;
}

/** The id before the first new one, in the type it had; an earlier replay's note of it is the older and stays. */
function originalId(change: ResendChange, kept: readonly RawEntry[], oldId: Buffer | undefined): Buffer[] {
  if (change.newMessageId === undefined || oldId === undefined || readValue(oldId).type === 'null') return [];
  const noted = kept.some((property) => keyText(property.key) === REPLAY.originalMessageId);
  return noted ? [] : [entry(REPLAY.originalMessageId, oldId)];
}

function entry(name: string, value: Buffer): Buffer {
  return Buffer.concat([encode.string(name), value]);
}

/** Puts `value` at `index` of a list section, filling up with nulls. */
function setItem(items: Buffer[], index: number, value: Buffer): void {
  while (items.length <= index) items.push(NULL);
  items[index] = value;
}

function timestamp(encoded: Buffer | undefined): bigint | undefined {
  const value = encoded && readValue(encoded);
  return value?.type === 'timestamp' ? integerOf(value) : undefined;
}

function checkBody(message: Buffer, part: Section): void {
  const inner = message.subarray(part.body, part.end);
  if (part.code === SECTION.data && binaryContent(inner) === undefined) {
    throw new AmqpFormatError('a data section does not hold binary');
  }
  if (part.code === SECTION.sequence) listItems(message, part.body);
}

function notResendable(why: string, cause?: unknown): OfficeError {
  return new OfficeError('DLO_NOT_RESENDABLE', `The message cannot be sent back exactly as it came: ${why}.`, {
    cause,
  });
}
