/** Times to live. */
import { data, messageOf, types } from '../../harness/typedMessage.ts';
import { type Belief, see } from '../belief.ts';
import { dlqOf } from '../context.ts';
import { die, hold, lettersOf, lock, note, START, seeNothing } from '../mail.ts';

const TTL = 2_000;
const LATER = 4_000;

export const expiry: readonly Belief[] = [
  {
    id: 'B10',
    belief: 'Where an entity dead-letters what expires, the reason is TTLExpiredException with its fixed text.',
    source: 'Microsoft, "Overview of Service Bus dead-letter queues"',
    needs: { entities: ['expiring'] },
    async check(context) {
      const path = context.path('expiring');
      await context.send(path, note(context.id('a'), { ttlMs: TTL }));
      await context.pass(LATER);
      // The service looks at times to live when somebody asks for messages.
      await seeNothing(context, path);
      const [letter] = await lettersOf(context, path, 1);
      see('reason', letter?.letter.reason, 'TTLExpiredException');
      see('text', letter?.letter.description, 'The message expired and was dead lettered.');
    },
  },
  {
    id: 'B11',
    belief: 'Where an entity does not dead-letter what expires, an expired message is gone.',
    source: 'Microsoft, "Message expiration (time to live)"',
    needs: { entities: ['plain'] },
    async check(context) {
      const path = context.path('plain');
      await context.send(path, note(context.id('a'), { ttlMs: TTL }));
      await context.pass(LATER);
      await seeNothing(context, path);
      see('letters', (await (await context.node(dlqOf(path))).peek(START, 10, true)).length, 0);
    },
  },
  {
    id: 'B12',
    belief: 'A dead letter keeps its time to live, and a dead-letter queue does not observe it.',
    source: 'Microsoft, "Overview of Service Bus dead-letter queues"',
    needs: { entities: ['plain'] },
    async check(context) {
      const path = context.path('plain');
      // Long enough for a slow consumer to dead-letter it alive.
      const ttlMs = 8_000;
      const [letter] = await die(context, path, [note(context.id('a'), { ttlMs })]);
      see('time to live', letter?.letter.timeToLive, ttlMs);
      await context.pass(ttlMs + 2_000);
      const [still] = [...(await lock(context, dlqOf(path), 1)).keys()];
      see('letter received after its time', still, letter?.letter.sequenceNumber);
    },
  },
  {
    id: 'B13',
    belief: 'A letter that is deferred in a dead-letter queue can be received by number after its time to live.',
    source: 'not documented; follows from "Overview of Service Bus dead-letter queues"',
    needs: { entities: ['plain'] },
    async check(context) {
      const path = context.path('plain');
      const ttlMs = 10_000;
      await die(context, path, [note(context.id('a'), { ttlMs })]);
      const numbers = await hold(context, path, 1);
      await context.pass(ttlMs + 2_000);
      see('letters received', (await (await context.node(dlqOf(path))).receive(numbers)).length, 1);
    },
  },
  {
    id: 'B14',
    belief:
      'A message whose absolute expiry time is past is expired when it arrives, so a replay must not send the old one.',
    source: 'azure-sdk-for-net#6748; OASIS AMQP 1.0, part 3, absolute-expiry-time',
    needs: { entities: ['plain'] },
    async check(context) {
      const path = context.path('plain');
      const past = Date.now() - 3_600_000;
      const properties = [types.Str8(context.id('a')), ...Array.from({ length: 7 }, () => types.Null())];
      properties.push(types.Timestamp(past), types.Timestamp(past - 60_000));
      await context.send(path, messageOf({ properties, body: [data('stale')] }));
      await seeNothing(context, path);
    },
  },
];
