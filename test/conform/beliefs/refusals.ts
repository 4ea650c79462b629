/** What the broker says when it will not: the office's journal leans on telling one no from another. */
import { type Belief, see } from '../belief.ts';
import { note, refusal, START } from '../mail.ts';

const EXCEPTIONS = 'Microsoft, "Service Bus messaging exceptions"';

export const refusals: readonly Belief[] = [
  {
    id: 'B81',
    belief: 'An entity that does not exist is refused with amqp:not-found, for sending and for looking.',
    source: EXCEPTIONS,
    needs: { entities: ['plain'] },
    async check(context) {
      const missing = `${context.path('plain')}-missing`;
      see('sending', await refusal(context.target(missing)), 'amqp:not-found');
      const receiver = context.receiver(missing);
      const code = await refusal(receiver.receiveMessages(1, { maxWaitTimeInMs: context.place.patienceMs }));
      see('receiving', code, 'MessagingEntityNotFound');
    },
  },
  {
    id: 'B82',
    belief:
      'A queue whose sending is disabled refuses with com.microsoft:entity-disabled, and its messages can still be peeked.',
    source: `Microsoft, "Suspend and reactivate messaging entities"; ${EXCEPTIONS}`,
    needs: { entities: ['sendDisabled'] },
    async check(context) {
      const path = context.path('sendDisabled');
      const attempt = context.trySend(path, [note(context.id('a'))]).then((outcome) => {
        if (outcome.kind !== 'accepted') throw Object.assign(new Error(outcome.description), outcome);
      });
      see('sending', await refusal(attempt), 'com.microsoft:entity-disabled');
      see('messages', (await (await context.node(path)).peek(START, 10, true)).length, 0);
    },
  },
  {
    id: 'B83',
    belief: 'A throttled send is refused with com.microsoft:server-busy, and is not stored.',
    source: 'Microsoft, "Throttling operations on Azure Service Bus"',
    needs: { entities: ['plain'], abilities: ['throttling'] },
    async check(context) {
      const path = context.path('plain');
      context.place.throttle?.(path);
      const outcome = await context.trySend(path, [note(context.id('a'))]);
      see('outcome', [outcome.kind, 'code' in outcome && outcome.code], ['refused-busy', 'com.microsoft:server-busy']);
      see('stored', (await (await context.node(path)).peek(START, 10, true)).length, 0);
    },
  },
  {
    id: 'B84',
    belief: 'A key that does not fit is refused when it is shown, before any link is made.',
    source: 'Microsoft, "AMQP 1.0 in Azure Service Bus and Event Hubs protocol guide" (claims-based security)',
    needs: { entities: ['plain'] },
    async check(context) {
      const wrong = context.place.connectionString.replace(/(SharedAccessKey=)[^;]+/, `$1${'A'.repeat(43)}=`);
      const sender = context.anotherClient(wrong).createSender(context.path('plain'));
      see('sending', await refusal(sender.sendMessages({ body: 'x' })), 'UnauthorizedAccess');
    },
  },
  {
    id: 'B85',
    belief: 'A key that may only listen is refused as unauthorized when it sends, and can look.',
    source: 'Microsoft, "Service Bus access control with Shared Access Signatures"',
    needs: { entities: ['plain'], abilities: ['rights'] },
    async check(context) {
      const client = context.anotherClient(context.place.listenOnly);
      const sender = client.createSender(context.path('plain'));
      see('sending', await refusal(sender.sendMessages({ body: 'x' })), 'UnauthorizedAccess');
      see('peeking', (await context.receiver(context.path('plain'), client).peekMessages(1)).length, 0);
    },
  },
];
