/** A Service Bus message as the real host hands it to a Node function (seen in the host's Service Bus extension, version 5). */
import type { ServiceBusReceivedMessage } from '@azure/service-bus';
import type { TypedData } from './core.ts';
import type { Invocation } from './invoke.ts';
import { encodeMetadata, overlayBody, toDateTime } from './triggerMetadata.ts';

/** .NET's last moment: what a message that never expires shows as its expiry. */
const never = '9999-12-31T23:59:59.9999999';

/**
 * Builds what the function gets: the body as text (which the library then tries as JSON), or as bytes when the binding says
 * `dataType: 'binary'`, and the metadata.
 *
 * @throws Error for a body that .NET could not bind: an AMQP sequence, or a value that is not text.
 */
export function toInvocation(message: ServiceBusReceivedMessage, dataType: unknown): Invocation {
  const data = toBody(message, dataType === 'binary');
  const metadata = toMetadata(message);
  const properties = message.applicationProperties;
  const traceParent = properties?.['Diagnostic-Id'] ?? properties?.traceparent;
  return {
    data,
    // As the real host: properties of a JSON body hide metadata of the same name.
    metadata: data.string === undefined ? metadata : overlayBody(metadata, data.string),
    traceParent: typeof traceParent === 'string' ? traceParent : undefined,
  };
}

/** What a run by hand gets: a body, and metadata only from the body's own properties. */
export function serviceBusInvocation(text: string): Invocation {
  return { data: { string: text }, metadata: overlayBody({}, text) };
}

function toBody(message: ServiceBusReceivedMessage, binary: boolean): TypedData {
  const bodyType = message._rawAmqpMessage.bodyType ?? 'data';
  const body: unknown = message.body;
  if (bodyType === 'data') {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(String(body ?? ''));
    return binary ? { bytes } : { string: bytes.toString() };
  }
  if (bodyType === 'value' && typeof body === 'string' && !binary) return { string: body };
  throw new Error(
    `A message with an AMQP ${bodyType} body (${typeof body}) cannot be bound to ${binary ? 'bytes' : 'text'}.`,
  );
}

function toMetadata(message: ServiceBusReceivedMessage): Record<string, TypedData> {
  const properties = toJsonProperties(message.applicationProperties);
  const expires = toExpiry(message);
  const { enqueuedTimeUtc: enqueued, sequenceNumber } = message;
  const metadata = encodeMetadata({
    MessageId: text(message.messageId),
    // The header counts earlier deliveries, .NET counts this one too.
    DeliveryCount: (message.deliveryCount ?? 0) + 1,
    DeadLetterSource: message.deadLetterSource,
    LockToken: message.lockToken,
    ExpiresAt: `${expires}+00:00`,
    ExpiresAtUtc: `${expires}Z`,
    EnqueuedTime: enqueued && toDateTime(enqueued, '+00:00'),
    EnqueuedTimeUtc: enqueued && toDateTime(enqueued, 'Z'),
    ContentType: message.contentType,
    ReplyTo: message.replyTo,
    To: message.to,
    Subject: message.subject,
    Label: message.subject,
    CorrelationId: text(message.correlationId),
    SessionId: message.sessionId,
    ReplyToSessionId: message.replyToSessionId,
    PartitionKey: message.partitionKey,
    TransactionPartitionKey: text(message._rawAmqpMessage.messageAnnotations?.['x-opt-via-partition-key']),
    ApplicationProperties: properties,
    UserProperties: properties,
  });
  // All digits go on the way; JSON.parse in the library rounds them above 2^53, as in Azure.
  if (sequenceNumber !== undefined) metadata.SequenceNumber = { json: sequenceNumber.toString() };
  return metadata;
}

function toExpiry(message: ServiceBusReceivedMessage): string {
  const absolute = message._rawAmqpMessage.properties?.absoluteExpiryTime;
  if (absolute) return toDateTime(new Date(absolute), 'Z').slice(0, -1);
  if (message.timeToLive === undefined || !message.expiresAtUtc) return never;
  return toDateTime(message.expiresAtUtc, 'Z').slice(0, -1);
}

/** Message and correlation ids may be numbers or GUIDs on the wire; .NET has text. */
function text(id: unknown): string | undefined {
  if (id === undefined || id === null) return undefined;
  return Buffer.isBuffer(id) ? toGuid(id) : String(id);
}

/** Application properties as .NET values would appear in JSON. */
function toJsonProperties(properties: Record<string, unknown> | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties ?? {}).map(([name, value]) => [name, toJsonValue(value)]));
}

function toJsonValue(value: unknown): unknown {
  if (value instanceof Date) return toDateTime(value, 'Z');
  if (!Buffer.isBuffer(value)) return value;
  // The AMQP client leaves 64-bit integers it cannot hold, and GUIDs, as their bytes.
  if (value.length === 8) return Number(value.readBigInt64BE());
  return value.length === 16 ? toGuid(value) : value.toString('base64');
}

function toGuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
