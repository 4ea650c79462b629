import { describe, expect, it } from 'vitest';
import type { Entity } from '../../local/broker/entity.ts';
import { arrival, Core, conditionOf, lock, reasonOf } from './core.ts';

function open(settings = {}) {
  const core = new Core();
  const { queue, deadLetters } = core.open('s', { requiresSession: true, ...settings });
  const lost: string[] = [];
  const accept = (id?: string, owner: object = {}) =>
    queue.acceptSession(id, { owner, lost: () => lost.push(id ?? 'next') });
  const hold = (id?: string, owner?: object) => {
    const session = accept(id, owner);
    if (!session) throw new Error('no session is free');
    return session;
  };
  return { core, queue, deadLetters, lost, accept, hold };
}

const LOST = 'com.microsoft:session-lock-lost';
const send = (queue: Entity, ...ids: string[]) => queue.store(ids.map((session) => arrival({ session })));

describe('sessions', () => {
  it('hand out their own messages in order, however the others come in between', () => {
    const { queue, hold } = open();
    send(queue, 'a', 'b', 'a', 'b', 'a');
    const [a, b] = [hold('a'), hold('b')];
    const taken = [a, b, a, b, a].map((session) => lock(queue, session).entry.sequenceNumber);
    expect(taken).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect([queue.lockNext(a), queue.lockNext(b)]).toEqual([undefined, undefined]);
  });

  it('put an abandoned message back in front', () => {
    const { queue, hold } = open();
    send(queue, 'a', 'a');
    const session = hold('a');
    queue.settle([lock(queue, session).token], { kind: 'abandon', properties: [] }, { session });
    expect(lock(queue, session).entry).toMatchObject({ sequenceNumber: 1n, deliveryCount: 1 });
  });

  it('are free again once given back, and what was locked is not counted', () => {
    const { queue, hold } = open();
    send(queue, 'a');
    const first = hold('a');
    const { token } = lock(queue, first);
    queue.closeSession(first);
    expect(conditionOf(() => queue.settle([token], { kind: 'complete' }, { session: first }))).toBe(LOST);
    expect(lock(queue, hold('a')).entry.deliveryCount).toBe(0);
  });

  it('are lost when their time is over: all messages at once, each counted, and the holder is told', () => {
    const { core, queue, hold, lost } = open();
    send(queue, 'a', 'a');
    const session = hold('a');
    const tokens = [lock(queue, session).token, lock(queue, session).token];
    core.advance(9_999);
    expect(queue.renewSession(session)).toBe(core.clock.time + 10_000);
    core.advance(9_999);
    queue.settle(tokens.slice(0, 1), { kind: 'release' }, { session });
    core.advance(1);
    expect(lost).toEqual(['a']);
    expect(conditionOf(() => queue.settle(tokens, { kind: 'complete' }, { session }))).toBe(LOST);
    expect(conditionOf(() => queue.lockNext(session))).toBe(LOST);
    expect(conditionOf(() => queue.renewSession(session))).toBe(LOST);
    expect(queue.all().map(({ deliveryCount }) => deliveryCount)).toEqual([0, 1]);
  });

  it('are found by who looks for the next: free, with active messages', () => {
    const { queue, hold, accept } = open();
    expect(accept()).toBeUndefined();
    send(queue, 'a', 'b');
    const first = hold();
    expect([first.id, hold().id].sort()).toEqual(['a', 'b']);
    expect(accept()).toBeUndefined();
    queue.settle([lock(queue, first).token], { kind: 'defer', properties: [] }, { session: first });
    queue.closeSession(first);
    expect(accept()).toBeUndefined();
  });

  it('wake those who wait when one comes free', () => {
    const { queue, hold } = open();
    send(queue, 'a');
    const session = hold('a');
    let woken = 0;
    queue.onAvailable(() => woken++);
    queue.closeSession(session);
    expect(woken).toBeGreaterThan(0);
  });

  it('keep their deferred messages to themselves', () => {
    const { queue, hold } = open();
    send(queue, 'a', 'b');
    const [a, b] = [hold('a'), hold('b')];
    queue.settle([lock(queue, a).token], { kind: 'defer', properties: [] }, { session: a });
    expect(conditionOf(() => queue.lockDeferred([1n]))).toBe(LOST);
    expect(conditionOf(() => queue.lockDeferred([1n], { session: b }))).toBe('com.microsoft:message-not-found');
    expect(queue.lockDeferred([1n], { session: a })).toHaveLength(1);
  });

  it('cannot be settled by another session, nor by nobody', () => {
    const { queue, hold } = open();
    send(queue, 'a', 'b');
    const [a, b] = [hold('a'), hold('b')];
    const { token } = lock(queue, a);
    expect(conditionOf(() => queue.settle([token], { kind: 'complete' }, { session: b }))).toBe(LOST);
    expect(conditionOf(() => queue.settle([token], { kind: 'complete' }))).toBe(LOST);
    queue.settle([token], { kind: 'complete' }, { session: a });
  });

  it('are not the place for a message without one', () => {
    const { queue, deadLetters } = open();
    expect(conditionOf(() => queue.store([arrival({ session: 'a' }), arrival()]))).toBe('amqp:not-allowed');
    expect(queue.all()).toEqual([]);
    for (const handedOn of [arrival(), arrival({ session: '' })]) queue.enqueue(handedOn);
    expect(queue.all()).toMatchObject([{ sessionId: '' }]);
    expect(reasonOf(deadLetters)).toEqual([
      'Session ID is null',
      "Session enabled entity doesn't allow a message whose session identifier is null.",
    ]);
  });

  it('end when the entity is emptied', () => {
    const { queue, hold, lost } = open();
    hold('a');
    queue.clear();
    expect(lost).toEqual(['a']);
    hold('a');
  });

  it('remember a state for as long as it is set, and nothing else', () => {
    const { core, queue, hold } = open();
    const session = hold('a');
    queue.sessions?.setState('a', Buffer.from('state'), core.clock.time);
    queue.closeSession(session);
    expect(String(queue.sessions?.state('a'))).toBe('state');
    expect([queue.sessionIds(core.clock.time - 1), queue.sessionIds(core.clock.time)]).toEqual([['a'], []]);
    queue.closeSession(hold('b'));
    queue.sessions?.setState('a', undefined, core.clock.time);
    expect(queue.sessionIds(0)).toEqual([]);
  });
});

describe('the deferred dead letters of an entity with sessions', () => {
  it.each([
    [true, LOST],
    [false, 'nothing was thrown'],
  ])('are bound to the connection that deferred them: %s', (binds, condition) => {
    const core = new Core();
    const { queue, deadLetters } = core.open('s', { requiresSession: true }, binds);
    queue.enqueue(arrival());
    const [mine, other] = [{}, {}];
    deadLetters.settle([lock(deadLetters).token], { kind: 'defer', properties: [] }, { caller: mine });
    expect(conditionOf(() => deadLetters.lockDeferred([1n], { caller: other }))).toBe(condition);
    core.advance(10_000);
    expect(deadLetters.lockDeferred([1n], { caller: mine })).toHaveLength(1);
  });
});
