import type { Dialect, Evidence } from '../evidence.ts';
import { readException } from '../exceptions.ts';
import { ownFrame } from '../frames.ts';
import { causeBehind } from '../printed.ts';
import type { Sight } from '../sight.ts';
import { LIMIT, objectOf, present, textIn, traceIdOf } from '../text.ts';

const CONTENT_TYPE = 'application/vnd.masstransit';

/**
 * MassTransit. On a native dead-letter queue it writes only application properties, and no DeadLetterReason; it writes them when
 * it abandons, too, so a message that reached the delivery limit can carry them. The envelope in the body knows the message type.
 */
export const massTransit: Dialect = {
  name: 'masstransit',
  layer: 'framework',
  read(sight: Sight): Evidence | undefined {
    const isEnvelope = sight.letter.contentType?.startsWith(CONTENT_TYPE) === true;
    if (!isEnvelope && !sight.hasPrefix('MT-')) return undefined;
    const envelope = isEnvelope ? objectOf(sight.body.json()) : undefined;
    const headers = objectOf(envelope?.headers);
    const reason = sight.text('MT-Reason');
    const exceptionType = sight.text('MT-Fault-ExceptionType');
    const stack = sight.text('MT-Fault-StackTrace', LIMIT.stack);
    const retries = sight.count('MT-Fault-RetryCount');
    const printed = readException(stack);
    return present({
      reason,
      exceptionType,
      exceptionMessage: sight.text('MT-Fault-Message', LIMIT.message),
      ...(exceptionType !== undefined && causeBehind(exceptionType, printed)),
      frame: ownFrame(stack),
      failedAt: sight.time('MT-Fault-Timestamp'),
      attempts: retries === undefined ? undefined : retries + 1,
      consumer: sight.text('MT-Fault-ConsumerType') ?? sight.text('MT-Fault-InputAddress'),
      messageType:
        plainType(sight.text('MT-Fault-MessageType')) ??
        plainType(sight.text('MT-MessageType')) ??
        plainType(firstText(envelope?.messageType)),
      correlationId: sight.text('CorrelationId') ?? textIn(envelope, 'correlationId'),
      traceId: traceIdOf(sight.text('MT-Activity-Id') ?? textIn(headers, 'MT-Activity-Id')),
      // It moves what no consumer of the endpoint takes with the reason `dead-letter`; a fault has an exception.
      mechanism: reason === 'dead-letter' && exceptionType === undefined ? 'skipped' : undefined,
    });
  },
  payload: (body) => (objectOf(body) === undefined ? body : objectOf(body)?.message),
};

/** `urn:message:Ns:SubmitOrder` is the type `Ns.SubmitOrder`. */
function plainType(type: string | undefined): string | undefined {
  return type?.startsWith('urn:message:') ? type.slice('urn:message:'.length).replaceAll(':', '.') || undefined : type;
}

/** The most specific type comes first. */
function firstText(value: unknown): string | undefined {
  const [first] = Array.isArray(value) ? (value as unknown[]) : [];
  return textIn({ first }, 'first');
}
