import type { Dialect, Evidence } from '../evidence.ts';
import { readException } from '../exceptions.ts';
import { ownFrame } from '../frames.ts';
import type { Sight } from '../sight.ts';
import { isoTime, LIMIT, present, traceIdOf, typeName } from '../text.ts';

/**
 * NServiceBus: headers as application properties. `StackTrace` holds the printed exception, so it knows inner ones whose type
 * has no header of its own. How often it was tried is not among them: `Retries` counts the rounds of delayed retries.
 */
export const nServiceBus: Dialect = {
  name: 'nservicebus',
  layer: 'framework',
  read(sight: Sight): Evidence | undefined {
    if (!sight.hasPrefix('NServiceBus.')) return undefined;
    const stack = sight.text('NServiceBus.ExceptionInfo.StackTrace', LIMIT.stack);
    const printed = readException(stack);
    const causeType = sight.text('NServiceBus.ExceptionInfo.InnerExceptionType') ?? printed.causeType;
    return present({
      exceptionType: sight.text('NServiceBus.ExceptionInfo.ExceptionType') ?? printed.exceptionType,
      exceptionMessage: sight.text('NServiceBus.ExceptionInfo.Message', LIMIT.message) ?? printed.exceptionMessage,
      causeType,
      causeMessage: causeType === printed.causeType ? printed.causeMessage : undefined,
      frame: ownFrame(stack),
      failedAt: timeOfFailure(sight.text('NServiceBus.TimeOfFailure')),
      consumer: sight.text('NServiceBus.ProcessingEndpoint') ?? queueOf(sight.text('NServiceBus.FailedQ')),
      messageType: typeName(sight.text('NServiceBus.EnclosedMessageTypes', LIMIT.reason)),
      correlationId: sight.text('NServiceBus.CorrelationId'),
      traceId: traceIdOf(sight.text('traceparent')),
    });
  },
};

/** Its wire format is `2014-11-11 02:26:58:000462 Z`, with microseconds behind a colon; ISO 8601 is understood too. */
function timeOfFailure(text: string | undefined): number | undefined {
  const parts = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d):(\d{6}) Z$/.exec(text ?? '');
  return parts === null ? isoTime(text) : isoTime(`${parts[1]}T${parts[2]}.${parts[3]}Z`);
}

/** MSMQ wrote `endpoint@MACHINE`. */
function queueOf(address: string | undefined): string | undefined {
  const at = address?.indexOf('@') ?? -1;
  return at > 0 ? address?.slice(0, at) : address;
}
