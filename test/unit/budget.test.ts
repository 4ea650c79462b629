/** Who begins when, under the ceiling of a namespace. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { encodedMessage } from '../../shared/brokers/broker.ts';
import { type Budget, isServerBusy, onBudget, openBudget } from '../../shared/brokers/serviceBus/budget.ts';
import { unavailable } from '../../shared/brokers/serviceBus/errors.ts';
import type { Management } from '../../shared/brokers/serviceBus/management.ts';

let lines: string[];
let budget: Budget;
let begun: string[];

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  begun = [];
  budget = openBudget({ ceiling: 100, log: (line) => lines.push(line), now: () => Date.now() });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Asks for a turn and notes when it came, or why it did not. */
function ask(name: string, cost: number, withinMs = 60_000, of = budget): void {
  of.enter(cost, withinMs).then(
    () => begun.push(name),
    (error: Error) => begun.push(`${name}: ${error.name}`),
  );
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('a turn', () => {
  it('comes in the order of asking: nobody is passed for asking little', async () => {
    ask('first', 100);
    ask('large', 100);
    ask('small', 1);
    await pass(0);
    expect(begun).toEqual(['first']);
    await pass(999);
    expect(begun).toEqual(['first']);
    await pass(1);
    expect(begun).toEqual(['first', 'large']);
    await pass(10);
    expect(begun).toEqual(['first', 'large', 'small']);
  });

  it('comes also for what costs more than a second of traffic', async () => {
    ask('first', 1);
    ask('huge', 1_000);
    ask('next', 1);
    await pass(10);
    expect(begun).toEqual(['first', 'huge']);
    await pass(9_009);
    expect(begun).not.toContain('next');
    await pass(1);
    expect(begun).toContain('next');
  });

  it('that does not come in time is given up, costs nothing, and makes room', async () => {
    ask('first', 100);
    ask('hasty', 100, 500);
    ask('patient', 60);
    await pass(500);
    expect(begun).toEqual(['first', 'hasty: OverBudget']);
    await pass(100);
    expect(begun).toEqual(['first', 'hasty: OverBudget', 'patient']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('waits for what others paid without asking', async () => {
    budget.pay(150);
    ask('next', 1);
    await pass(509);
    expect(begun).toEqual([]);
    await pass(1);
    expect(begun).toEqual(['next']);
  });

  it('is nobody’s any more when the broker is closed', async () => {
    ask('first', 100);
    ask('second', 1);
    ask('third', 1);
    await pass(0);
    budget.close();
    ask('late', 1);
    await pass(0);
    expect(begun).toEqual(['first', 'second: Error', 'third: Error', 'late: Error']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('comes later when the broker turns out to be busy meanwhile, and the log says so once', async () => {
    ask('first', 100);
    ask('second', 50);
    await pass(0);
    budget.slowDown();
    budget.slowDown();
    await pass(999);
    expect(begun).toEqual(['first']);
    await pass(1);
    expect(begun).toEqual(['first', 'second']);
    expect(lines).toEqual(['the broker is busy: at most 50 operations a second for now']);
  });
});

describe('requests to a management node', () => {
  const node = (peeked: number): Management => ({
    isOpen: () => true,
    close: () => {},
    peek: async () => Array.from({ length: peeked }, () => encodedMessage(Buffer.alloc(0))),
    receive: async () => [],
    settle: async () => {},
  });
  const number = '1' as never;

  it('cost one for each message: a peek for those that came, and at least one', async () => {
    await onBudget(node(100), budget).peek(number, 250, true);
    ask('next', 1);
    await pass(9);
    expect(begun).toEqual([]);
    await pass(1);
    expect(begun).toEqual(['next']);
    await pass(1_000);
    await onBudget(node(0), budget).peek(number, 250, true);
    ask('all but one', 99);
    await pass(0);
    expect(begun).toContain('all but one');
  });

  it('wait before they lock, and never before they settle', async () => {
    const paid = onBudget(node(0), budget);
    await paid.receive(Array(100).fill(number));
    let locked = false;
    void paid.receive(Array(50).fill(number)).then(() => {
      locked = true;
    });
    await paid.settle(Array(100).fill('lock'), 'completed');
    await pass(1_499);
    expect(locked).toBe(false);
    await pass(1);
    expect(locked).toBe(true);
  });

  it('that got no turn for a minute are given up', async () => {
    budget.pay(100_000);
    const peek = onBudget(node(0), budget).peek(number, 1, true);
    const told = expect(peek).rejects.toThrow('100 operations a second');
    await pass(60_000);
    await told;
  });
});

describe('what the broker says when it is busy', () => {
  it.each([
    ['a condition on a link', { condition: 'com.microsoft:server-busy', description: 'throttled' }],
    ['a condition, wrapped', new Error('x', { cause: { condition: 'com.microsoft:server-busy' } })],
    [
      'an error of the office about one',
      unavailable('peek', { condition: 'com.microsoft:server-busy', description: 'throttled' }),
    ],
  ])('is known as %s', (_, error) => {
    expect(isServerBusy(error)).toBe(true);
  });

  it.each([undefined, 'server-busy', new Error('com.microsoft:server-busy'), { condition: 'com.microsoft:timeout' }])(
    'is not taken from %s',
    (error) => {
      expect(isServerBusy(error)).toBe(false);
    },
  );
});
