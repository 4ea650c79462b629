/** What the administration client tells, from which preflight draws its findings. */
import { type Belief, see } from '../belief.ts';
import { type Context, dlqOf } from '../context.ts';
import { die, hold, lock, note, notes, refusal } from '../mail.ts';

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
];

async function ruleNames(context: Context): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of context.administration.listRules(context.path('filtered'), 'twice')) names.push(name);
  return names.sort();
}
