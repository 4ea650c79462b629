/**
 * Links that ask for a session. The answer names the session and until when its lock holds; while no session is free
 * there is no answer at all, until the client's time is over.
 */
import type { Entity } from './entity.ts';
import { BrokerError } from './errors.ts';
import { confirmAttach } from './link.ts';
import { type RheaLink, rhea } from './rhea.ts';
import type { SessionHolder, SessionLock } from './sessions.ts';

export const SESSION_FILTER = 'com.microsoft:session-filter';
const TIMEOUT = 'com.microsoft:timeout';
const LOCKED_UNTIL = 'com.microsoft:locked-until-utc';
/** For a client that does not say how long it waits, milliseconds. */
const DEFAULT_TIMEOUT = 60_000;
/** .NET ticks are 100 nanoseconds since the year 1. */
const TICKS_AT_1970 = 621_355_968_000_000_000n;

/** The session a link asks for; `undefined` for the next that is free. */
export function wantedSession(link: RheaLink): string | undefined {
  const value = link.remote.attach.source?.filter?.[SESSION_FILTER];
  // Some clients describe their filters.
  const plain = typeof value === 'object' && value !== null && 'value' in value ? value.value : value;
  return typeof plain === 'string' ? plain : undefined;
}

/** A client that waits for a session. */
export interface Waiting {
  /** The client has gone. */
  cancel(): void;
}

/** What follows when the waiting is over. */
export interface Waiter {
  readonly holder: SessionHolder;
  accepted(lock: SessionLock): void;
  refused(error: BrokerError): void;
}

/**
 * Waits for the next free session. rhea has opened the link already when it tells of it; that is taken back here and
 * done anew when there is something to say.
 */
export function waitForSession(link: RheaLink, entity: Entity, waiter: Waiter): Waiting {
  link.state.local_open = false;
  link.state.open_requests--;
  const stop = (): void => {
    clearTimeout(timer);
    unsubscribe();
    link.open();
  };
  const look = (): void => {
    let lock: SessionLock | undefined;
    try {
      entity.check('receive');
      lock = entity.acceptSession(undefined, waiter.holder);
    } catch (caught) {
      if (!(caught instanceof BrokerError)) throw caught;
      stop();
      waiter.refused(caught);
      return;
    }
    if (!lock) return;
    stop();
    waiter.accepted(lock);
  };
  const unsubscribe = entity.onAvailable(look);
  const timeout = link.remote.attach.properties?.[TIMEOUT];
  const timer = setTimeout(
    () => {
      stop();
      waiter.refused(new BrokerError(TIMEOUT, `No session of '${entity.path}' became free in time.`));
    },
    typeof timeout === 'number' ? timeout : DEFAULT_TIMEOUT,
  );
  timer.unref();
  return {
    cancel() {
      stop();
      link.close();
    },
  };
}

/** Answers an attach with the session that was accepted. */
export function confirmSession(link: RheaLink, lock: SessionLock): void {
  const source = link.remote.attach.source;
  if (source) source.filter = { [SESSION_FILTER]: lock.id };
  confirmAttach(link);
  const ticks = Buffer.alloc(8);
  ticks.writeBigInt64BE(BigInt(lock.until) * 10_000n + TICKS_AT_1970);
  link.local.attach.properties = { [LOCKED_UNTIL]: rhea.types.wrap_long(ticks) };
}
