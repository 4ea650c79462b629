/**
 * One AMQP connection to a namespace, from its opening to its end. It is never reopened in place: after an error it
 * is over, `ended` says so to everybody who waits on it, and the next user opens another one.
 */
import { setMaxListeners } from 'node:events';
import { ConnectionContextBase } from '@azure/core-amqp';
import { ConnectionEvents, type EventContext, type Session } from 'rhea-promise';
import { errorText } from '../../errors.ts';
import type { Budget } from './budget.ts';
import type { Endpoint } from './credentials.ts';

/** What all parts of the adapter need for talking to a broker. */
export interface Wire {
  /** How long an answer may take, ms. */
  readonly operationTimeoutMs: number;
  /** After this long without use a connection is closed, ms. */
  readonly idleMs: number;
  /** What this namespace may be asked for. */
  readonly budget: Budget;
  log(line: string): void;
}

/** An open connection. */
export interface AmqpConnection {
  /** Aborted when the connection is over; its reason is an `Error` that says why. */
  readonly ended: AbortSignal;
  /** Makes sure that the broker holds a claim of ours for `path`; renews it in time. */
  authorize(path: string): Promise<void>;
  /** What to tell of `error`: why the connection ended, if it did, as everything else follows from that. */
  blame(error: unknown): unknown;
  /** A session of its own for one link or one pair of links, so that none waits for another. */
  createSession(): Promise<Session>;
  /** Ends the connection. Never throws, and does not wait long for a broker that is gone. */
  close(why: string): Promise<void>;
}

interface Claim {
  readonly granted: Promise<void>;
  renewAt: number;
}

const CLOSE_TIMEOUT_MS = 2_000;

/** Connects to the namespace and to its claims node. Throws what the AMQP library throws. */
export async function openConnection(endpoint: Endpoint, wire: Wire): Promise<AmqpConnection> {
  const { operationTimeoutMs } = wire;
  const context = ConnectionContextBase.create({
    config: endpoint.config,
    connectionProperties: { product: 'dead-letter-office', version: '0', userAgent: 'dead-letter-office' },
    operationTimeoutInMs: operationTimeoutMs,
  });
  const { connection, cbsSession } = context;
  const end = new AbortController();
  // Every request that waits for an answer listens here; the warning is meant for leaks.
  setMaxListeners(0, end.signal);
  const onEnd = (event: EventContext) => {
    const cause = event.error ?? event.connection?.error;
    end.abort(new Error('the connection ended', cause === undefined ? undefined : { cause }));
  };
  for (const event of ENDINGS) connection.on(event, onEnd);

  const claims = new Map<string, Claim>();
  const limits = { abortSignal: end.signal, timeoutInMs: operationTimeoutMs };
  let claimsNode: Promise<void> | undefined;

  const blame = (error: unknown): unknown => (end.signal.aborted ? end.signal.reason : error);

  /** The broker may detach the links to its claims node while the connection lives on. */
  function openClaimsNode(): Promise<void> {
    if (cbsSession.isOpen()) return Promise.resolve();
    claimsNode ??= cbsSession.init(limits).finally(() => {
      claimsNode = undefined;
    });
    return claimsNode;
  }

  async function putToken(path: string): Promise<number> {
    const audience = `${endpoint.config.endpoint}${path}`;
    const token = await endpoint.tokenFor(audience);
    try {
      await openClaimsNode();
      await cbsSession.negotiateClaim(audience, token.token, token.type, limits);
    } catch (error) {
      throw blame(error);
    }
    return token.renewAt;
  }

  function claim(path: string): Claim {
    const request: Claim = {
      renewAt: Number.POSITIVE_INFINITY,
      granted: putToken(path).then((renewAt) => {
        request.renewAt = renewAt;
      }),
    };
    request.granted.catch(() => claims.get(path) === request && claims.delete(path));
    claims.set(path, request);
    return request;
  }

  async function close(why: string): Promise<void> {
    end.abort(new Error(why));
    // A connection that opens after we gave up on it must not stay open.
    connection.on(ConnectionEvents.connectionOpen, () => void connection.close().catch(() => {}));
    // The library's promise stays open for ever when the socket drops while closing, hence the race.
    const closed = connection.close().catch((error) => wire.log(`closing a connection failed: ${errorText(error)}`));
    await Promise.race([closed, after(CLOSE_TIMEOUT_MS)]);
  }

  try {
    await openClaimsNode();
  } catch (error) {
    const blamed = end.signal.aborted && isAbort(error) ? end.signal.reason : error;
    void close('the connection could not be opened');
    throw blamed;
  }
  return {
    ended: end.signal,
    close,
    blame,
    createSession: () =>
      connection.createSession({ abortSignal: end.signal }).catch((error: unknown) => Promise.reject(blame(error))),
    authorize(path) {
      const held = claims.get(path);
      return (held !== undefined && Date.now() < held.renewAt ? held : claim(path)).granted;
    },
  };
}

const ENDINGS = [
  ConnectionEvents.disconnected,
  ConnectionEvents.connectionClose,
  ConnectionEvents.connectionError,
  ConnectionEvents.protocolError,
  ConnectionEvents.error,
];

/** Whether `error` says no more than that a signal was aborted. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** Resolves after `ms`; does not keep the process alive. */
export function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
