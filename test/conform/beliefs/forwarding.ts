/** Messages and dead letters that move on by themselves. */
import { type Belief, see, seeThat } from '../belief.ts';
import { type Context, dlqOf } from '../context.ts';
import { deadLetterNext, lettersOf, note, receiveOne, refusal, START } from '../mail.ts';
import { annotationsOf, applicationOf, decoded } from '../wire.ts';

const CHAINING = 'Microsoft, "Chaining Service Bus entities with autoforwarding"';

export const forwarding: readonly Belief[] = [
  {
    id: 'B69',
    belief: 'Nobody can receive from a dead-letter queue that is forwarded.',
    source: 'azure-service-bus#666',
    needs: { entities: ['forwardingDead', 'spare'] },
    async check(context) {
      const receiver = context.receiver(dlqOf(context.path('forwardingDead')));
      const code = await refusal(receiver.receiveMessages(1, { maxWaitTimeInMs: context.place.patienceMs }));
      seeThat('receiving', code !== 'nothing was refused', code);
    },
  },
  {
    id: 'B70',
    belief:
      'A letter forwarded out of a dead-letter queue names its origin in x-opt-deadletter-source and keeps its reason.',
    source: 'Microsoft, ServiceBusReceivedMessage.DeadLetterSource; ServiceBusExplorer#664',
    needs: { entities: ['forwardingDead', 'spare'] },
    async check(context) {
      const path = context.path('forwardingDead');
      await context.send(path, note(context.id('a')));
      await deadLetterNext(context, path, 1);
      const arrived = await first(context, context.path('spare'));
      const source = String(decoded(annotationsOf(arrived).get('x-opt-deadletter-source')));
      see('source', source.toLowerCase(), path.toLowerCase());
      see('reason', decoded(applicationOf(arrived).get('DeadLetterReason')), 'Unprocessable');
    },
  },
  {
    id: 'B71',
    belief: 'A message that was forwarded has another sequence number; x-opt-enqueue-sequence-number keeps the first.',
    source: 'Microsoft, "Message sequencing and timestamps"; azure-docs#97032',
    needs: { entities: ['forwardingDead', 'spare'] },
    async check(context) {
      const [path, spare] = [context.path('forwardingDead'), context.path('spare')];
      // The numbers of the two queues must not be the same by chance.
      await context.send(path, note(context.id('x')), note(context.id('a')));
      const receiver = context.receiver(path);
      await receiver.completeMessage(await receiveOne(context, receiver));
      await receiver.close();
      const original = decoded(annotationsOf(await first(context, path)).get('x-opt-sequence-number'));
      await deadLetterNext(context, path, 1);
      const arrived = annotationsOf(await first(context, spare));
      seeThat('its number', decoded(arrived.get('x-opt-sequence-number')) !== original, original);
      see('the first number', decoded(arrived.get('x-opt-enqueue-sequence-number')), original);
    },
  },
  {
    id: 'B72',
    belief:
      'A subscription with ForwardTo hands its messages to that queue; there they die, without a trace of the subscription.',
    source: CHAINING,
    needs: { entities: ['forwardingTopic', 'spare'] },
    async check(context) {
      const spare = context.path('spare');
      await context.send(context.path('forwardingTopic'), note(context.id('a')));
      await first(context, spare);
      await deadLetterNext(context, spare, 1);
      const [letter] = await lettersOf(context, spare, 1);
      see('message id', letter?.letter.messageId, context.id('a'));
      const source = annotationsOf(letter?.message ?? Buffer.alloc(0)).get('x-opt-deadletter-source');
      see('x-opt-deadletter-source', decoded(source), undefined);
    },
  },
  {
    id: 'B73',
    belief: 'A message is forwarded four times at most; then it dies with MaxTransferHopCountExceeded.',
    source: `${CHAINING}; Microsoft, "Overview of Service Bus dead-letter queues"`,
    needs: { entities: ['hop1', 'spare'] },
    async check(context) {
      await context.send(context.path('hop1'), note(context.id('a')));
      const chain = (['hop1', 'hop2', 'hop3', 'hop4', 'hop5'] as const).map((shape) => context.path(shape));
      const nodes = await Promise.all(chain.map((path) => context.node(dlqOf(path))));
      const [where, message] = await context.until('the dead letter in one of the queues', async () => {
        for (const [i, node] of nodes.entries()) {
          const [found] = await node.peek(START, 1, true);
          if (found) return [chain[i], found] as const;
        }
        return undefined;
      });
      see('reason', decoded(applicationOf(message).get('DeadLetterReason')), 'MaxTransferHopCountExceeded');
      see('in the dead-letter queue of', where, chain[4]);
    },
  },
];

/** The first message of an entity, once there is one. */
async function first(context: Context, path: string): Promise<Buffer> {
  const node = await context.node(path);
  return context.until(`a message in ${path}`, async () => (await node.peek(START, 1, true))[0]);
}
