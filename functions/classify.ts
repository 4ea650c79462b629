import { app, type InvocationContext } from '@azure/functions';
import type { Source } from '../shared/catalog.ts';
import type { Front } from './front.ts';
import { guarded } from './guarded.ts';

/**
 * Registers the Service Bus trigger on the dead-letter queue of a `defer` source. Partitioned entities get none: the host
 * rounds their sequence numbers, so only the collecting pass can handle them.
 */
export function registerClassify(front: Front, source: Source): void {
  if (source.mode !== 'defer' || !source.trigger || source.entity.partitioned) return;
  const options = {
    connection: source.namespace.connection,
    // Settled by the office itself, by lock token: completing would remove the letter, abandoning would loop.
    autoCompleteMessages: false,
    // As text, the host parses a JSON body and lets its fields overwrite the metadata of the same name: a body with a
    // field `lockToken` or `sequenceNumber` would pass for another message (seen in the host's source).
    dataType: 'binary',
    handler: (_message: unknown, context: InvocationContext): Promise<void> =>
      guarded(front, `classify ${source.name}`, async ({ office, work }) => {
        const sight = work.triggerSight(context.triggerMetadata);
        if (sight !== undefined) await work.classifyOne(office, source, sight);
        else front.log(`classify ${source.name}: the trigger's metadata cannot be read; left to the collecting pass`);
      })(),
  };
  const name = `classify-${source.name}`;
  if (source.of.kind === 'queue') {
    app.serviceBusQueue(name, { ...options, queueName: `${source.of.queue}/$DeadLetterQueue` });
  } else {
    const { topic, subscription } = source.of;
    app.serviceBusTopic(name, { ...options, topicName: topic, subscriptionName: `${subscription}/$DeadLetterQueue` });
  }
}
