/** One client connection: its links and what each of them leads to. */
import type { Socket } from 'node:net';
import { Claims } from './cbs.ts';
import type { Clock } from './clock.ts';
import { acceptsFrames } from './connection.ts';
import { Consumer } from './consumer.ts';
import { forgetAll, keepRawTransfers, onRawDispositions, type RawDisposition, rawTransfer } from './delivery.ts';
import type { Entity } from './entity.ts';
import { asBrokerError, BrokerError } from './errors.ts';
import type { Faults } from './faults.ts';
import { confirmAttach, refuseAttach, remoteAddress, sourceFilters } from './link.ts';
import type { Namespace } from './namespace.ts';
import { Producer } from './producer.ts';
import { cbsService, managementService, Responder } from './responder.ts';
import type { RheaConnection, RheaContext, RheaLink, RheaSession } from './rhea.ts';
import type { Right, SasKey } from './sas.ts';
import { confirmSession, SESSION_FILTER, type Waiting, waitForSession, wantedSession } from './session-link.ts';
import type { SessionLock } from './sessions.ts';

/** What all connections of a broker share. */
export interface BrokerParts {
  readonly namespace: Namespace;
  readonly faults: Faults;
  readonly clock: Clock;
  /** Time by which tokens expire: the clients' time, never a moved one. */
  readonly tokenClock: Clock;
  readonly sasKeys: readonly SasKey[];
  readonly maxMessageBytes: number;
  readonly log: (line: string) => void;
}

const CBS = '$cbs';
const MANAGEMENT = /\/\$management$/i;
/** Requests to `$cbs` carry tokens; they are not messages of an entity and have a limit of their own, bytes. */
const MAX_TOKEN_BYTES = 1_048_576;

export class Peer {
  readonly broker: BrokerParts;
  readonly claims = new Claims();
  /** Stands for this connection where only the same one may go on; kept where the connection itself must not be. */
  readonly identity: object = {};
  readonly #socket: Socket;
  readonly #takers = new Map<RheaLink, Producer | Responder>();
  readonly #consumers = new Map<RheaLink, Consumer>();
  readonly #waiting = new Map<RheaLink, Waiting>();
  /** Links for answers, by the addresses a request may name in its reply-to. */
  readonly #replies = new Map<string, RheaLink>();

  readonly #stopWatching: () => void;

  constructor(connection: RheaConnection, socket: Socket, broker: BrokerParts) {
    this.broker = broker;
    this.#socket = socket;
    this.#stopWatching = broker.namespace.onRemoved((path) => this.guard(() => this.#detachFrom(path)));
    const on = (event: string, handle: (context: RheaContext) => void): void =>
      connection.on(event, (context) => this.guard(() => handle(context)));
    on('connection_open', () => {
      if (!acceptsFrames(connection)) throw new Error('the peer takes no frames of 512 bytes');
    });
    on('session_open', ({ session }) => this.#openSession(session as RheaSession));
    on('receiver_open', ({ receiver }) => this.#attach(receiver as RheaLink, (link) => this.#openTaker(link)));
    on('sender_open', ({ sender }) => this.#attach(sender as RheaLink, (link) => this.#openSource(link)));
    on('message', (context) => this.#takers.get(context.receiver as RheaLink)?.receive(rawTransfer(context)));
    on('sender_flow', ({ sender }) => this.#consumers.get(sender as RheaLink)?.wake());
    on('sendable', ({ sender }) => this.#consumers.get(sender as RheaLink)?.wake());
    on('receiver_close', ({ receiver }) => void this.#takers.delete(receiver as RheaLink));
    on('sender_close', ({ sender }) => {
      this.#closeSource(sender as RheaLink);
      forgetAll(sender as RheaLink);
    });
    on('session_close', ({ session }) => this.#closeSession(session as RheaSession));
    // rhea throws or prints when nobody listens for these; closing follows by itself.
    for (const event of ['sender_error', 'receiver_error', 'session_error', 'connection_error', 'disconnected']) {
      connection.on(event, () => {});
    }
    for (const event of ['protocol_error', 'error']) connection.on(event, (context) => this.#fail(context));
  }

  /** Whether the next frame may be read; if not, the connection is gone. */
  admitsFrame(): boolean {
    if (this.broker.faults.quiet) return true;
    let admits = true;
    const drop = (): void => {
      admits = false;
      this.drop();
    };
    const nothing = (): void => {};
    this.broker.faults.perform([{ at: 'frame', entity: '' }], {
      act: nothing,
      succeed: nothing,
      fail: drop,
      forget: nothing,
      drop,
      toError: asBrokerError,
    });
    return admits;
  }

  /** Destroys the connection without a word. */
  drop(): void {
    this.#socket.destroy();
  }

  /** Lets go of everything once the socket is closed. */
  close(): void {
    this.#stopWatching();
    for (const waiting of this.#waiting.values()) waiting.cancel();
    for (const consumer of this.#consumers.values()) consumer.close();
    this.#waiting.clear();
    this.#consumers.clear();
    this.#takers.clear();
    this.#replies.clear();
  }

  /** Runs a handler; whatever it throws ends this connection and nothing else. */
  guard(handle: () => void): void {
    try {
      handle();
    } catch (caught) {
      this.#fail(caught);
    }
  }

  /** Throws unless a link for answers is open under the address that a request names. */
  checkReply(replyTo: string): void {
    if (this.#replies.get(replyTo)?.is_open()) return;
    throw new BrokerError(
      'amqp:not-found',
      `The reply-to '${replyTo.slice(0, 100)}' names no link of this connection on which an answer could be received.`,
    );
  }

  /** Sends an encoded answer on the link a request named; one that was closed meanwhile wants none. */
  reply(replyTo: string, answer: Buffer): void {
    const link = this.#replies.get(replyTo);
    if (!link?.is_open()) return;
    if (link.session.outgoing.available() === 0) throw new Error(`answers for '${replyTo}' are not taken`);
    link.send(answer, Buffer.alloc(4), 0).settled = true;
  }

  #fail(caught: unknown): void {
    this.broker.log(`connection closed: ${asBrokerError(caught).message}`);
    // What was written so far still goes out; a peer that keeps sending does not keep the socket.
    this.#socket.destroySoon();
  }

  #openSession(session: RheaSession): void {
    keepRawTransfers(session, (link) => {
      const asksForClaims = this.#takers.get(link) instanceof Responder && isCbs(addressOf(link, 'target'));
      return asksForClaims ? MAX_TOKEN_BYTES : this.broker.maxMessageBytes;
    });
    onRawDispositions(session, (dispositions) => this.guard(() => this.#settle(dispositions)));
  }

  #settle(dispositions: readonly RawDisposition[]): void {
    const byLink = Map.groupBy(dispositions, ({ delivery }) => delivery.link);
    for (const [link, own] of byLink) this.#consumers.get(link)?.settle(own);
  }

  #attach(link: RheaLink, open: (link: RheaLink) => void): void {
    try {
      open(link);
    } catch (caught) {
      const { condition, message } = asBrokerError(caught);
      refuseAttach(link, { condition, description: message });
    }
  }

  /** The client sends on this link: messages, or requests. */
  #openTaker(link: RheaLink): void {
    const address = addressOf(link, 'target');
    if (isCbs(address)) {
      confirmAttach(link, MAX_TOKEN_BYTES);
      this.#takers.set(link, new Responder(link, cbsService(this), this));
      return;
    }
    if (MANAGEMENT.test(address)) {
      // Whoever has any right may ask; what is asked for then decides.
      this.#authorize(address);
      const { namespace, clock } = this.broker;
      const node = namespace.find(address.replace(MANAGEMENT, ''));
      const service = managementService(node, clock, this.identity, (right) => this.#authorize(address, right));
      confirmAttach(link, this.broker.maxMessageBytes);
      this.#takers.set(link, new Responder(link, service, this));
      return;
    }
    this.#authorize(address, 'Send');
    const destination = this.broker.namespace.destination(address);
    confirmAttach(link, this.broker.maxMessageBytes);
    this.#takers.set(link, new Producer(link, destination, this));
  }

  /** The client receives on this link: messages, or answers. */
  #openSource(link: RheaLink): void {
    const address = addressOf(link, 'source');
    const isToCbs = isCbs(address);
    if (isToCbs || MANAGEMENT.test(address)) {
      if (!isToCbs) this.#authorize(address);
      if (!isToCbs) this.broker.namespace.find(address.replace(MANAGEMENT, ''));
      // Requests name the link at $cbs, and its target address elsewhere.
      const names = [link.name, remoteAddress(link, 'target')].filter((name) => name !== undefined);
      const taken = names.find((name) => this.#replies.get(name)?.is_open());
      if (taken !== undefined) {
        throw new BrokerError('amqp:not-allowed', `Another link of this connection takes the answers for '${taken}'.`);
      }
      confirmAttach(link);
      for (const name of names) this.#replies.set(name, link);
      return;
    }
    this.#authorize(address, 'Listen');
    const filters = sourceFilters(link);
    const other = filters.find((filter) => filter !== SESSION_FILTER);
    if (other !== undefined) {
      throw new BrokerError('amqp:not-implemented', `'${address}': the filter '${other}' is not supported.`);
    }
    const entity = this.broker.namespace.receivable(address, filters.length > 0);
    if (entity.sessions) this.#acceptSession(link, entity);
    else {
      confirmAttach(link);
      this.#consumers.set(link, new Consumer(link, entity, this));
    }
  }

  #acceptSession(link: RheaLink, entity: Entity): void {
    const holder = { owner: this.identity, lost: () => this.#consumers.get(link)?.lose() };
    const accepted = (lock: SessionLock): void => {
      this.#waiting.delete(link);
      confirmSession(link, lock);
      this.#consumers.set(link, new Consumer(link, entity, this, lock));
    };
    const lock = entity.acceptSession(wantedSession(link), holder);
    if (lock) {
      accepted(lock);
      return;
    }
    const refused = ({ condition, message }: BrokerError): void => {
      this.#waiting.delete(link);
      refuseAttach(link, { condition, description: message });
    };
    this.#waiting.set(
      link,
      waitForSession(link, entity, { holder, guard: (act) => this.guard(act), accepted, refused }),
    );
  }

  /** Throws unless this connection has a token that gives `right` at `address`; without `right` any will do. */
  #authorize(address: string, right?: Right): void {
    this.claims.check(address, this.broker.tokenClock.now(), right && [right]);
  }

  /** Ends the links to an entity that was removed, and to what was below it; `path` in lower case. */
  #detachFrom(path: string): void {
    const isGone = (link: RheaLink, end: 'source' | 'target'): boolean => {
      const own = remoteAddress(link, end)?.toLowerCase().replace(/^\/+/, '') ?? '';
      return own === path || (own.startsWith(path) && /^\/(\$|subscriptions\/)/.test(own.slice(path.length)));
    };
    const gone = new BrokerError(
      'amqp:not-found',
      `The messaging entity '${path}' could not be found: it was removed.`,
    );
    for (const [link, waiting] of this.#waiting) if (isGone(link, 'source')) waiting.refuse(gone);
    const takers = [...this.#takers.keys()].filter((link) => isGone(link, 'target'));
    const givers = [...this.#consumers.keys(), ...this.#replies.values()].filter((link) => isGone(link, 'source'));
    for (const link of new Set([...takers, ...givers])) {
      if (link.is_open()) link.close({ condition: gone.condition, description: gone.message });
    }
  }

  #closeSource(link: RheaLink): void {
    this.#waiting.get(link)?.cancel();
    this.#waiting.delete(link);
    this.#consumers.get(link)?.close();
    this.#consumers.delete(link);
    for (const [name, reply] of this.#replies) if (reply === link) this.#replies.delete(name);
  }

  #closeSession(session: RheaSession): void {
    for (const link of this.#takers.keys()) if (link.session === session) this.#takers.delete(link);
    for (const link of [...this.#consumers.keys(), ...this.#waiting.keys()]) {
      if (link.session === session) this.#closeSource(link);
    }
    for (const link of this.#replies.values()) if (link.session === session) this.#closeSource(link);
  }
}

function isCbs(address: string): boolean {
  return address.toLowerCase() === CBS;
}

function addressOf(link: RheaLink, end: 'source' | 'target'): string {
  const address = remoteAddress(link, end);
  if (address) return address.replace(/^\/+/, '');
  throw new BrokerError(
    'amqp:not-implemented',
    `A link needs the address of an entity as its ${end}; transactions and dynamic nodes are not supported.`,
  );
}
