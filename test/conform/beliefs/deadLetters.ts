/** What a message is after it died. */

import { lockToken } from '../../../shared/brokers/broker.ts';
import { types } from '../../harness/typedMessage.ts';
import { type Belief, see, seeThat } from '../belief.ts';
import { dlqOf } from '../context.ts';
import {
  deadLetterNext,
  die,
  hold,
  lettersOf,
  lock,
  note,
  notes,
  receiveOne,
  refusal,
  START,
  WHY,
  withSender,
} from '../mail.ts';
import { annotationsOf, applicationOf, BROKER_WRITES, decoded, differences, kept } from '../wire.ts';

const PLAIN = { entities: ['plain'] } as const;

export const deadLetters: readonly Belief[] = [
  {
    id: 'B01',
    belief: 'A dead-lettered message keeps its sequence number.',
    source: 'azure-docs#97032 (an answer of Microsoft support)',
    needs: PLAIN,
    async check(context) {
      const queue = context.path('plain');
      await context.send(queue, ...notes(context, 3));
      const receiver = context.receiver(queue);
      await receiver.completeMessage(await receiveOne(context, receiver));
      await receiver.close();
      const main = await (await context.node(queue)).peek(START, 10, true);
      await deadLetterNext(context, queue, 2);
      const dead = await lettersOf(context, queue, 2);
      const number = (message: Buffer) => decoded(annotationsOf(message).get('x-opt-sequence-number'));
      see(
        'sequence numbers',
        dead.map(({ message }) => number(message)),
        main.map(number),
      );
    },
  },
  {
    id: 'B02',
    belief: 'A dead-lettered message keeps its enqueued time.',
    source: 'not documented; azure-docs#97032 suggests it',
    needs: PLAIN,
    async check(context) {
      const queue = context.path('plain');
      await context.send(queue, note(context.id('a')));
      const [alive] = await (await context.node(queue)).peek(START, 1, true);
      await context.pass(3_000);
      await deadLetterNext(context, queue, 1);
      const [dead] = await lettersOf(context, queue, 1);
      const time = (message?: Buffer) => message && annotationsOf(message).get('x-opt-enqueued-time');
      see('enqueued time', time(dead?.message), time(alive));
    },
  },
  {
    id: 'B03',
    belief:
      'In a dead-letter queue the delivery count is frozen: abandoning, deferring and lost locks do not raise it.',
    source: 'azure-sdk-for-js live test batchReceiver.spec.ts; azure-sdk-for-net#53437',
    needs: { entities: ['brief'] },
    async check(context) {
      const path = context.path('brief');
      const [letter] = await die(context, path, [note(context.id('a'))]);
      const queue = await context.deadLetters(path);
      const node = await context.node(dlqOf(path));
      const count = async () => (await queue.peek(START, 1))[0]?.letter.deliveryCount;
      for (let i = 0; i < 4; i += 1)
        await node.settle([...(await lock(context, dlqOf(path), 1)).values()], 'abandoned');
      see('count after four abandons, more than a queue allows', await count(), letter?.letter.deliveryCount);
      await lock(context, dlqOf(path), 1);
      await context.pass(6_000);
      see('count after a lost lock', await count(), letter?.letter.deliveryCount);
      const numbers = await hold(context, path, 1);
      see('count after deferring', await count(), letter?.letter.deliveryCount);
      const [answer] = await node.receive(numbers);
      await node.settle([answer?.lock ?? lockToken('')], 'abandoned');
      see('count after abandoning a deferred one', await count(), letter?.letter.deliveryCount);
    },
  },
  {
    id: 'B04',
    belief:
      'Dead-lettering adds the application properties DeadLetterReason and DeadLetterErrorDescription, and nothing else.',
    source: 'Microsoft, "Overview of Service Bus dead-letter queues"; seen on the wire of the client',
    needs: PLAIN,
    async check(context) {
      const original = note(context.id('a'), { properties: [['n', types.Int(5)]] });
      const [letter] = await die(context, context.path('plain'), [original]);
      const message = letter?.message ?? Buffer.alloc(0);
      const added = [...applicationOf(message)].filter(([name]) => name !== 'n');
      see('added', Object.fromEntries(added.map(([name, hex]) => [name, decoded(hex)])), {
        DeadLetterReason: WHY.deadLetterReason,
        DeadLetterErrorDescription: WHY.deadLetterErrorDescription,
      });
      const names = added.map(([name]) => name);
      see('changed beside that', differences(kept(original), kept(message, names)), []);
    },
  },
  {
    id: 'B05',
    belief: 'Nothing on a dead letter tells when it died.',
    source: 'Brighter#155, NServiceBus.AzureServiceBus#155 (dumps of dead letters)',
    needs: PLAIN,
    async check(context) {
      const queue = context.path('plain');
      await context.send(queue, note(context.id('a')));
      const [alive] = await (await context.node(queue)).peek(START, 1, true);
      await context.pass(5_000);
      await deadLetterNext(context, queue, 1);
      const [letter] = await lettersOf(context, queue, 1);
      const annotations = annotationsOf(letter?.message ?? Buffer.alloc(0));
      const strange = [...annotations.keys()].filter((name) => !BROKER_WRITES.includes(name));
      see('annotations nobody knows', strange, []);
      const born = timeOf(annotationsOf(alive ?? Buffer.alloc(0)).get('x-opt-enqueued-time'));
      const late = [...annotations].filter(([, hex]) => hex.startsWith(TIMESTAMP) && timeOf(hex) > born + 2_000);
      see('times after it came in', Object.fromEntries(late.map(([name, hex]) => [name, timeOf(hex) - born])), {});
    },
  },
  {
    id: 'B06',
    belief: 'A dead letter in the dead-letter queue of its own entity has no x-opt-deadletter-source.',
    source: 'Microsoft, ServiceBusReceivedMessage.DeadLetterSource; ServiceBusExplorer#46',
    needs: PLAIN,
    async check(context) {
      const [letter] = await die(context, context.path('plain'), [note(context.id('a'))]);
      const source = annotationsOf(letter?.message ?? Buffer.alloc(0)).get('x-opt-deadletter-source');
      see('x-opt-deadletter-source', decoded(source), undefined);
    },
  },
  {
    id: 'B07',
    belief:
      'After its last allowed delivery a message dies with MaxDeliveryCountExceeded and a text that tells the number.',
    source: 'Microsoft, "Overview of Service Bus dead-letter queues"; text: azure-sdk-for-java#30837',
    needs: PLAIN,
    async check(context) {
      const queue = context.path('plain');
      await context.send(queue, note(context.id('a')));
      const receiver = context.receiver(queue);
      for (let i = 0; i < 3; i += 1) await receiver.abandonMessage(await receiveOne(context, receiver));
      const [letter] = await lettersOf(context, queue, 1);
      see('reason', letter?.letter.reason, 'MaxDeliveryCountExceeded');
      see('text', letter?.letter.description, 'Message could not be consumed after 3 delivery attempts.');
    },
  },
  {
    id: 'B08',
    belief: 'A letter cannot be dead-lettered out of a dead-letter queue; it stays there.',
    source: 'Microsoft, "Overview of Service Bus dead-letter queues"',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      const [letter] = await die(context, path, [note(context.id('a'))]);
      const receiver = context.receiver(dlqOf(path));
      const code = await refusal(receiver.deadLetterMessage(await receiveOne(context, receiver), WHY));
      seeThat('dead-lettering a dead letter', code !== 'nothing was refused', code);
      const [after] = await lettersOf(context, path, 1);
      see('the letter there', after?.letter.sequenceNumber, letter?.letter.sequenceNumber);
    },
  },
  {
    id: 'B09',
    belief: 'Nobody can send into a dead-letter queue.',
    source: 'azure-service-bus-java#61',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      // Refused, or stored in the main queue: either is as believed.
      await refusal(withSender(context, dlqOf(path), (sender) => sender.sendMessages({ body: 'x' })));
      await context.pass(1_000);
      see('letters in it', (await (await context.node(dlqOf(path))).peek(START, 10, true)).length, 0);
    },
  },
];

/** Constructor of an AMQP timestamp. */
const TIMESTAMP = '83';

/** An encoded timestamp, ms since 1970. */
function timeOf(hex: string | undefined): number {
  return hex?.startsWith(TIMESTAMP) ? Number(BigInt(`0x${hex.slice(2)}`)) : 0;
}
