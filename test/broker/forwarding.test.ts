import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../local/broker/index.ts';
import { Bench, manual, peekAll, take } from './harness.ts';

let bench: Bench;

const queue = (Name: string, Properties = {}) => ({ Name, Properties });
beforeAll(async () => {
  const config = parseConfig({
    UserConfig: {
      Namespaces: [
        {
          Queues: [
            queue('inbox', { ForwardTo: 'WORK' }),
            queue('work', { MaxDeliveryCount: 1, ForwardDeadLetteredMessagesTo: 'errors' }),
            queue('errors'),
            queue('fan', { ForwardTo: 'news' }),
            queue('round', { ForwardTo: 'about' }),
            queue('about', { ForwardTo: 'round' }),
          ],
          Topics: [
            {
              Name: 'news',
              Subscriptions: [
                { Name: 'kept', Properties: { ForwardDeadLetteredMessagesTo: 'errors' } },
                { Name: 'moved', Properties: { ForwardTo: 'work' } },
              ],
            },
          ],
        },
      ],
    },
  });
  bench = await Bench.start({}, {}, { config });
});
beforeEach(() => {
  for (const path of ['inbox', 'work', 'errors', 'fan', 'round', 'about', 'news']) bench.broker.recreate(path);
});
afterAll(() => bench.close());

const send = (path: string, body = 'x') => bench.client().createSender(path).sendMessages({ body, messageId: 'm' });
const count = (path: string) => bench.broker.messages(path).length;

describe('a forwarding entity', () => {
  it('hands on to a queue, which gives a number of its own', async () => {
    await send('work');
    await send('inbox');
    expect(bench.broker.messages('work')).toMatchObject([
      { sequenceNumber: 1n, enqueueSequenceNumber: 1n },
      { sequenceNumber: 2n, enqueueSequenceNumber: 1n },
    ]);
    expect(count('inbox')).toBe(0);
  });

  it('hands on to a topic, and a subscription to a queue', async () => {
    await send('fan');
    expect([count('news/Subscriptions/kept'), count('news/Subscriptions/moved'), count('work')]).toEqual([1, 0, 1]);
  });

  it('in a circle ends in a dead-letter queue after four hops', async () => {
    await send('round');
    const [dead] = await peekAll(bench.client().createReceiver('round', { subQueueType: 'deadLetter' }));
    expect(dead).toMatchObject({ deadLetterReason: 'MaxTransferHopCountExceeded', messageId: 'm' });
    expect([count('round'), count('about'), count('about/$DeadLetterQueue')]).toEqual([0, 0, 0]);
  });

  it.each([
    ['inbox', undefined],
    ['work', 'deadLetter'],
  ] as const)('lets nobody receive: %s', async (path, subQueueType) => {
    const receiver = bench.client().createReceiver(path, subQueueType ? { ...manual, subQueueType } : manual);
    await expect(receiver.receiveMessages(1, { maxWaitTimeInMs: 100 })).rejects.toThrow('forwards its messages');
  });
});

describe('a dead letter', () => {
  it('goes on with its reason, its source and new numbers', async () => {
    await send('work');
    await send('work');
    const receiver = bench.client().createReceiver('work', manual);
    for (const message of await take(receiver, 2)) await receiver.abandonMessage(message);
    expect(count('work/$DeadLetterQueue')).toBe(0);
    const errors = bench.client().createReceiver('errors', manual);
    const [first, second] = await take(errors, 2);
    expect(first).toMatchObject({
      deadLetterSource: 'work',
      deadLetterReason: 'MaxDeliveryCountExceeded',
      deliveryCount: 0,
      messageId: 'm',
    });
    expect([second?.sequenceNumber?.toNumber(), second?.enqueuedSequenceNumber]).toEqual([2, 2]);
    await errors.completeMessage(first as never);
  });

  it('of a subscription names it as its source', async () => {
    await send('news');
    const receiver = bench.client().createReceiver('news', 'kept', manual);
    await receiver.deadLetterMessage((await take(receiver, 1))[0] as never);
    const [letter] = await peekAll(bench.client().createReceiver('errors'));
    expect(letter?.deadLetterSource).toBe('news/Subscriptions/kept');
  });

  it('that dies again keeps where it died first as its source', async () => {
    await send('work');
    const receiver = bench.client().createReceiver('work', manual);
    await receiver.deadLetterMessage((await take(receiver, 1))[0] as never);
    const errors = bench.client().createReceiver('errors', manual);
    await errors.deadLetterMessage((await take(errors, 1))[0] as never, {
      deadLetterReason: 'again',
      deadLetterErrorDescription: 'test',
    });
    const [letter] = await peekAll(bench.client().createReceiver('errors', { subQueueType: 'deadLetter' }));
    expect(letter).toMatchObject({ deadLetterSource: 'work', deadLetterReason: 'again' });
  });
});
