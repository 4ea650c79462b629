/** Where letters can be sent beside the queue they failed in, and sources whose letters are not held. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LetterJson, openTestOffice, PLAIN, type TestOffice, until } from '../harness/office.ts';

let office: TestOffice;
const SESSIONS = { ...PLAIN, requiresSession: true };
beforeAll(async () => {
  office = await openTestOffice({
    sources: [
      { name: 'tried', replay: { sandboxQueue: 'sandbox' } },
      { name: 'plain' },
      { name: 'billing', topic: 'events', subscription: 'billing' },
      { name: 'narrow', topic: 'picky', subscription: 'narrow' },
      { name: 'parked', topic: 'parking', subscription: 'all' },
      { name: 'watched', mode: 'observe' },
      { name: 'deep', mode: 'observe' },
      { name: 'chats', mode: 'observe', entity: SESSIONS },
    ],
    queues: { sandbox: {}, chats: { RequiresSession: true }, work: { ForwardDeadLetteredMessagesTo: 'parking' } },
    topics: {
      events: { billing: {}, mail: {} },
      parking: { all: {} },
      picky: {
        narrow: {
          Rules: [
            {
              Name: 'fresh',
              Properties: {
                FilterType: 'Sql',
                SqlFilter: { SqlExpression: `NOT EXISTS("x-replay-id") OR sys.MessageId = 'made-of-it'` },
              },
            },
          ],
        },
      },
    },
  });
});
afterAll(() => office?.close());
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

async function observed(source: string, count: number): Promise<LetterJson[]> {
  return until(async () => {
    await office.collect(source);
    const letters = await office.letters(source);
    return letters.length >= count ? letters : undefined;
  }, `${count} letters of ${source}`);
}

async function deadLetterFrom(topic: string, subscription: string, count: number): Promise<void> {
  const bodies = Array.from({ length: count }, (_, i) => ({ messageId: `e-${i}`, body: i }));
  await office.send(topic, bodies);
  const receiver = office.client.createReceiver(topic, subscription, { maxAutoLockRenewalDurationInMs: 0 });
  for (let left = count; left > 0; ) {
    for (const message of await receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 })) {
      const why = { deadLetterReason: 'NoStock', deadLetterErrorDescription: 'sold out' };
      await receiver.deadLetterMessage(message, why);
      left--;
    }
  }
  await receiver.close();
}

test('where letters died before they were forwarded here is shown and suggested, and the catalog decides all the same', async () => {
  await office.send('work', [{ messageId: 'w-1', body: 1 }]);
  const why = { deadLetterReason: 'NoStock', deadLetterErrorDescription: 'sold out' };
  for (const receiver of [office.client.createReceiver('work'), office.client.createReceiver('parking', 'all')]) {
    for (const message of await receiver.receiveMessages(1)) await receiver.deadLetterMessage(message, why);
    await receiver.close();
  }
  const [{ sequenceNumber } = { sequenceNumber: '' }] = await observed('parked', 1);
  const { json: letter } = await office.call('read', 'GET', `sources/parked/letters/${sequenceNumber}`);
  expect(letter).toMatchObject({ evidence: { deadLetterSource: 'work' }, suggestedTarget: 'work' });
  const plan = await office.plan({}, 'parked');
  expect(plan.target).toBeNull();
  expect(plan.findings).toContainEqual(
    expect.objectContaining({
      code: 'no-direct-target',
      level: 'block',
      suggested: ['work'],
      message: expect.stringContaining('died first in work:'),
    }),
  );
  const run = await office.call('replay', 'POST', `plans/${plan.id}/run`, { confirm: 1 });
  expect(run).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_BLOCKED' } });
  expect(office.broker.messages('work')).toEqual([]);
  expect(office.broker.messages('parking/Subscriptions/all/$DeadLetterQueue')).toHaveLength(1);
});

test('a sandbox gets marked copies; the letters stay as they are and nothing is counted', async () => {
  await office.deadLetters(3, 'tried');
  const before = office.broker.messages('tried/$DeadLetterQueue').map(({ raw }) => raw);
  const plan = await office.plan({ choices: { target: 'sandbox' } }, 'tried');
  expect(plan).toMatchObject({ target: 'sandbox', findings: [], counts: { pending: 3 } });
  const finished = await office.run(plan);
  expect(finished.counts).toMatchObject({ planned: 3, done: 3 });
  expect(office.broker.messages('tried/$DeadLetterQueue').map(({ raw }) => raw)).toEqual(before);
  expect(office.broker.messages('tried')).toEqual([]);
  const receiver = office.client.createReceiver('sandbox', { receiveMode: 'receiveAndDelete' });
  const copies = await receiver.receiveMessages(3);
  await receiver.close();
  for (const { applicationProperties } of copies) {
    expect(applicationProperties).toMatchObject({ 'x-replay-sandbox': '1', 'x-replay-count': 0 });
  }
  expect((await office.letters('tried')).map(({ replayCount }) => replayCount)).toEqual([0, 0, 0]);
  // And then for real.
  expect((await office.run(await office.plan({}, 'tried'))).counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
});

test('without a sandbox a plan for one is blocked', async () => {
  const plan = await office.plan({ choices: { target: 'sandbox' } }, 'plain');
  expect(plan.findings.map(({ code }) => code)).toContain('no-sandbox');
});

test('to a topic only by name, first one letter, and that one seen in the subscription', async () => {
  await deadLetterFrom('events', 'billing', 4);
  await observed('billing', 4);
  const others = () => office.broker.messages('events/Subscriptions/mail').length;
  const before = others();
  const refused = await office.plan({ choices: { target: 'topic' } }, 'billing');
  expect(refused.findings).toContainEqual(expect.objectContaining({ code: 'fan-out', level: 'block' }));
  const plan = await office.plan({ choices: { target: 'topic', acceptFanOut: 'events' } }, 'billing');
  expect(plan.findings).toMatchObject([{ code: 'fan-out', level: 'warn' }]);
  const finished = await office.run(plan);
  expect(finished).toMatchObject({ target: 'events', counts: { done: 4, maybeDuplicate: 0 } });
  expect(office.broker.messages('events/Subscriptions/billing')).toHaveLength(4);
  expect(others()).toBe(before + 4);
  const receiver = office.client.createReceiver('events', 'billing', { receiveMode: 'receiveAndDelete' });
  const [message] = await receiver.receiveMessages(1);
  await receiver.close();
  expect(message?.applicationProperties?.['x-replay-for']).toBe('billing');
});

test('a letter that the subscription does not let through is not completed, and nothing more is sent', async () => {
  await deadLetterFrom('picky', 'narrow', 3);
  await observed('narrow', 3);
  const plan = await office.plan({ choices: { target: 'topic', acceptFanOut: 'picky' } }, 'narrow');
  await office.post(`plans/${plan.id}/run`, { confirm: 3, ramp: false });
  const waiting = await until(async () => {
    const now = await office.getPlan(plan.id);
    return now.stateReason?.includes('not been seen') ? now : undefined;
  }, 'the run to wait for its first letter');
  expect(waiting.counts).toMatchObject({ done: 0, pending: 3 });
  expect(office.broker.messages('picky/Subscriptions/narrow/$DeadLetterQueue')).toHaveLength(3);
  // What a consumer made of another letter, with all its properties, is not the letter.
  const says = { 'x-replay-id': plan.id, 'x-replay-of': '1' };
  await office.send('picky', { messageId: 'made-of-it', body: 'x', applicationProperties: says });
  // The operator knows better: it was consumed before anybody could look.
  await office.post(`plans/${plan.id}/pause`);
  expect((await office.finished(plan.id, ['paused'])).counts).toMatchObject({ done: 0 });
  expect(office.broker.messages('picky/Subscriptions/narrow')).toHaveLength(1);
  const receiver = office.client.createReceiver('picky', 'narrow', { receiveMode: 'receiveAndDelete' });
  expect(await receiver.receiveMessages(1)).toHaveLength(1);
  await receiver.close();
  // It may be in the subscription and in all others: nobody sends it once more before that is settled.
  const other = await office.plan({ choices: { target: 'topic', acceptFanOut: 'picky' } }, 'narrow');
  expect(other.findings.map(({ code, letters }) => [code, letters])).toContainEqual(['maybe-sent', 1]);
  const refused = await office.call('replay', 'POST', `plans/${other.id}/run`, { confirm: 3, ramp: false });
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_LETTERS_UNENDED', plan: plan.id } });
  await office.post(`plans/${plan.id}/cancel`);
});

test('a run whose first letter was not seen in the subscription is cancelled when asked, and the letter is marked', async () => {
  await deadLetterFrom('picky', 'narrow', 2);
  await observed('narrow', 2);
  const plan = await office.plan({ choices: { target: 'topic', acceptFanOut: 'picky' } }, 'narrow');
  const { pending } = plan.counts;
  await office.post(`plans/${plan.id}/run`, { confirm: pending, ramp: false });
  await until(
    async () => (await office.getPlan(plan.id)).stateReason?.includes('not been seen') || undefined,
    'it to wait',
  );
  await office.post(`plans/${plan.id}/cancel`);
  const cancelled = await office.finished(plan.id, ['cancelled', 'paused']);
  expect(cancelled).toMatchObject({ state: 'cancelled', stateReason: 'cancelled by an operator' });
  expect(cancelled.counts).toMatchObject({ done: 0, pending: 0, left: pending, maybeDuplicate: 1 });
  expect((await office.get<{ heldBy: string | null }>('sources/narrow')).heldBy).toBeNull();
});

test('letters of an observe source are received from the front, sent back, and all others given back untouched', async () => {
  const ids = Array.from({ length: 30 }, (_, i) => ({ messageId: `m-${i}`, body: i }));
  await office.send('watched', ids);
  await office.deadLetterAll('watched');
  const letters = await observed('watched', 30);
  const chosen = letters.filter((_, i) => i % 3 === 0).map(({ sequenceNumber }) => sequenceNumber);
  const plan = await office.plan({ selection: { sequenceNumber: chosen } }, 'watched');
  expect(plan).toMatchObject({ findings: [], counts: { pending: 10 } });
  const finished = await office.run(plan);
  expect(finished.counts).toMatchObject({ done: 10, maybeDuplicate: 0 });
  const rest = office.broker.messages('watched/$DeadLetterQueue');
  expect(rest).toHaveLength(20);
  expect(rest.every(({ state, locked, deliveryCount }) => state === 'active' && !locked && deliveryCount === 0)).toBe(
    true,
  );
  expect(office.broker.messages('watched')).toHaveLength(10);
});

test('a letter of an observe source behind 2,000 others is out of reach, and comes into reach when those have gone', async () => {
  for (let i = 0; i < 2002; i += 182) {
    await office.send(
      'deep',
      Array.from({ length: 182 }, (_, k) => ({ messageId: `m-${i + k}`, body: 'x' })),
    );
  }
  await office.deadLetterAll('deep');
  await office.collect('deep');
  const only = (...sequenceNumber: string[]) => office.plan({ selection: { sequenceNumber } }, 'deep');
  const behind = await only('2000', '2001', '2002');
  expect(behind.findings).toMatchObject([{ code: 'out-of-reach', level: 'block', letters: 2 }]);
  expect(behind.findings[0]?.message).toContain('defer');
  const refused = await office.call('replay', 'POST', `plans/${behind.id}/run`, { confirm: 1 });
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_BLOCKED' } });
  const reached = await only('1', '2', '2000');
  expect(reached).toMatchObject({ findings: [], counts: { pending: 3 } });
  expect((await office.run(reached)).counts).toMatchObject({ done: 3 });
  expect(await only('2001', '2002')).toMatchObject({ findings: [], counts: { pending: 2 } });
});

test('a letter of an observe source that somebody else has locked is waited for', async () => {
  const held = office.client.createReceiver('watched', {
    subQueueType: 'deadLetter',
    maxAutoLockRenewalDurationInMs: 0,
  });
  const [locked] = await held.receiveMessages(1);
  const number = String(locked?.sequenceNumber);
  const plan = await office.plan({ selection: { sequenceNumber: [number] } }, 'watched');
  await office.post(`plans/${plan.id}/run`, { confirm: 1, ramp: false });
  await until(
    async () => (await office.getPlan(plan.id)).stateReason?.includes('locked') || undefined,
    'the run to wait',
  );
  office.broker.clock.advance(61_000);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 1, maybeDuplicate: 0 });
  await held.close();
});

test('letters of sessions go back one by one, in order, with their sessions', async () => {
  const bodies = Array.from({ length: 8 }, (_, i) => ({ messageId: `s-${i}`, sessionId: `chat-${i % 2}`, body: i }));
  for (const body of bodies) await office.send('chats', body);
  for (const session of ['chat-0', 'chat-1']) {
    const receiver = await office.client.acceptSession('chats', session, { maxAutoLockRenewalDurationInMs: 0 });
    for (let left = 4; left > 0; left--) {
      for (const message of await receiver.receiveMessages(1)) {
        const why = { deadLetterReason: 'Unreadable', deadLetterErrorDescription: 'no words' };
        await receiver.deadLetterMessage(message, why);
      }
    }
    await receiver.close();
  }
  await observed('chats', 8);
  const finished = await office.run(await office.plan({}, 'chats'));
  expect(finished.counts).toMatchObject({ planned: 8, done: 8, maybeDuplicate: 0 });
  for (const session of ['chat-0', 'chat-1']) {
    const receiver = await office.client.acceptSession('chats', session, { receiveMode: 'receiveAndDelete' });
    const back: unknown[] = [];
    while (back.length < 4) back.push(...(await receiver.receiveMessages(4)).map(({ body }) => body));
    await receiver.close();
    expect(back).toEqual([0, 2, 4, 6].map((n) => n + Number(session.at(-1))));
  }
});
