/**
 * The office's traffic on one namespace, kept below the ceiling that the catalog sets: production has the first claim.
 * Counted in this process; an app that has scaled out has one budget an instance.
 */
import { Bucket } from './bucket.ts';
import { codeOf, conditionOf } from './errors.ts';
import type { Management } from './management.ts';

/** Who asks first begins first. */
export interface Budget {
  /**
   * Waits until something of this cost may begin, and pays. Throws {@link OverBudget} after `withinMs`, having paid
   * nothing, and an `Error` when the broker is closed meanwhile.
   */
  enter(cost: number, withinMs: number): Promise<void>;
  /** Pays for what is not to wait, or was not known before; who comes next waits for it. */
  pay(cost: number): void;
  /** The broker said that it is busy. */
  slowDown(): void;
  /** Everybody who waits is sent away, and everybody who comes. */
  close(): void;
}

/** There was no turn in time; nothing was begun. */
export class OverBudget extends Error {
  override readonly name = 'OverBudget';
}

export interface BudgetOptions {
  /** `operationsPerSecond` of the catalog. */
  readonly ceiling: number;
  readonly log: (line: string) => void;
  /** ms, of a clock that does not jump. Default that of the process. */
  readonly now?: () => number;
}

interface Waiter {
  readonly cost: number;
  readonly end: NodeJS.Timeout;
  go(): void;
  fail(error: Error): void;
}

/** Opens a budget, unspent. */
export function openBudget({ ceiling, log, now = () => performance.now() }: BudgetOptions): Budget {
  const bucket = new Bucket(ceiling, now());
  const waiters: Waiter[] = [];
  let next: NodeJS.Timeout | undefined;
  let closed = false;

  /** Lets in who can begin, and comes back for the next one. */
  function admit(): void {
    clearTimeout(next);
    for (let head = waiters[0]; head !== undefined; head = waiters[0]) {
      const wait = bucket.waitFor(head.cost, now());
      if (wait > 0) {
        next = setTimeout(admit, wait);
        return;
      }
      waiters.shift();
      bucket.pay(head.cost, now());
      head.go();
    }
  }

  return {
    enter(cost, withinMs) {
      return new Promise((resolve, reject) => {
        if (closed) return reject(new Error('the broker was closed'));
        const end = setTimeout(() => {
          waiters.splice(waiters.indexOf(waiter), 1);
          reject(new OverBudget(`the budget of ${ceiling} operations a second had no room within ${withinMs} ms`));
          admit();
        }, withinMs);
        const waiter: Waiter = {
          cost,
          end,
          go() {
            clearTimeout(end);
            resolve();
          },
          fail(error) {
            clearTimeout(end);
            reject(error);
          },
        };
        waiters.push(waiter);
        if (waiters.length === 1) admit();
      });
    },
    pay(cost) {
      bucket.pay(cost, now());
    },
    slowDown() {
      if (bucket.slowDown(now())) {
        log(`the broker is busy: at most ${Math.ceil(bucket.rate(now()))} operations a second for now`);
      }
    },
    close() {
      closed = true;
      clearTimeout(next);
      for (const waiter of waiters.splice(0)) waiter.fail(new Error('the broker was closed'));
    },
  };
}

/** A request that has no turn after this long is given up, ms: its caller has limits of its own. */
const MAX_WAIT_MS = 60_000;

/** A management node whose requests are paid for. */
export function onBudget(node: Management, budget: Budget): Management {
  return {
    isOpen: () => node.isOpen(),
    close: () => node.close(),
    async peek(from, count, withBody) {
      await budget.enter(1, MAX_WAIT_MS);
      const messages = await node.peek(from, count, withBody);
      budget.pay(Math.max(0, messages.length - 1));
      return messages;
    },
    async receive(numbers) {
      await budget.enter(numbers.length, MAX_WAIT_MS);
      return node.receive(numbers);
    },
    async settle(locks, disposition) {
      // A lock runs out while it waits. That it was made has waited already.
      budget.pay(locks.length);
      await node.settle(locks, disposition);
    },
  };
}

/** Runs a receive whose yield is not known before: the first message is waited for, the others are paid afterwards. */
export async function receiveOnBudget<T extends { readonly size: number }>(
  budget: Budget,
  receive: () => Promise<T>,
): Promise<T> {
  await budget.enter(1, MAX_WAIT_MS);
  const received = await receive();
  budget.pay(Math.max(0, received.size - 1));
  return received;
}

/** The broker's own word for too much traffic, as it stands on links and deliveries. */
export const SERVER_BUSY = 'com.microsoft:server-busy';

/** Whether that is what `error` or one of its causes says. */
export function isServerBusy(error: unknown): boolean {
  let current = error;
  for (let depth = 0; current !== undefined && depth < 5; depth++) {
    if (codeOf(current) === 'ServerBusyError' || conditionOf(current)?.condition === SERVER_BUSY) return true;
    current = current instanceof Error ? current.cause : undefined;
  }
  return false;
}
