/**
 * The sessions of an entity: who has which one locked, and the state each carries. Messages are not its business; it
 * only remembers, for the end of a session's lock, which of them were handed out under it.
 */
import { BrokerError } from './errors.ts';
import { Heap } from './heap.ts';
import type { Entry } from './shelf.ts';

/** Who accepts a session: `owner` is compared by identity only, `lost` is called when the lock ends by itself. */
export interface SessionHolder {
  readonly owner: object;
  lost(): void;
}

/** A session in the hands of one receiver. */
export interface SessionLock {
  readonly id: string;
  readonly holder: SessionHolder;
  /** Messages handed out under this lock; they have no time limit of their own. */
  readonly entries: Set<Entry>;
  /** Milliseconds since 1970. */
  until: number;
  held: boolean;
}

interface Session {
  lock: SessionLock | undefined;
  state: Buffer | undefined;
  stateChangedAt: number;
}

export class Sessions {
  readonly #sessions = new Map<string, Session>();
  readonly #ends = new Heap<{ lock: SessionLock; until: number }>((a, b) => a.until < b.until);

  isLocked(id: string): boolean {
    return this.#sessions.get(id)?.lock !== undefined;
  }

  /** Locks a session. Throws com.microsoft:session-cannot-be-locked when somebody has it. */
  lock(id: string, holder: SessionHolder, until: number): SessionLock {
    if (this.isLocked(id)) {
      throw new BrokerError(
        'com.microsoft:session-cannot-be-locked',
        `The session '${id}' cannot be accepted: another receiver has it locked.`,
      );
    }
    const lock: SessionLock = { id, holder, entries: new Set(), until, held: true };
    this.#session(id).lock = lock;
    this.#ends.push({ lock, until });
    return lock;
  }

  extend(lock: SessionLock, until: number): void {
    lock.until = until;
    this.#ends.push({ lock, until });
  }

  /** Ends a lock; the session is free. */
  unlock(lock: SessionLock): void {
    const session = this.#sessions.get(lock.id);
    lock.held = false;
    if (session?.lock !== lock) return;
    session.lock = undefined;
    if (session.state === undefined) this.#sessions.delete(lock.id);
  }

  /** The lock on a session. Throws com.microsoft:session-lock-lost when `owner` has none. */
  lockOf(id: string, owner: object | undefined): SessionLock {
    const lock = this.#sessions.get(id)?.lock;
    if (lock && lock.holder.owner === owner) return lock;
    throw sessionLockLost(id);
  }

  /** The next lock whose time is over; it is still on its session. */
  nextEnd(now: number): SessionLock | undefined {
    for (let first = this.#ends.peek(); first && first.until <= now; first = this.#ends.peek()) {
      this.#ends.pop();
      if (first.lock.held && first.lock.until === first.until) return first.lock;
    }
    return undefined;
  }

  state(id: string): Buffer | undefined {
    return this.#sessions.get(id)?.state;
  }

  setState(id: string, state: Buffer | undefined, now: number): void {
    const session = this.#session(id);
    session.state = state;
    session.stateChangedAt = now;
  }

  /** Ids of the sessions whose state was changed after a time, milliseconds since 1970. */
  changedAfter(time: number): string[] {
    return [...this.#sessions]
      .filter(([, { state, stateChangedAt }]) => state && stateChangedAt > time)
      .map(([id]) => id);
  }

  /** All locks that are held. */
  locks(): SessionLock[] {
    return [...this.#sessions.values()].flatMap(({ lock }) => (lock ? [lock] : []));
  }

  #session(id: string): Session {
    let session = this.#sessions.get(id);
    if (!session) {
      session = { lock: undefined, state: undefined, stateChangedAt: 0 };
      this.#sessions.set(id, session);
    }
    return session;
  }
}

/** What everything says that needs a session's lock and does not have it. */
export function sessionLockLost(id: string): BrokerError {
  return new BrokerError(
    'com.microsoft:session-lock-lost',
    `The lock on the session '${id}' is not held: it expired, was given up, or belongs to another receiver.`,
  );
}
