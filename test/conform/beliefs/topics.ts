/** Topics, their rules, and where a replay to a topic ends up. */
import { encodedMessage } from '../../../shared/brokers/broker.ts';
import { types } from '../../harness/typedMessage.ts';
import { type Belief, see } from '../belief.ts';
import type { Context } from '../context.ts';
import { deadLetterNext, lettersOf, note, refusal, START } from '../mail.ts';

const FILTERS = 'Microsoft, "Topic filters and actions"';

export const topics: readonly Belief[] = [
  {
    id: 'B74',
    belief: 'A topic gives every subscription one copy of a message.',
    source: 'Microsoft, "Service Bus queues, topics, and subscriptions"',
    needs: { entities: ['topic'] },
    async check(context) {
      await context.send(context.path('topic'), note(context.id('a')));
      see('copies', await counts(context, 'topic', ['billing', 'audit']), [1, 1]);
    },
  },
  {
    id: 'B75',
    belief: "A subscription's dead letter that is sent to the topic again reaches every subscription.",
    source: 'azure-service-bus#445, azure-docs#94145, ServiceBusExplorer#69',
    needs: { entities: ['topic'] },
    async check(context) {
      const billing = context.path('topic', 'billing');
      await context.send(context.path('topic'), note(context.id('a')));
      await deadLetterNext(context, billing, 1);
      const [letter] = await lettersOf(context, billing, 1);
      await context.send(context.path('topic'), letter?.message ?? encodedMessage(Buffer.alloc(0)));
      see('copies', await counts(context, 'topic', ['billing', 'audit']), [1, 2]);
    },
  },
  {
    id: 'B76',
    belief: 'A message that no rule takes is reported as accepted, and is nowhere.',
    source: `ServiceBusExplorer#476; ${FILTERS}`,
    needs: { entities: ['filtered'] },
    async check(context) {
      await context.send(context.path('filtered'), note(context.id('a'), { subject: 'unwanted' }));
      await context.pass(1_000);
      see('copies', await counts(context, 'filtered', ['picky', 'twice']), [0, 0]);
    },
  },
  {
    id: 'B77',
    belief: 'Rules decide by the properties of the message as it is sent back: subject and application properties.',
    source: FILTERS,
    needs: { entities: ['filtered'] },
    async check(context) {
      const topic = context.path('filtered');
      const red = note(context.id('red'), { subject: 'unwanted', properties: [['colour', types.Str8('red')]] });
      await context.send(topic, note(context.id('wanted'), { subject: 'wanted' }), red);
      see('copies', await counts(context, 'filtered', ['picky', 'twice']), [1, 1]);
    },
  },
  {
    id: 'B78',
    belief: 'A message that several rules without action take comes to the subscription once.',
    source: FILTERS,
    needs: { entities: ['filtered'] },
    async check(context) {
      const properties = [['colour', types.Str8('red')] as const, ['size', types.Int(11)] as const];
      await context.send(context.path('filtered'), note(context.id('a'), { properties }));
      see('copies', await counts(context, 'filtered', ['picky', 'twice']), [0, 1]);
    },
  },
  {
    id: 'B79',
    belief: 'Nobody can send to a subscription.',
    source: 'azure-service-bus-java#61; Microsoft, "Service Bus queues, topics, and subscriptions"',
    needs: { entities: ['topic'] },
    async check(context) {
      const code = await refusal(context.senderLink(context.path('topic', 'billing')));
      await context.pass(100);
      see('refused', code !== 'nothing was refused', true);
    },
  },
  {
    id: 'B80',
    belief: 'Entity paths are the same whatever case they are written in.',
    source: 'Microsoft, "Service Bus quotas" (entity names are case-insensitive)',
    needs: { entities: ['topic'] },
    async check(context) {
      await context.send(context.path('topic').toUpperCase(), note(context.id('a')));
      await deadLetterNext(context, context.path('topic', 'billing'), 1);
      const path = context.path('topic', 'billing').toUpperCase();
      see('letters', (await (await context.node(`${path}/$deadletterqueue`)).peek(START, 10, true)).length, 1);
    },
  },
];

/** How many messages these subscriptions hold. */
async function counts(context: Context, shape: 'topic' | 'filtered', names: readonly string[]): Promise<number[]> {
  // A topic hands messages on in its own time.
  const found: number[] = [];
  await context.pass(1_000);
  for (const name of names) {
    const node = await context.node(context.path(shape, name));
    found.push((await node.peek(START, 10, true)).length);
  }
  return found;
}
