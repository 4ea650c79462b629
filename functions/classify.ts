import { app, type InvocationContext } from '@azure/functions';
import type { Source } from '../shared/catalog.ts';
import type { Office } from '../shared/office.ts';
import { triggerSight } from '../shared/serviceBus/triggerSight.ts';
import { classifyOne } from '../shared/watch/classifyOne.ts';

/**
 * Registers the Service Bus trigger on the dead-letter queue of a `defer` source. Partitioned entities get none: the host
 * rounds their sequence numbers, so only the collecting pass can handle them.
 */
export function registerClassify(office: Office, source: Source): void {
  if (source.mode !== 'defer' || !source.trigger || source.entity.partitioned) return;
  const options = {
    connection: source.namespace.connection,
    // Settled by the office itself, by lock token: completing would remove the letter, abandoning would loop.
    autoCompleteMessages: false,
    // As text, the host parses a JSON body and lets its fields overwrite the metadata of the same name: a body with a
    // field `lockToken` or `sequenceNumber` would pass for another message (seen in the host's source).
    dataType: 'binary',
    handler: async (_message: unknown, context: InvocationContext): Promise<void> => {
      const sight = triggerSight(context.triggerMetadata);
      if (sight !== undefined) await classifyOne(office, source, sight);
      else office.log(`classify ${source.name}: the trigger's metadata cannot be read; left to the collecting pass`);
    },
  };
  const name = `classify-${source.name}`;
  if (source.of.kind === 'queue') {
    app.serviceBusQueue(name, { ...options, queueName: `${source.of.queue}/$DeadLetterQueue` });
  } else {
    const { topic, subscription } = source.of;
    app.serviceBusTopic(name, { ...options, topicName: topic, subscriptionName: `${subscription}/$DeadLetterQueue` });
  }
}
