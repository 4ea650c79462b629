/** Duplicate detection, which can swallow a replay. */
import { type Belief, see } from '../belief.ts';
import type { Context } from '../context.ts';
import { deadLetterNext, note, receive, START } from '../mail.ts';

const DUPLICATES = { entities: ['duplicates'] } as const;
const DETECTION = 'Microsoft, "Duplicate detection"';
const WINDOW = 20_000;
/** The service forgets ids a little later than it says. */
const BEHIND_WINDOW = 35_000;

export const duplicates: readonly Belief[] = [
  {
    id: 'B57',
    belief: 'A message whose id is known within the window is reported as accepted, and dropped.',
    source: `${DETECTION}; azure-service-bus#664`,
    needs: DUPLICATES,
    async check(context) {
      const path = context.path('duplicates');
      // Both must be told as accepted, or `send` complains.
      await context.send(path, note(context.id('a')), note(context.id('a'), { subject: 'other content' }));
      await context.send(path, note(context.id('b')));
      see('stored', await stored(context), 2);
    },
  },
  {
    id: 'B58',
    belief: 'The history outlives the message: after it was completed, its id is still known.',
    source: `azure-service-bus#243; ${DETECTION}`,
    needs: DUPLICATES,
    async check(context) {
      const path = context.path('duplicates');
      await context.send(path, note(context.id('a')));
      await consume(context);
      await context.send(path, note(context.id('a')));
      see('stored', await stored(context), 0);
    },
  },
  {
    id: 'B59',
    belief: 'A dead letter that is sent back to its queue within the window is accepted and dropped.',
    source: 'NServiceBus.AzureServiceBus#201; azure-service-bus#243',
    needs: DUPLICATES,
    async check(context) {
      const path = context.path('duplicates');
      await context.send(path, note(context.id('a')));
      await deadLetterNext(context, path, 1);
      await context.send(path, note(context.id('a')));
      see('stored', await stored(context), 0);
    },
  },
  {
    id: 'B60',
    belief: 'After the window the id is accepted and stored again; from then on the window counts anew.',
    source: DETECTION,
    needs: DUPLICATES,
    async check(context) {
      const path = context.path('duplicates');
      await context.send(path, note(context.id('a')));
      await consume(context);
      await context.pass(BEHIND_WINDOW);
      await context.send(path, note(context.id('a')));
      see('stored after the window', await stored(context), 1);
      await consume(context);
      await context.send(path, note(context.id('a')));
      see('stored within the new window', await stored(context), 0);
    },
  },
  {
    id: 'B61',
    belief: 'A duplicate that was dropped does not prolong the window.',
    source: 'not documented; the office reckons the window from the last message that was stored',
    needs: DUPLICATES,
    async check(context) {
      const path = context.path('duplicates');
      await context.send(path, note(context.id('a')));
      await consume(context);
      await context.pass(WINDOW * 0.75);
      await context.send(path, note(context.id('a')));
      see('stored within the window', await stored(context), 0);
      // Behind the window of the first, well within one that would begin with the second.
      await context.pass(WINDOW * 0.7);
      await context.send(path, note(context.id('a')));
      see('stored after the window of the first', await stored(context), 1);
    },
  },
];

async function stored(context: Context): Promise<number> {
  return (await (await context.node(context.path('duplicates'))).peek(START, 10, true)).length;
}

async function consume(context: Context): Promise<void> {
  const receiver = context.receiver(context.path('duplicates'));
  for (const message of await receive(context, receiver, 1)) await receiver.completeMessage(message);
  await receiver.close();
}
