/** What no entity of Service Bus takes, whatever its settings. */
import { keyText, mapEntries, readValue } from '../../shared/brokers/serviceBus/amqp.ts';
import { BrokerError } from './errors.ts';
import type { Arrival } from './message.ts';

/** Longest name or text of an application property, characters (Microsoft, "Service Bus quotas"). */
const MAX_PROPERTY = 32_767;

/** Throws when the service would refuse a message that a client sends. */
export function checkLimits({ message, sessionId, partitionKey }: Arrival): void {
  if (sessionId !== undefined && partitionKey !== undefined && sessionId !== partitionKey) {
    throw new BrokerError('amqp:not-allowed', 'Where a message has a session id, its partition key must be the same.');
  }
  if (message.applicationProperties < 0 || message.body - message.applicationProperties <= MAX_PROPERTY) return;
  for (const { key, value } of mapEntries(message.bytes, message.applicationProperties)) {
    const read = readValue(value);
    const length = read.type === 'string' ? read.value.length : value.length;
    if (length > MAX_PROPERTY || (keyText(key) ?? '').length > MAX_PROPERTY) {
      // In the service's words, which are those for a fault that passes.
      throw new BrokerError(
        'amqp:internal-error',
        'The service was unable to process the request; please retry the operation.',
      );
    }
  }
}
