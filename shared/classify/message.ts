import type { Evidence } from './evidence.ts';
import type { Sight } from './sight.ts';
import { clean, LIMIT, present, traceIdOf } from './text.ts';

/**
 * What the message itself tells, whoever handled it: the header `message-type` or the subject is its type, unless a dialect knows
 * better. Where it came from is the broker's word, written when it forwarded the letter out of another dead-letter queue. The trace is the
 * sender's: `Diagnostic-Id` is written by the Service Bus clients, `traceparent` by OpenTelemetry.
 */
export function messageEvidence(sight: Sight): Evidence {
  return present({
    // Wolverine's own header, also on letters that it dead-lettered without a word about an exception.
    messageType: sight.text('message-type') ?? clean(sight.letter.subject, LIMIT.name),
    correlationId: clean(sight.letter.correlationId, LIMIT.name),
    deadLetterSource: clean(sight.letter.deadLetterSource, LIMIT.name),
    traceId: traceIdOf(sight.text('Diagnostic-Id')) ?? traceIdOf(sight.text('traceparent')),
  });
}
