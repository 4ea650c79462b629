/** Looking without touching. */
import Long from 'long';
import { CODE, sectionsByRhea } from '../../harness/typedMessage.ts';
import { type Belief, see, seeThat } from '../belief.ts';
import { dlqOf } from '../context.ts';
import { die, lock, next, note, notes, receiveOne, START } from '../mail.ts';
import { annotationsOf } from '../wire.ts';

const PLAIN = { entities: ['plain'] } as const;
const BROWSING = 'Microsoft, "Message browsing"';

export const peeking: readonly Belief[] = [
  {
    id: 'B34',
    belief: 'A peek shows letters that somebody has locked.',
    source: `azure-service-bus#310; ${BROWSING}`,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 2));
      await lock(context, dlqOf(path), 1);
      see('peeked', (await (await context.node(dlqOf(path))).peek(START, 10, true)).length, 2);
    },
  },
  {
    id: 'B35',
    belief: 'A peek from a number begins with that number itself, or the next that is there.',
    source: BROWSING,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      const letters = await die(context, path, notes(context, 3));
      const [first, second, third] = letters.map(({ letter }) => letter.sequenceNumber);
      const queue = await context.deadLetters(path);
      const from = async (n = START) => (await queue.peek(n, 1))[0]?.letter.sequenceNumber;
      see('from the second', await from(second), second);
      see('from behind the first', await from(next(first ?? START)), second);
      see('from behind the third', await from(next(third ?? START)), undefined);
    },
  },
  {
    id: 'B36',
    belief: 'A peek locks nothing and counts nothing.',
    source: BROWSING,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await context.send(path, note(context.id('a')));
      const node = await context.node(path);
      for (let i = 0; i < 5; i += 1) await node.peek(START, 10, true);
      const message = await receiveOne(context, context.receiver(path));
      see('deliveries before', message.deliveryCount, 0);
    },
  },
  {
    id: 'B37',
    belief: 'With omit-message-body a peek leaves the body out and tells number and state all the same.',
    source: 'seen on the wire of the client; not documented',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, [note(context.id('a'))]);
      const [message] = await (await context.node(dlqOf(path))).peek(START, 1, false);
      if (!message) throw new Error('nothing was peeked');
      const bodies = sectionsByRhea(message).filter(({ code, bytes }) => code === CODE.data && bytes.length > 10);
      see('body sections', bodies.length, 0);
      seeThat('annotations', annotationsOf(message).has('x-opt-sequence-number'), [...annotationsOf(message).keys()]);
    },
  },
  {
    id: 'B38',
    belief:
      'A peek answers 250 messages at most, and going on behind the last number shows every one once, in ascending order.',
    source: 'azure-sdk-for-python#26643; ServiceBusExplorer#56',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      const all = notes(context, 300);
      for (let i = 0; i < 300; i += 100) await context.trySend(path, all.slice(i, i + 100));
      const node = await context.node(path);
      const receiver = context.receiver(path);
      const first = await node.peek(START, 300, true);
      seeThat('in one page', first.length > 0 && first.length <= 250, first.length);
      const seen: bigint[] = [];
      for (let from = Long.ZERO; ; ) {
        const page = await receiver.peekMessages(250, { fromSequenceNumber: from });
        const last = page.at(-1)?.sequenceNumber;
        if (last === undefined) break;
        seen.push(...page.map(({ sequenceNumber }) => BigInt(String(sequenceNumber))));
        from = last.add(1);
      }
      see('seen in all', new Set(seen).size, 300);
      see(
        'ascending',
        seen,
        seen.toSorted((a, b) => (a < b ? -1 : 1)),
      );
    },
  },
  {
    id: 'B39',
    belief:
      'Trap: without a number the official client peeks on behind what any receiver of the same entity peeked before.',
    source: 'seen in the client',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await context.send(path, note(context.id('a')));
      const [one, other] = [context.receiver(path), context.receiver(path)];
      see('the first receiver sees', (await one.peekMessages(10)).length, 1);
      see('the second receiver sees', (await other.peekMessages(10)).length, 0);
    },
  },
];
