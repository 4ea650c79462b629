/** The `$management` operations on sessions. All but the listing need the session's lock on the same connection. */
import { encode, encodeList, readValue } from '../../shared/brokers/serviceBus/amqp.ts';
import { encodeStringMap } from './encoding.ts';
import type { Entity } from './entity.ts';
import { BrokerError } from './errors.ts';
import type { Answer, Operation } from './management.ts';
import { binaryAt } from './message.ts';
import { type Arguments, malformed } from './request.ts';
import type { SessionLock, Sessions } from './sessions.ts';

export const SESSION_OPERATIONS: Record<string, Operation> = {
  'com.microsoft:renew-session-lock': ({ entity, caller }, args) => {
    const { lock } = held(entity, args, caller);
    const expiration = encode.timestamp(entity.renewSession(lock));
    return answer({ expiration });
  },
  'com.microsoft:get-session-state': ({ entity, caller }, args) => {
    const { lock, sessions } = held(entity, args, caller);
    const state = sessions.state(lock.id);
    return answer({ 'session-state': state ? encode.binary(state) : encode.null() });
  },
  'com.microsoft:set-session-state': ({ entity, caller }, args, now) => {
    const { lock, sessions } = held(entity, args, caller);
    const state = args.raw('session-state');
    sessions.setState(lock.id, state && Buffer.from(binaryAt(state, 0)), now);
    return answer({});
  },
  'com.microsoft:get-message-sessions': ({ entity }, args) => {
    sessionsOf(entity);
    const skip = count(args, 'skip');
    const ids = entity.sessionIds(changedAfter(args)).slice(skip, skip + count(args, 'top'));
    return {
      status: ids.length > 0 ? 200 : 204,
      body: encodeStringMap({
        skip: encode.int(skip),
        'sessions-ids': encodeList(ids.map((id) => encode.string(id))),
      }),
    };
  },
};

/** A time beyond this asks for the sessions with messages instead (so do the .NET clients). */
const END_OF_TIME = Date.UTC(9999, 0);

function changedAfter(args: Arguments): number | undefined {
  const raw = args.raw('last-updated-time');
  if (raw === undefined) return undefined;
  const value = readValue(raw);
  if (value.type !== 'timestamp') throw malformed("'last-updated-time' must be a timestamp.");
  return Number(value.value) >= END_OF_TIME ? undefined : Number(value.value);
}

function count(args: Arguments, name: string): number {
  const value = args.integer(name, 'int');
  if (value < 0n || value > 0x7fff_ffffn) {
    throw new BrokerError('com.microsoft:argument-out-of-range', `'${name}' must not be negative.`);
  }
  return Number(value);
}

function held(entity: Entity, args: Arguments, caller: object): { lock: SessionLock; sessions: Sessions } {
  const sessions = sessionsOf(entity);
  const id = args.text('session-id');
  if (id === undefined) throw malformed("'session-id' must be a string.");
  entity.sweep();
  return { lock: sessions.lockOf(id, caller), sessions };
}

function sessionsOf({ sessions, path }: Entity): Sessions {
  if (sessions) return sessions;
  throw new BrokerError('amqp:not-allowed', `'${path}' has no sessions.`);
}

function answer(body: Record<string, Buffer>): Answer {
  return { status: 200, body: encodeStringMap(body) };
}
