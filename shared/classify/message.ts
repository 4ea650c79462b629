import type { Evidence } from './evidence.ts';
import type { Sight } from './sight.ts';
import { clean, LIMIT, present, traceIdOf } from './text.ts';

/**
 * What the message itself tells, whoever handled it: the subject is its type, unless a dialect knows better. The trace is the
 * sender's: `Diagnostic-Id` is written by the Service Bus clients, `traceparent` by OpenTelemetry.
 */
export function messageEvidence(sight: Sight): Evidence {
  return present({
    messageType: clean(sight.letter.subject, LIMIT.name),
    correlationId: clean(sight.letter.correlationId, LIMIT.name),
    traceId: traceIdOf(sight.text('Diagnostic-Id')) ?? traceIdOf(sight.text('traceparent')),
  });
}
