/** Locks, and how they are settled by their tokens. */
import { lockToken } from '../../../shared/brokers/broker.ts';
import { type Belief, see, seeThat } from '../belief.ts';
import { dlqOf } from '../context.ts';
import { die, lock, note, notes, receive, receiveOne, refusal, START, seeNothing, WHY } from '../mail.ts';

const PLAIN = { entities: ['plain'] } as const;
const OPERATIONS = 'Microsoft, "AMQP 1.0 in Azure Service Bus: request-response-based operations"';

export const settlement: readonly Belief[] = [
  {
    id: 'B25',
    belief: 'A letter locked on one connection can be completed by its lock token on another.',
    source: `${OPERATIONS}; seen on the wire of the client`,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, [note(context.id('a'))]);
      const locks = await lock(context, dlqOf(path), 1);
      const node = await context.node(dlqOf(path), context.anotherConnection());
      await node.settle([...locks.values()], 'completed');
      see('letters left', (await node.peek(START, 10, true)).length, 0);
    },
  },
  {
    id: 'B26',
    belief: 'A letter locked on one connection can be abandoned by its lock token on another.',
    source: OPERATIONS,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      const [letter] = await die(context, path, [note(context.id('a'))]);
      const locks = await lock(context, dlqOf(path), 1);
      const node = await context.node(dlqOf(path), context.anotherConnection());
      await node.settle([...locks.values()], 'abandoned');
      const again = await lock(context, dlqOf(path), 1);
      see('locked again', [...again.keys()], [letter?.letter.sequenceNumber]);
    },
  },
  {
    id: 'B27',
    belief: 'A letter locked on one connection can be deferred by its lock token on another.',
    source: OPERATIONS,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, [note(context.id('a'))]);
      const locks = await lock(context, dlqOf(path), 1);
      const node = await context.node(dlqOf(path), context.anotherConnection());
      await node.settle([...locks.values()], 'defered');
      see('received by number', (await node.receive([...locks.keys()])).length, 1);
    },
  },
  {
    id: 'B28',
    belief: 'A lock of an entity without sessions outlives the link and the connection it was made on.',
    source: 'Microsoft, "Message transfers, locks, and settlement"; seen on the wire of the client',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, [note(context.id('a'))]);
      const client = context.anotherClient();
      const letter = await receiveOne(context, context.receiver(dlqOf(path), client));
      await client.close();
      await seeNothing(context, dlqOf(path));
      const node = await context.node(dlqOf(path));
      await node.settle([lockToken(letter.lockToken ?? '')], 'completed');
      see('letters left', (await node.peek(START, 10, true)).length, 0);
    },
  },
  {
    id: 'B29',
    belief: 'One disposition settles a hundred lock tokens.',
    source: OPERATIONS,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 100));
      const locks = await lock(context, dlqOf(path), 100);
      const node = await context.node(dlqOf(path));
      await node.settle([...locks.values()], 'completed');
      see('letters left', (await node.peek(START, 250, true)).length, 0);
    },
  },
  {
    id: 'B30',
    belief: 'A disposition with one lost lock among its tokens settles none of them.',
    source: 'not documented; the office asks again one by one and can only take it for lost when it is not so',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 3));
      const tokens = [...(await lock(context, dlqOf(path), 3)).values()];
      const node = await context.node(dlqOf(path));
      await node.settle(tokens.slice(1, 2), 'completed');
      const code = await refusal(node.settle(tokens, 'completed'));
      seeThat('the disposition', code !== 'nothing was refused', code);
      see('letters left', (await node.peek(START, 10, true)).length, 2);
      await node.settle([tokens[0] ?? lockToken(''), tokens[2] ?? lockToken('')], 'completed');
    },
  },
  {
    id: 'B31',
    belief: 'Settling a lost lock says MessageLockLost and changes nothing.',
    source: 'Microsoft, "Service Bus messaging exceptions"',
    needs: { entities: ['brief'] },
    async check(context) {
      const path = context.path('brief');
      await die(context, path, [note(context.id('a'))]);
      const tokens = [...(await lock(context, dlqOf(path), 1)).values()];
      await context.pass(7_000);
      const node = await context.node(dlqOf(path));
      see('completing', await refusal(node.settle(tokens, 'completed')), 'MessageLockLostError');
      see('letters left', (await node.peek(START, 10, true)).length, 1);
    },
  },
  {
    id: 'B32',
    belief: 'After its lock is lost a letter is delivered anew, with another lock token.',
    source: 'Microsoft, "Message transfers, locks, and settlement"',
    needs: { entities: ['brief'] },
    async check(context) {
      const path = context.path('brief');
      await die(context, path, [note(context.id('a'))]);
      const [first] = await lock(context, dlqOf(path), 1);
      await context.pass(7_000);
      const [second] = await lock(context, dlqOf(path), 1);
      see('number', second?.[0], first?.[0]);
      seeThat('token', second?.[1] !== first?.[1], second?.[1]);
    },
  },
  {
    id: 'B33',
    belief:
      'Trap: the JavaScript client merges settlements of one tick, so a dead-letter beside a complete becomes a complete.',
    source: 'rhea, session.js, write_dispositions; seen on the wire of the client',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await context.send(path, ...notes(context, 2));
      const receiver = context.receiver(path);
      const [first, second] = await receive(context, receiver, 2);
      if (!first || !second) return;
      await Promise.all([receiver.completeMessage(first), receiver.deadLetterMessage(second, WHY)]);
      see('dead letters', (await (await context.node(dlqOf(path))).peek(START, 10, true)).length, 0);
      see('messages left', (await (await context.node(path)).peek(START, 10, true)).length, 0);
    },
  },
];
