/** What the administration client tells, from which preflight draws its findings; and limits that preflight knows. */
import { types } from '../../harness/typedMessage.ts';
import { type Belief, see } from '../belief.ts';
import { type Context, dlqOf } from '../context.ts';
import { die, hold, lock, note, notes, refusal, START } from '../mail.ts';

const ATOM = 'Microsoft, "Service Bus resource manager exceptions" and the ServiceBusAdministrationClient reference';

export const administration: readonly Belief[] = [
  {
    id: 'B86',
    belief:
      'The administration client tells how a queue treats its messages: locks, deliveries, expiry, sessions, duplicates, status.',
    source: ATOM,
    needs: { entities: ['plain', 'expiring', 'sessions', 'duplicates'], abilities: ['administration'] },
    async check(context) {
      const { administration } = context;
      const plain = await administration.getQueue(context.path('plain'));
      const facts = [plain.lockDuration, plain.maxDeliveryCount, plain.status, plain.requiresSession];
      see('plain', facts, ['PT1M', 3, 'Active', false]);
      const expiring = await administration.getQueue(context.path('expiring'));
      see('dead-letters what expires', expiring.deadLetteringOnMessageExpiration, true);
      see('requires sessions', (await administration.getQueue(context.path('sessions'))).requiresSession, true);
      const duplicates = await administration.getQueue(context.path('duplicates'));
      const window = [duplicates.requiresDuplicateDetection, duplicates.duplicateDetectionHistoryTimeWindow];
      see('duplicate detection', window, [true, 'PT20S']);
    },
  },
  {
    id: 'B87',
    belief: 'The dead-letter count of an entity includes deferred and locked letters.',
    source: 'ServiceBusExplorer#662; Microsoft, "Message counters"',
    needs: { entities: ['plain'], abilities: ['administration'] },
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 3));
      await hold(context, path, 1);
      await lock(context, dlqOf(path), 1);
      // Counters lag.
      const counted = await context.until('a count', async () => {
        const { deadLetterMessageCount } = await context.administration.getQueueRuntimeProperties(path);
        return deadLetterMessageCount >= 3 ? deadLetterMessageCount : undefined;
      });
      see('dead letters', counted, 3);
    },
  },
  {
    id: 'B88',
    belief: 'An entity that does not exist is told apart from one that cannot be asked about.',
    source: ATOM,
    needs: { entities: ['plain'], abilities: ['administration'] },
    async check(context) {
      const missing = `${context.path('plain')}-missing`;
      see('getQueue', await refusal(context.administration.getQueue(missing)), 'MessageEntityNotFoundError');
      see('queueExists', await context.administration.queueExists(missing), false);
    },
  },
  {
    id: 'B89',
    belief: "The administration client tells a subscription's forwarding and its rules.",
    source: ATOM,
    needs: { entities: ['forwardingTopic', 'spare', 'filtered'], abilities: ['administration'] },
    async check(context) {
      const { administration } = context;
      const billing = await administration.getSubscription(context.path('forwardingTopic'), 'billing');
      // Azure answers the whole address of the queue.
      see('forwards to', billing.forwardTo?.split('/').at(-1)?.toLowerCase(), context.path('spare').toLowerCase());
      see('rules', await ruleNames(context), ['large', 'red']);
    },
  },
  {
    id: 'B90',
    belief: 'An entity that was deleted and made anew begins numbering anew: the same number can be another message.',
    source: 'not documented; why the office compares id, enqueued time and body before it sends or completes',
    needs: { entities: ['plain'], abilities: ['administration'] },
    async check(context) {
      const path = context.path('plain');
      const [before] = await die(context, path, [note(context.id('a'))]);
      await context.administration.deleteQueue(path);
      await context.administration.createQueue(path, { maxDeliveryCount: 3 });
      const [after] = await die(context, path, [note(context.id('b'))]);
      see('number', after?.letter.sequenceNumber, before?.letter.sequenceNumber);
    },
  },
  {
    id: 'B91',
    belief:
      'An application property of more than 32,767 characters is refused with amqp:internal-error, and nothing is stored.',
    source: 'Microsoft, "Service Bus quotas" (32 KB a property); the condition was seen by others',
    needs: { entities: ['plain'] },
    async check(context) {
      const path = context.path('plain');
      const longest = note(context.id('a'), { properties: [['text', types.Str32('x'.repeat(32_767))]] });
      const tooLong = note(context.id('b'), { properties: [['text', types.Str32('x'.repeat(32_768))]] });
      see('the longest', await context.trySend(path, [longest]), { kind: 'accepted' });
      const outcome = await context.trySend(path, [tooLong]);
      see('too long', 'code' in outcome && outcome.code, 'amqp:internal-error');
      see('stored', (await (await context.node(path)).peek(START, 10, true)).length, 1);
    },
  },
  {
    id: 'B92',
    belief: 'A session id and another partition key are refused, and nothing is stored.',
    source: 'Microsoft, "Partitioned queues and topics" (if both are set they must be the same)',
    needs: { entities: ['plain'] },
    async check(context) {
      const path = context.path('plain');
      const outcome = await context.trySend(path, [note(context.id('a'), { session: 's', key: 'p' })]);
      see('outcome', outcome.kind, 'refused-message');
      see('stored', (await (await context.node(path)).peek(START, 10, true)).length, 0);
    },
  },
];

async function ruleNames(context: Context): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of context.administration.listRules(context.path('filtered'), 'twice')) names.push(name);
  return names.sort();
}
