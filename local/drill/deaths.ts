/** How four frameworks dead-letter a message of which a handler has thrown: each leaves its own headers. */
import type { DeadLetterOptions } from '@azure/service-bus';

export type Framework = 'MassTransit' | 'Wolverine' | 'NServiceBus' | 'plain .NET';

/** An exception of .NET, as its frameworks print it. */
export interface Thrown {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
}

type Settlement = Partial<DeadLetterOptions> & Record<string, string | number>;

/** The settlement with which a framework gives a message up at `now` (ms since 1970). */
export function givenUp(
  framework: Framework,
  queue: string,
  messageType: string,
  thrown: Thrown,
  now: number,
): Settlement {
  const { type, message, stack } = thrown;
  const printed = `${type}: ${message}\n${stack}`;
  const at = new Date(now).toISOString();
  switch (framework) {
    case 'MassTransit': // writes no reason of its own: only properties
      return {
        'MT-Reason': 'fault',
        'MT-Fault-ExceptionType': type,
        'MT-Fault-Message': message,
        'MT-Fault-StackTrace': stack,
        'MT-Fault-Timestamp': at,
        'MT-Fault-RetryCount': 3,
        'MT-Fault-MessageType': messageType,
        'MT-Fault-InputAddress': `sb://contoso.servicebus.windows.net/${queue}`,
      };
    case 'Wolverine':
      return {
        deadLetterReason: type,
        deadLetterErrorDescription: message,
        'exception-type': type,
        'exception-message': message,
        'exception-stack': stack,
        'failed-at': String(now),
        'message-type': messageType,
        'original-destination': `asb://queue/${queue}`,
      };
    case 'NServiceBus':
      return {
        deadLetterReason: 'Moved to the dead letter queue by the recoverability policy',
        deadLetterErrorDescription: message,
        'NServiceBus.ExceptionInfo.ExceptionType': type,
        'NServiceBus.ExceptionInfo.Message': message,
        'NServiceBus.ExceptionInfo.StackTrace': printed,
        'NServiceBus.TimeOfFailure': at.replace('T', ' ').replace(/\.(\d{3})Z$/, ':$1000 Z'),
        'NServiceBus.FailedQ': queue,
        'NServiceBus.EnclosedMessageTypes': `${messageType}, Contoso.Messages`,
      };
    case 'plain .NET': // as Microsoft's documentation has it: the exception's type as the reason
      return { deadLetterReason: type, deadLetterErrorDescription: printed.slice(0, 4000) };
  }
}
