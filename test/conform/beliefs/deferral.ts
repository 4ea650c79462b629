/** Letters set aside in the dead-letter queue, and taken by number. */
import Long from 'long';
import { type Belief, see, seeThat } from '../belief.ts';
import { dlqOf } from '../context.ts';
import { die, hold, next, note, notes, refusal, START, seeNothing } from '../mail.ts';

const PLAIN = { entities: ['plain'] } as const;
const GUIDE = 'Microsoft, "Message deferral"';

export const deferral: readonly Belief[] = [
  {
    id: 'B15',
    belief:
      'A letter can be deferred in a dead-letter queue; then no receiver gets it, and a peek shows it with state 1.',
    source: `azure-sdk-for-js live test batchReceiver.spec.ts; ${GUIDE}`,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 2));
      const numbers = await hold(context, path, 2);
      await seeNothing(context, dlqOf(path));
      const letters = await (await context.deadLetters(path)).peek(START, 10);
      see(
        'peeked',
        letters.map(({ letter }) => [letter.sequenceNumber, letter.state]),
        numbers.map((n) => [n, 'held']),
      );
    },
  },
  {
    id: 'B16',
    belief: 'A deferred letter is received by its number, in any order, and can be completed.',
    source: GUIDE,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 3));
      const numbers = (await hold(context, path, 3)).toReversed();
      const queue = await context.deadLetters(path);
      const { locked } = await queue.take(numbers);
      see(
        'numbers',
        locked.map(({ letter }) => letter.sequenceNumber),
        numbers,
      );
      see(
        'completed',
        await queue.complete(locked.map((letter) => letter.lock)),
        numbers.map(() => 'settled'),
      );
      see('left', (await queue.peek(START, 10)).length, 0);
    },
  },
  {
    id: 'B17',
    belief: 'Abandoning a deferred letter leaves it deferred.',
    source: 'azure-sdk-for-js live test deferredMessage.spec.ts; azure-sdk-for-net#45908',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, [note(context.id('a'))]);
      const numbers = await hold(context, path, 1);
      const queue = await context.deadLetters(path);
      const { locked } = await queue.take(numbers);
      await queue.release(locked.map((letter) => letter.lock));
      await seeNothing(context, dlqOf(path));
      see('received again', (await queue.take(numbers)).locked.length, 1);
    },
  },
  {
    id: 'B18',
    belief: 'A deferred letter whose lock is lost is deferred as before.',
    source: GUIDE,
    needs: { entities: ['brief'] },
    async check(context) {
      const path = context.path('brief');
      await die(context, path, [note(context.id('a'))]);
      const numbers = await hold(context, path, 1);
      const queue = await context.deadLetters(path);
      see('received', (await queue.take(numbers)).locked.length, 1);
      await context.pass(7_000);
      await seeNothing(context, dlqOf(path));
      see('received again', (await queue.take(numbers)).locked.length, 1);
    },
  },
  {
    id: 'B19',
    belief: "The lock on a deferred letter lasts the entity's lock duration, and can be renewed.",
    source: 'azure-sdk-for-js live test deferredMessage.spec.ts; ServiceBusExplorer DeadLetterMessageHandler.cs',
    needs: { entities: ['brief'] },
    async check(context) {
      const path = context.path('brief');
      await die(context, path, [note(context.id('a'))]);
      const numbers = await hold(context, path, 1);
      const receiver = context.receiver(dlqOf(path));
      const before = Date.now();
      const [letter] = await receiver.receiveDeferredMessages(numbers.map(toLong));
      const lasts = (letter?.lockedUntilUtc?.getTime() ?? 0) - before;
      // The clocks of client and broker may differ by a second or two, the local broker's only forward.
      seeThat('lock duration in ms', lasts > 2_000 && lasts < 20_000, lasts);
      await context.pass(3_000);
      if (letter) await receiver.renewMessageLock(letter);
      await context.pass(3_000);
      if (letter) see('completing 6 s after', await refusal(receiver.completeMessage(letter)), 'nothing was refused');
    },
  },
  {
    id: 'B20',
    belief: 'One bad number fails the whole request to receive by number, and no other letter gets locked by it.',
    source: 'azure-service-bus#256, azure-service-bus#415',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 3));
      const numbers = await hold(context, path, 3);
      const node = await context.node(dlqOf(path));
      const bad = next(numbers.at(-1) ?? START);
      see('with a bad number', await refusal(node.receive([...numbers, bad])), 'MessageNotFoundError');
      see('without it', (await node.receive(numbers)).length, 3);
    },
  },
  {
    id: 'B21',
    belief: 'Receiving by number says MessageNotFound for a letter that is locked, absent, or not deferred, alike.',
    source: 'azure-service-bus#256; azure-service-bus-dotnet#381',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 2));
      const numbers = await hold(context, path, 1);
      const [active] = (await context.deadLetters(path).then((queue) => queue.peek(START, 10))).filter(
        ({ letter }) => letter.state === 'active',
      );
      const node = await context.node(dlqOf(path));
      await node.receive(numbers);
      const activeNumber = active?.letter.sequenceNumber ?? START;
      see('locked', await refusal(node.receive(numbers)), 'MessageNotFoundError');
      see('active', await refusal(node.receive([activeNumber])), 'MessageNotFoundError');
      see('absent', await refusal(node.receive([next(activeNumber)])), 'MessageNotFoundError');
    },
  },
  {
    id: 'B22',
    belief:
      'Peeking the number tells them apart: absent is not shown, active has state 0, deferred state 1, locked or not.',
    source: 'azure-service-bus#310; Microsoft, "Message browsing"',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 2));
      const numbers = await hold(context, path, 1);
      const queue = await context.deadLetters(path);
      await queue.take(numbers);
      const active = next(numbers[0] ?? START);
      see('locked and deferred', (await queue.peekOne(numbers[0] ?? START))?.letter.state, 'held');
      see('active', (await queue.peekOne(active))?.letter.state, 'active');
      see('absent', await queue.peekOne(next(active)), undefined);
      const all = [...numbers, active, next(active)];
      const taken = await queue.take(all);
      see('sorted', [taken.busy, taken.active, taken.absent, taken.locked], [numbers, [active], [next(active)], []]);
    },
  },
  {
    id: 'B23',
    belief: 'One request receives a hundred deferred letters by number.',
    source: 'not documented; the largest request that the office makes',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, notes(context, 100));
      const numbers = await hold(context, path, 100);
      see('received', (await (await context.node(dlqOf(path))).receive(numbers)).length, 100);
    },
  },
  {
    id: 'B24',
    belief: 'Receiving by number works on another connection than the one that deferred.',
    source: `${GUIDE}; not so for sessions: azure-sdk-for-net#34662`,
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await die(context, path, [note(context.id('a'))]);
      const receiver = context.receiver(dlqOf(path), context.anotherClient());
      const [letter] = await receiver.receiveMessages(1, { maxWaitTimeInMs: context.place.slownessMs });
      if (letter) await receiver.deferMessage(letter);
      const numbers = (await (await context.deadLetters(path)).peek(START, 1)).map(
        (read) => read.letter.sequenceNumber,
      );
      see('received', (await (await context.node(dlqOf(path))).receive(numbers)).length, 1);
    },
  },
];

function toLong(number: string): Long {
  return Long.fromString(number);
}
