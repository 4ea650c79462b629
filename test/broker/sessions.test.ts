import type { ServiceBusSessionReceiver } from '@azure/service-bus';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MovableClock } from '../../local/broker/index.ts';
import { encode, encodeList } from '../../shared/brokers/serviceBus/amqp.ts';
import { Bench, peekAll, take, until } from './harness.ts';
import { RawClient } from './raw-client.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start(
    { s: { RequiresSession: true, LockDuration: 'PT30S', MaxDeliveryCount: 3 }, plain: {}, way: { ForwardTo: 's' } },
    {},
    { clock: new MovableClock() },
  );
});
beforeEach(() => bench.broker.recreate('s'));
afterEach(() => bench.broker.recreate('s'));
afterAll(() => bench.close());

const manual = { maxAutoLockRenewalDurationInMs: 0 } as const;
const send = (...ids: string[]) =>
  bench
    .client()
    .createSender('s')
    .sendMessages(ids.map((sessionId, body) => ({ sessionId, body })));
const accept = (id: string, client = bench.client()) => client.acceptSession('s', id, manual);
const bodies = async (receiver: ServiceBusSessionReceiver, count: number) =>
  (await take(receiver, count)).map(({ body }) => body);

describe('accepting a session', () => {
  it('by id gives its messages only, in their order', async () => {
    await send('a', 'b', 'a', 'b', 'a');
    const receiver = await accept('a');
    expect(receiver.sessionId).toBe('a');
    expect(receiver.sessionLockedUntilUtc.getTime()).toBeCloseTo(bench.broker.clock.now() + 30_000, -4);
    expect(await bodies(receiver, 3)).toEqual([0, 2, 4]);
    expect(await receiver.receiveMessages(1, { maxWaitTimeInMs: 50 })).toEqual([]);
    await send('a');
    expect(await bodies(receiver, 1)).toEqual([0]);
  });

  it('next gives one with messages that nobody has', async () => {
    await send('a', 'b');
    const client = bench.client();
    const first = await client.acceptNextSession('s', manual);
    const second = await client.acceptNextSession('s', manual);
    expect([first.sessionId, second.sessionId].sort()).toEqual(['a', 'b']);
  });

  it('next waits until there is one', async () => {
    const waiting = bench.client().acceptNextSession('s', manual);
    await send('late');
    const receiver = await waiting;
    expect([receiver.sessionId, await bodies(receiver, 1)]).toEqual(['late', [0]]);
  });

  it('next ends with a timeout when there is none', async () => {
    const waiting = bench.client(300).acceptNextSession('s', manual);
    await expect(waiting).rejects.toMatchObject({ code: 'ServiceTimeout' });
    // Nobody waits any more: what comes now is for those who come later.
    await send('a');
    expect((await bench.client().acceptNextSession('s', manual)).sessionId).toBe('a');
  });

  it('is given up with its connection, or by the client itself', async () => {
    const raw = await RawClient.connect(bench.broker);
    const filter = { 'com.microsoft:session-filter': null };
    const open = () => raw.connection.open_receiver({ source: { address: 's', filter } as never });
    // Answered in turn: what was asked before has been seen by then.
    const seen = () =>
      raw.manage('s', 'peek-message', { 'from-sequence-number': encode.long(0n), 'message-count': encode.int(1) });
    const first = open();
    await seen();
    first.close();
    open();
    await seen();
    bench.broker.dropConnections();
    await send('a');
    expect((await bench.client().acceptNextSession('s', manual)).sessionId).toBe('a');
  });

  it('that somebody has is refused', async () => {
    await accept('a');
    await expect(accept('a')).rejects.toMatchObject({ code: 'SessionCannotBeLocked' });
  });

  it.each([
    ['a plain receiver on an entity with sessions', () => bench.client().createReceiver('s'), "'s' requires sessions"],
    // The client puts its own guess in place of the broker's words when a session was asked for by name.
    ['a session on an entity without', () => bench.client().acceptSession('plain', 'a'), 'may be locked by another'],
    ['the next one on an entity without', () => bench.client().acceptNextSession('plain'), "'plain' has no sessions"],
  ])('is refused clearly: %s', async (_, open, text) => {
    const opening = Promise.resolve(open()).then((receiver) => receiver.receiveMessages(1, { maxWaitTimeInMs: 100 }));
    await expect(opening).rejects.toThrow(text);
  });
});

describe('a session', () => {
  it('is free again when its receiver closes, and its messages are not counted', async () => {
    await send('a', 'a');
    const first = await accept('a');
    await take(first, 2);
    await first.close();
    const second = await accept('a');
    expect((await take(second, 2)).map(({ deliveryCount, body }) => [deliveryCount, body])).toEqual([
      [0, 0],
      [0, 1],
    ]);
  });

  it('is free again when its connection is gone', async () => {
    await send('a');
    await take(await accept('a'), 1);
    bench.broker.dropConnections();
    await until(() => bench.broker.messages('s').every(({ locked }) => !locked), 'the end of the session');
    expect(await bodies(await accept('a'), 1)).toEqual([0]);
  });

  it('is settled in all ways', async () => {
    await send('a', 'a', 'a', 'a');
    const receiver = await accept('a');
    const [complete, abandon, defer, dead] = (await take(receiver, 4)) as [never, never, never, never];
    await receiver.completeMessage(complete);
    await receiver.deferMessage(defer);
    await receiver.deadLetterMessage(dead, { deadLetterReason: 'r', deadLetterErrorDescription: 'd' });
    await receiver.abandonMessage(abandon);
    expect(bench.broker.messages('s').map(({ state, deliveryCount }) => [state, deliveryCount])).toEqual([
      ['active', 1],
      ['deferred', 1],
    ]);
    const [deferred] = await receiver.receiveDeferredMessages((defer as { sequenceNumber: Long }).sequenceNumber);
    await receiver.completeMessage(deferred as never);
    expect(bench.broker.messages('s')).toHaveLength(1);
  });

  it('ends when its lock expires: the link goes, the messages count a delivery and are free', async () => {
    await send('a');
    const receiver = await accept('a');
    const [message] = await take(receiver, 1);
    bench.broker.clock.advance(30_000);
    expect(bench.broker.messages('s')).toMatchObject([{ locked: false, deliveryCount: 1 }]);
    // A settlement that is under way while the link goes is forgotten by the client: it fails only after a minute.
    await until(() => receiver.isClosed, 'the end of the link');
    await expect(receiver.completeMessage(message as never)).rejects.toMatchObject({ code: 'SessionLockLost' });
    await expect(receiver.renewSessionLock()).rejects.toMatchObject({ code: 'SessionLockLost' });
    expect(await bodies(await accept('a'), 1)).toEqual([0]);
  });

  it('dead-letters what came back too often, and holds on longer when it is renewed', async () => {
    await send('a');
    for (let i = 0; i < 3; i++) {
      const receiver = await accept('a');
      await take(receiver, 1);
      bench.broker.clock.advance(20_000);
      const until = await receiver.renewSessionLock();
      expect(until.getTime()).toBeCloseTo(bench.broker.clock.now() + 30_000, -4);
      bench.broker.clock.advance(20_000);
      expect(bench.broker.messages('s')).toMatchObject([{ locked: true, deliveryCount: i }]);
      bench.broker.clock.advance(10_000);
    }
    expect(bench.broker.messages('s')).toEqual([]);
    expect(bench.broker.messages('s/$DeadLetterQueue')).toMatchObject([{ deliveryCount: 3 }]);
  });

  it('carries a state, for its holder only', async () => {
    const receiver = await accept('a');
    expect(await receiver.getSessionState()).toBeNull();
    await receiver.setSessionState({ step: 2 });
    expect(await receiver.getSessionState()).toEqual({ step: 2 });
    await receiver.close();
    const next = await accept('a');
    expect(await next.getSessionState()).toEqual({ step: 2 });
    await expect(receiver.getSessionState()).rejects.toThrow();
  });

  it('is peeked without a lock', async () => {
    await send('a', 'b', 'a');
    const receiver = await accept('b');
    expect((await peekAll(bench.client().createReceiver('s'))).map(({ sessionId }) => sessionId)).toEqual([
      'a',
      'b',
      'a',
    ]);
    expect((await receiver.peekMessages(10)).map(({ sessionId }) => sessionId)).toEqual(['b']);
  });

  it('gives and deletes', async () => {
    await send('a', 'a');
    const receiver = await bench.client().acceptSession('s', 'a', { receiveMode: 'receiveAndDelete' });
    expect(await bodies(receiver, 2)).toEqual([0, 1]);
    expect(bench.broker.messages('s')).toEqual([]);
  });
});

describe('a message without a session id', () => {
  it('is refused where sessions are required', async () => {
    const sending = bench.client().createSender('s').sendMessages({ body: 1 });
    await expect(sending).rejects.toThrow("Every message sent to 's' needs a session id.");
    expect([bench.broker.messages('s'), bench.broker.messages('s/$DeadLetterQueue')]).toEqual([[], []]);
  });

  it('dies at once when it is handed on to where sessions are required', async () => {
    await bench.client().createSender('way').sendMessages({ body: 1 });
    expect(bench.broker.messages('s')).toEqual([]);
    const receiver = bench.client().createReceiver('s', { ...manual, subQueueType: 'deadLetter' });
    expect((await take(receiver, 1))[0]).toMatchObject({
      deadLetterReason: 'Session ID is null',
      deadLetterErrorDescription: "Session enabled entity doesn't allow a message whose session identifier is null.",
    });
  });
});

describe('the dead-letter queue of an entity with sessions', () => {
  async function deadLetter() {
    await send('a');
    const receiver = await accept('a');
    const [message] = await take(receiver, 1);
    await receiver.deadLetterMessage(message as never);
    const dead = bench.client().createReceiver('s', { ...manual, subQueueType: 'deadLetter' });
    const [letter] = await take(dead, 1);
    return { dead, letter: letter as never, number: letter?.sequenceNumber as Long };
  }

  it('is read without sessions', async () => {
    const { dead, letter } = await deadLetter();
    expect(letter).toMatchObject({ sessionId: 'a' });
    await dead.completeMessage(letter);
    expect(bench.broker.messages('s/$DeadLetterQueue')).toEqual([]);
  });

  it('keeps its deferred letters out of reach for other connections', async () => {
    const { dead, letter, number } = await deadLetter();
    await dead.deferMessage(letter);
    const other = bench.client().createReceiver('s', { ...manual, subQueueType: 'deadLetter' });
    await expect(other.receiveDeferredMessages(number)).rejects.toMatchObject({ code: 'SessionLockLost' });
    expect((await peekAll(other))[0]).toMatchObject({ state: 'deferred' });
    const [deferred] = await dead.receiveDeferredMessages(number);
    await dead.completeMessage(deferred as never);
  });

  it('gives them to everybody when that is chosen', async () => {
    const open = await Bench.start(
      { s: { RequiresSession: true }, way: { ForwardTo: 's' } },
      {},
      { bindsDeferredSessionLetters: false },
    );
    try {
      await open.client().createSender('way').sendMessages({ body: 1 });
      const dead = open.client().createReceiver('s', { ...manual, subQueueType: 'deadLetter' });
      const [letter] = await take(dead, 1);
      await dead.deferMessage(letter as never);
      const other = open.client().createReceiver('s', { ...manual, subQueueType: 'deadLetter' });
      const [deferred] = await other.receiveDeferredMessages(letter?.sequenceNumber as Long);
      await other.completeMessage(deferred as never);
      expect(open.broker.messages('s/$DeadLetterQueue')).toEqual([]);
    } finally {
      await open.close();
    }
  });
});

describe('over $management', () => {
  it('sessions are listed: with messages, or with a state changed since', async () => {
    await send('a', 'b', 'c');
    await (await accept('x')).setSessionState('changed');
    const raw = await RawClient.connect(bench.broker);
    const list = async (time: number, skip = 0) => {
      const answer = await raw.manage('s', 'get-message-sessions', {
        'last-updated-time': encode.timestamp(time),
        skip: encode.int(skip),
        top: encode.int(2),
      });
      const entries = answer.body?.type === 'map' ? answer.body.value : [];
      const ids = entries.find(([key]) => key.value === 'sessions-ids')?.[1];
      return [answer.status, ids?.type === 'list' ? ids.value.map(({ value }) => value) : []];
    };
    const endOfTime = Date.UTC(9999, 11, 31);
    expect(await list(endOfTime)).toEqual([200, ['a', 'b']]);
    expect(await list(endOfTime, 2)).toEqual([200, ['c']]);
    expect(await list(endOfTime, 3)).toEqual([204, []]);
    expect(await list(0)).toEqual([200, ['x']]);
    raw.close();
  });

  it.each(['renew-session-lock', 'get-session-state', 'set-session-state'])(
    '%s is for the connection that holds the session',
    async (operation) => {
      await accept('a');
      const raw = await RawClient.connect(bench.broker);
      expect(await raw.manage('s', operation, { 'session-id': encode.string('a') })).toMatchObject({
        status: 410,
        condition: 'com.microsoft:session-lock-lost',
      });
      raw.close();
    },
  );

  it('a message of a session is settled by the holder of the session only', async () => {
    await send('a');
    const receiver = await accept('a');
    const [message] = await take(receiver, 1);
    const raw = await RawClient.connect(bench.broker);
    const uuid = Buffer.from(message?.lockToken?.replaceAll('-', '') ?? '', 'hex');
    const answer = await raw.manage('s', 'update-disposition', {
      'lock-tokens': encodeList([Buffer.concat([Buffer.from([0x98]), uuid])]),
      'disposition-status': encode.string('completed'),
    });
    expect(answer).toMatchObject({ status: 410, condition: 'com.microsoft:session-lock-lost' });
    raw.close();
    await receiver.completeMessage(message as never);
  });
});
