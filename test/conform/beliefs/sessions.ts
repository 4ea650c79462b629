/** Entities that require sessions. */
import { encodedMessage, lockToken } from '../../../shared/brokers/broker.ts';
import { type Belief, see, seeThat } from '../belief.ts';
import { type Context, dlqOf } from '../context.ts';
import { lettersOf, lock, next, note, refusal, START, WHY, withSender } from '../mail.ts';

const SESSIONS = { entities: ['sessions'] } as const;

export const sessions: readonly Belief[] = [
  {
    id: 'B50',
    belief:
      'The dead-letter queue of an entity with sessions is read without a session, and its letters keep their session id.',
    source: 'azure-sdk-for-net#21271; azure-functions-dotnet-worker#2721',
    needs: SESSIONS,
    async check(context) {
      const path = context.path('sessions');
      await dieInSession(context, ['s1', 's2']);
      const locks = await lock(context, dlqOf(path), 2);
      const letters = await lettersOf(context, path, 2);
      see(
        'sessions',
        letters.map(({ letter }) => letter.sessionId),
        ['s1', 's2'],
      );
      see('locked', locks.size, 2);
    },
  },
  {
    id: 'B51',
    belief: 'A message without session id that is sent to a queue with sessions is refused: the sender learns of it.',
    source: 'azure-service-bus#289; NServiceBus#5364',
    needs: SESSIONS,
    async check(context) {
      const path = context.path('sessions');
      const outcome = await context.trySend(path, [note(context.id('a'))]);
      see('outcome', outcome.kind, 'refused-message');
      see('letters', (await (await context.node(dlqOf(path))).peek(START, 10, true)).length, 0);
    },
  },
  {
    id: 'B52',
    belief:
      'A message without session id that a topic hands to a subscription with sessions dies there with "Session ID is null".',
    source: 'Microsoft, "Overview of Service Bus dead-letter queues"; ServiceBusExplorer#644; workflow-core#741',
    needs: { entities: ['sessionTopic'] },
    async check(context) {
      await context.send(context.path('sessionTopic'), note(context.id('a')));
      const [letter] = await lettersOf(context, context.path('sessionTopic', 'billing'), 1);
      const reason = letter?.letter.reason ?? '';
      // Seen with "id" and "ID", with and without a full stop.
      seeThat('reason', /^session id is null\.?$/i.test(reason.trim()), reason);
      const text = "Session enabled entity doesn't allow a message whose session identifier is null.";
      see('text', letter?.letter.description, text);
    },
  },
  {
    id: 'B53',
    belief: 'A letter sent back raw with its session id is received in that session.',
    source: 'ServiceBusExplorer#644; Microsoft, "Message sessions"',
    needs: SESSIONS,
    async check(context) {
      const path = context.path('sessions');
      await dieInSession(context, ['s1']);
      const [letter] = await lettersOf(context, path, 1);
      await context.send(path, letter?.message ?? encodedMessage(Buffer.alloc(0)));
      const receiver = await context.client.acceptSession(path, 's1', { maxAutoLockRenewalDurationInMs: 0 });
      const [back] = await receiver.receiveMessages(1, { maxWaitTimeInMs: context.place.slownessMs });
      see('message id', back?.messageId, letter?.letter.messageId);
    },
  },
  {
    id: 'B54',
    belief:
      'A letter deferred in the dead-letter queue of an entity with sessions cannot be received by number on another connection.',
    source: 'azure-sdk-for-net#34662',
    needs: SESSIONS,
    async check(context) {
      const path = context.path('sessions');
      await dieInSession(context, ['s1']);
      const locks = await lock(context, dlqOf(path), 1);
      const own = await context.node(dlqOf(path));
      await own.settle([...locks.values()], 'defered');
      const node = await context.node(dlqOf(path), context.anotherConnection());
      const code = await refusal(node.receive([...locks.keys()]));
      // Nobody else could ever take it out again.
      const answers = await own.receive([...locks.keys()]).catch(() => []);
      if (answers.length > 0)
        await own.settle(
          answers.map((answer) => answer.lock ?? lockToken('')),
          'completed',
        );
      seeThat('receiving by number', code !== 'nothing was refused', code);
    },
  },
  {
    id: 'B55',
    belief: 'A batch of messages of one session is accepted, with the session id on its envelope.',
    source: 'azure-sdk-for-net#31030 (troubleshooting guide); seen on the wire of the client',
    needs: SESSIONS,
    async check(context) {
      const path = context.path('sessions');
      const messages = ['a', 'b'].map((id) => ({ messageId: context.id(id), sessionId: 's1', body: id }));
      see('the send', await refusal(withSender(context, path, (s) => s.sendMessages(messages))), 'nothing was refused');
      see('stored', (await (await context.node(path)).peek(START, 10, true)).length, 2);
    },
  },
  {
    id: 'B56',
    belief: 'A peek without session shows the messages of every session of an entity, each by its number.',
    source: 'Microsoft, "Message browsing"',
    needs: SESSIONS,
    async check(context) {
      const path = context.path('sessions');
      for (const session of ['s1', 's2']) await context.send(path, note(context.id(session), { session }));
      const node = await context.node(path);
      see('peeked', (await node.peek(next(START), 10, true)).length, 2);
    },
  },
];

/** Sends a message to each of these sessions and has it dead-lettered by a consumer of the session. */
async function dieInSession(context: Context, names: readonly string[]): Promise<void> {
  const path = context.path('sessions');
  for (const session of names) {
    await context.send(path, note(context.id(session), { session }));
    const receiver = await context.client.acceptSession(path, session, { maxAutoLockRenewalDurationInMs: 0 });
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: context.place.slownessMs });
    if (message) await receiver.deadLetterMessage(message, WHY);
    await receiver.close();
  }
}
