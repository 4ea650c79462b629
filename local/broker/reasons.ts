/** The application properties that tell why a message is in a dead-letter queue. */
import { encode } from '../../shared/brokers/serviceBus/amqp.ts';
import type { AddedProperty } from './message.ts';

/** `DeadLetterReason` and `DeadLetterErrorDescription` as properties to add; what is not given is left out. */
export function deadLetterProperties(reason: string | undefined, description: string | undefined): AddedProperty[] {
  const properties: AddedProperty[] = [];
  if (reason !== undefined) properties.push({ name: 'DeadLetterReason', value: encode.string(reason) });
  if (description !== undefined) {
    properties.push({ name: 'DeadLetterErrorDescription', value: encode.string(description) });
  }
  return properties;
}

/** The reasons the broker itself gives, with the texts seen from the service. */
export const REASON = {
  expired: deadLetterProperties('TTLExpiredException', 'The message expired and was dead lettered.'),
  maxDeliveryCount: (limit: number): AddedProperty[] =>
    deadLetterProperties('MaxDeliveryCountExceeded', `Message could not be consumed after ${limit} delivery attempts.`),
  sessionIsNull: deadLetterProperties(
    'Session ID is null',
    "Session enabled entity doesn't allow a message whose session identifier is null.",
  ),
  // The service documents the reason and leaves its description open.
  tooManyHops: (limit: number): AddedProperty[] =>
    deadLetterProperties(
      'MaxTransferHopCountExceeded',
      `The message was forwarded ${limit} times, which is the limit.`,
    ),
};
