/**
 * Messages as the bytes that came. A broker writes into three sections only: the header (delivery count), the message
 * annotations (its own entries) and the application properties (what a settlement adds). Everything else is handed on
 * without being decoded, so no AMQP type can be lost.
 */
import {
  AmqpFormatError,
  encode,
  encodeList,
  encodeMap,
  encodeSection,
  keyText,
  listItems,
  mapEntries,
  readValue,
  SECTION,
  type Section,
  sectionsOf,
  valueEnd,
} from '../../shared/brokers/serviceBus/amqp.ts';
import { keep } from './keeping.ts';
import { checkValues } from './well-formed.ts';

/** An application property that a settlement adds: its value as the encoded AMQP value the client sent. */
export interface AddedProperty {
  readonly name: string;
  readonly value: Buffer;
}

/** A message at rest. Offsets point into `bytes`. */
export interface StoredMessage {
  readonly bytes: Buffer;
  /** Inner value of the section, or -1 when the message has none. */
  readonly header: number;
  readonly annotations: number;
  readonly applicationProperties: number;
  /** Where the sections after the annotations begin: properties, application properties, body, footer. */
  readonly rest: number;
  readonly body: number;
  readonly bodyEnd: number;
}

/** What the broker reads of a message that comes in. */
export interface Arrival {
  readonly message: StoredMessage;
  /** Header `ttl`, milliseconds. */
  readonly ttl: number | undefined;
  /** Property `absolute-expiry-time`, milliseconds since 1970. */
  readonly absoluteExpiry: number | undefined;
  /** Annotation `x-opt-scheduled-enqueue-time`, milliseconds since 1970. */
  readonly scheduledFor: number | undefined;
  /** Property `message-id` as text; a message always has one once it is taken in. */
  readonly messageId: string;
  /** Property `group-id`. */
  readonly sessionId: string | undefined;
  /** Annotation `x-opt-partition-key`. */
  readonly partitionKey: string | undefined;
}

/** What keeps messages together in one partition. */
export type Keys = Pick<Arrival, 'sessionId' | 'partitionKey'>;

/** What the broker writes into a message on its way out. Times are milliseconds since 1970. */
export interface DeliveryFacts {
  readonly deliveryCount: number;
  readonly sequenceNumber: bigint;
  readonly enqueueSequenceNumber: bigint;
  readonly enqueuedAt: number;
  /** Present only on a message handed out under a lock. */
  readonly lockedUntil?: number;
  readonly deferred: boolean;
  readonly scheduled?: boolean;
  /** The entity in which the message died before it was forwarded out of the dead-letter queue. */
  readonly deadLetterSource?: string | undefined;
}

// Annotations that state what only a broker can know. A sender's own claims under these names are dropped.
const BROKER_ANNOTATIONS = new Set([
  'x-opt-sequence-number',
  'x-opt-enqueue-sequence-number',
  'x-opt-enqueued-time',
  'x-opt-locked-until',
  'x-opt-message-state',
  'x-opt-deadletter-source',
  'x-opt-lock-token',
]);

const NULL = encode.null();
const KEYS = {
  sequence: encode.symbol('x-opt-sequence-number'),
  enqueueSequence: encode.symbol('x-opt-enqueue-sequence-number'),
  enqueued: encode.symbol('x-opt-enqueued-time'),
  lockedUntil: encode.symbol('x-opt-locked-until'),
  state: encode.symbol('x-opt-message-state'),
  deadLetterSource: encode.symbol('x-opt-deadletter-source'),
};
const MESSAGE_ID = 0;
const ABSOLUTE_EXPIRY = 8;
const GROUP_ID = 10;

/** The bytes of the binary value at `at`, not copied. */
export function binaryAt(bytes: Buffer, at: number): Buffer {
  const end = valueEnd(bytes, at);
  if (bytes[at] === 0xa0) return bytes.subarray(at + 2, end);
  if (bytes[at] === 0xb0) return bytes.subarray(at + 5, end);
  throw new AmqpFormatError('expected a binary value');
}

/** The messages of a batch envelope (message format 0x80013700): one encoded message in each data section. */
export function messagesOfBatch(envelope: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (const section of sectionsOf(envelope)) {
    if (section.code === SECTION.data) messages.push(binaryAt(envelope, section.body));
  }
  if (messages.length === 0) throw new AmqpFormatError('a batch holds no messages');
  return messages;
}

/** What a batch envelope says about all its messages. Everything else on it is ignored, as the service does. */
export function keysOfBatch(envelope: Buffer): Keys {
  const sections = sectionsOf(envelope);
  const at = (code: number): number => sections.find((section) => section.code === code)?.body ?? -1;
  const properties = at(SECTION.properties);
  return {
    sessionId: properties < 0 ? undefined : idText(listItems(envelope, properties)[GROUP_ID]),
    partitionKey: annotationsOf(envelope, at(SECTION.messageAnnotations)).partitionKey,
  };
}

/**
 * Takes an encoded message in, copying its bytes out of the network buffer. A missing message id is put in: the
 * JavaScript client keys its lock renewal by it and fails on settlement without one (seen with 7.9.5).
 * Throws {@link AmqpFormatError} for anything that is not a well-formed message.
 */
export function receiveMessage(encoded: Buffer, newId: () => string): Arrival {
  checkValues(encoded);
  const sections = sectionsOf(encoded);
  checkOrder(sections);
  const properties = sections.find((section) => section.code === SECTION.properties);
  const items = properties ? listItems(encoded, properties.body) : [];
  if (!isNull(items[MESSAGE_ID])) return arrivalOf(layOut(keep([encoded]), sections), items);
  items[MESSAGE_ID] = encode.string(newId());
  const section = encodeSection(SECTION.properties, encodeList(items));
  const at = properties?.start ?? sections.find((next) => next.code > SECTION.properties)?.start ?? encoded.length;
  const bytes = keep([encoded.subarray(0, at), section, encoded.subarray(properties?.end ?? at)]);
  return arrivalOf(layOut(bytes, sectionsOf(bytes)), items);
}

/** Reads a stored message anew, as it is when it goes on to another entity. */
export function readAgain(message: StoredMessage): Arrival {
  const properties = sectionsOf(message.bytes).find((section) => section.code === SECTION.properties);
  return arrivalOf(message, properties ? listItems(message.bytes, properties.body) : []);
}

function arrivalOf(message: StoredMessage, properties: readonly Buffer[]): Arrival {
  return {
    message,
    ttl: numberOf(headerItems(message)[2], 'uint'),
    absoluteExpiry: numberOf(properties[ABSOLUTE_EXPIRY], 'timestamp'),
    messageId: idText(properties[MESSAGE_ID]) ?? '',
    sessionId: idText(properties[GROUP_ID]),
    ...annotationsOf(message.bytes, message.annotations),
  };
}

function checkOrder(sections: readonly Section[]): void {
  let previous: Section | undefined;
  for (const section of sections) {
    if (previous) {
      const repeats = section.code === SECTION.data || section.code === SECTION.sequence;
      if (section.code < previous.code || (section.code === previous.code && !repeats)) {
        throw new AmqpFormatError(`section 0x${section.code.toString(16)} stands out of order`);
      }
      if (previous.code >= SECTION.data && section.code < SECTION.footer && section.code !== previous.code) {
        throw new AmqpFormatError('a message body mixes sections of different kinds');
      }
    }
    previous = section;
  }
}

function layOut(bytes: Buffer, sections: readonly Section[]): StoredMessage {
  const at = (code: number): number => sections.find((section) => section.code === code)?.body ?? -1;
  const startFrom = (code: number): number => sections.find((section) => section.code >= code)?.start ?? bytes.length;
  const message = {
    bytes,
    header: at(SECTION.header),
    annotations: at(SECTION.messageAnnotations),
    applicationProperties: at(SECTION.applicationProperties),
    rest: startFrom(SECTION.properties),
    body: startFrom(SECTION.data),
    bodyEnd: startFrom(SECTION.footer),
  };
  // Walked once here so that a delivery can never stumble over a message that was accepted.
  headerItems(message);
  if (message.annotations >= 0) mapEntries(bytes, message.annotations);
  if (message.applicationProperties >= 0) mapEntries(bytes, message.applicationProperties);
  return message;
}

/** The message with application properties added or replaced; all other entries and sections keep their bytes. */
export function withProperties(message: StoredMessage, added: readonly AddedProperty[]): StoredMessage {
  if (added.length === 0) return message;
  const changes = new Map(added.map((property) => [property.name, property.value]));
  const entries = propertiesBut(message, (name) => changes.has(name));
  for (const [name, value] of changes) entries.push(Buffer.concat([encode.string(name), value]));
  return withSection(message, SECTION.applicationProperties, encodeMap(entries), message.body);
}

/** The message without an application property; the others keep their bytes. */
export function withoutProperty(message: StoredMessage, name: string): StoredMessage {
  if (message.applicationProperties < 0) return message;
  const entries = propertiesBut(message, (other) => other === name);
  return withSection(message, SECTION.applicationProperties, encodeMap(entries), message.body);
}

/** The message with a text, or null, at one place of its properties section; the others keep their bytes. */
export function withPropertyText(message: StoredMessage, place: number, text: string | undefined): StoredMessage {
  const section = sectionsOf(message.bytes).find(({ code }) => code === SECTION.properties);
  const items = section ? listItems(message.bytes, section.body) : [];
  while (items.length <= place) items.push(NULL);
  items[place] = text === undefined ? NULL : encode.string(text);
  return withSection(message, SECTION.properties, encodeList(items), message.rest);
}

function propertiesBut(message: StoredMessage, isLeftOut: (name: string) => boolean): Buffer[] {
  const { bytes, applicationProperties: at } = message;
  const entries = at >= 0 ? mapEntries(bytes, at) : [];
  return entries.filter(({ key }) => !isLeftOut(keyText(key) ?? '')).map((entry) => entry.bytes);
}

/** The message with another section of that kind, which stands at `place` where there was none. */
function withSection({ bytes }: StoredMessage, code: number, value: Buffer, place: number): StoredMessage {
  const old = sectionsOf(bytes).find((section) => section.code === code);
  const start = old?.start ?? place;
  const changed = keep([bytes.subarray(0, start), encodeSection(code, value), bytes.subarray(old?.end ?? start)]);
  return layOut(changed, sectionsOf(changed));
}

/**
 * The encoded message as a receiver or a peek gets it. Delivery annotations end here, they are meant for one hop
 * (AMQP 1.0, part 3, 3.2.2).
 */
export function deliver(message: StoredMessage, facts: DeliveryFacts, omitBody = false): Buffer {
  const { bytes } = message;
  const parts = [
    encodeSection(SECTION.header, header(message, facts.deliveryCount)),
    encodeSection(SECTION.messageAnnotations, annotations(message, facts)),
  ];
  if (omitBody) parts.push(bytes.subarray(message.rest, message.body), bytes.subarray(message.bodyEnd));
  else parts.push(bytes.subarray(message.rest));
  return Buffer.concat(parts);
}

function header(message: StoredMessage, deliveryCount: number): Buffer {
  const items = headerItems(message).slice(0, 4);
  while (items.length < 4) items.push(NULL);
  return encodeList([...items, encode.uint(deliveryCount)]);
}

function annotations(message: StoredMessage, facts: DeliveryFacts): Buffer {
  const entries: Buffer[] = [];
  if (message.annotations >= 0) {
    for (const entry of mapEntries(message.bytes, message.annotations)) {
      if (!BROKER_ANNOTATIONS.has(keyText(entry.key) ?? '')) entries.push(entry.bytes);
    }
  }
  const add = (key: Buffer, value: Buffer) => entries.push(Buffer.concat([key, value]));
  add(KEYS.enqueued, encode.timestamp(facts.enqueuedAt));
  add(KEYS.sequence, encode.long(facts.sequenceNumber));
  add(KEYS.enqueueSequence, encode.long(facts.enqueueSequenceNumber));
  add(KEYS.state, encode.int(facts.scheduled ? 2 : facts.deferred ? 1 : 0));
  if (facts.deadLetterSource !== undefined) add(KEYS.deadLetterSource, encode.string(facts.deadLetterSource));
  if (facts.lockedUntil !== undefined) add(KEYS.lockedUntil, encode.timestamp(facts.lockedUntil));
  return encodeMap(entries);
}

function headerItems(message: StoredMessage): Buffer[] {
  return message.header >= 0 ? listItems(message.bytes, message.header) : [];
}

function annotationsOf(bytes: Buffer, at: number): Pick<Arrival, 'scheduledFor' | 'partitionKey'> {
  let scheduledFor: number | undefined;
  let partitionKey: string | undefined;
  for (const entry of at < 0 ? [] : mapEntries(bytes, at)) {
    const key = keyText(entry.key);
    if (key === 'x-opt-scheduled-enqueue-time') scheduledFor = numberOf(entry.value, 'timestamp');
    if (key === 'x-opt-partition-key') partitionKey = idText(entry.value);
  }
  return { scheduledFor, partitionKey };
}

/** An id or key as text, whatever AMQP type a client gave it; `undefined` for none. */
function idText(item: Buffer | undefined): string | undefined {
  if (item === undefined || isNull(item)) return undefined;
  const value = readValue(item);
  if (value.type === 'string' || value.type === 'symbol') return value.value;
  return `${value.type}:${item.toString('hex')}`;
}

function isNull(item: Buffer | undefined): boolean {
  return item === undefined || item[0] === 0x40;
}

function numberOf(item: Buffer | undefined, type: 'uint' | 'timestamp'): number | undefined {
  if (item === undefined || isNull(item)) return undefined;
  const value = readValue(item);
  if (value.type !== type) throw new AmqpFormatError(`expected a ${type}, found a ${value.type}`);
  return Number(value.value);
}
