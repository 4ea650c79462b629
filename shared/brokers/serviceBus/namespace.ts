/**
 * A namespace as everybody in the office shares it: one connection, opened by the first who needs it, replaced after
 * an error, closed when nobody has used it for a while.
 */
import { type Budget, isServerBusy, onBudget } from './budget.ts';
import { type AmqpConnection, openConnection, type Wire } from './connection.ts';
import type { Endpoint } from './credentials.ts';
import { unavailable } from './errors.ts';
import { type Management, openManagement } from './management.ts';

/** A connection while it is in use. */
export interface Line {
  readonly connection: AmqpConnection;
  readonly budget: Budget;
  /** The management node of the entity at `path`; its links are shared, and its requests are paid for. */
  management(path: string): Promise<Management>;
}

/** The shared way to one namespace. */
export interface Namespace {
  /**
   * Runs `work` on the connection. Trouble in reaching the namespace is thrown as `DLO_BROKER_UNAVAILABLE` naming
   * what `doing` did; errors of `work` come through as they are.
   */
  use<T>(doing: string, work: (line: Line) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Opens nothing yet. */
export function shareNamespace(endpoint: Endpoint, wire: Wire): Namespace {
  let current: Promise<OpenLine> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function line(): Promise<OpenLine> {
    if (current !== undefined) return current;
    const opening = openLine(endpoint, wire);
    current = opening;
    const forget = () => {
      if (current === opening) current = undefined;
    };
    opening.then(({ connection }) => {
      if (connection.ended.aborted) forget();
      else connection.ended.addEventListener('abort', forget, { once: true });
    }, forget);
    timer ??= setInterval(closeWhenIdle, wire.idleMs / 4).unref();
    return opening;
  }

  function noteBusy(error: unknown): void {
    if (isServerBusy(error)) wire.budget.slowDown();
  }

  async function closeWhenIdle(): Promise<void> {
    const open = await current?.catch(() => undefined);
    if (open?.sweep(wire.idleMs)) await open.connection.close('the connection was idle');
    if (current === undefined) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    async use(doing, work) {
      if (closed) throw unavailable(doing, new Error('the broker was closed'));
      let open: OpenLine;
      try {
        open = await line();
      } catch (error) {
        noteBusy(error);
        throw unavailable(doing, error);
      }
      try {
        return await open.during(() => work(open));
      } catch (error) {
        noteBusy(error);
        throw error;
      }
    },
    async close() {
      closed = true;
      clearInterval(timer);
      wire.budget.close();
      const open = await current?.catch(() => undefined);
      await open?.connection.close('the broker was closed');
    },
  };
}

interface OpenLine extends Line {
  during<T>(work: () => Promise<T>): Promise<T>;
  /** Closes links that were not used for long; says whether the connection was not used for `ms` either. */
  sweep(ms: number): boolean;
}

async function openLine(endpoint: Endpoint, wire: Wire): Promise<OpenLine> {
  const connection = await openConnection(endpoint, wire);
  const links = new Map<string, { usedAt: number; opening: Promise<Management> }>();
  let users = 0;
  let usedAt = performance.now();
  return {
    connection,
    budget: wire.budget,
    async management(path) {
      const known = links.get(path);
      const open = await known?.opening.catch(() => undefined);
      if (known !== undefined && open?.isOpen()) {
        known.usedAt = performance.now();
        return open;
      }
      // While we waited, somebody else may have opened it anew.
      const other = links.get(path);
      if (other !== undefined && other !== known) return other.opening;
      const opening = openManagement(connection, path, wire).then((node) => onBudget(node, wire.budget));
      links.set(path, { usedAt: performance.now(), opening });
      return opening;
    },
    async during(work) {
      users += 1;
      try {
        return await work();
      } finally {
        users -= 1;
        usedAt = performance.now();
      }
    },
    sweep(ms) {
      const before = performance.now() - ms;
      for (const [path, link] of links) {
        // Far longer than a request can last, so that none is cut off.
        if (link.usedAt > before - 4 * ms) continue;
        links.delete(path);
        link.opening.then((open) => open.close()).catch(() => {});
      }
      return users === 0 && usedAt <= before;
    },
  };
}
