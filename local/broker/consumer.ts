/** A link on which a client receives the messages of a queue, subscription, session or dead-letter queue. */
import { forget, type Outcome, type RawDisposition, unwritten, writeDisposition } from './delivery.ts';
import type { Entity, Settlement } from './entity.ts';
import { asBrokerError, BrokerError } from './errors.ts';
import { answerDrain } from './link.ts';
import { readOutcome } from './outcome.ts';
import type { Peer } from './peer.ts';
import type { RheaDelivery, RheaLink } from './rhea.ts';
import { type SessionLock, sessionLockLost } from './sessions.ts';

/** Settle mode "settled": the client asked for receive-and-delete. */
const SETTLED = 1;
/** How soon to look again when a drain waits for the client to take more transfers, milliseconds. */
const DRAIN_RETRY = 10;

export class Consumer {
  readonly #link: RheaLink;
  readonly #entity: Entity;
  readonly #peer: Peer;
  readonly #session: SessionLock | undefined;
  readonly #removes: boolean;
  readonly #unsubscribe: () => void;
  #scheduled = false;
  #drainTimer: NodeJS.Timeout | undefined;
  #removed = 0;

  /** `session`: the one this link was opened for. */
  constructor(link: RheaLink, entity: Entity, peer: Peer, session?: SessionLock) {
    this.#link = link;
    this.#entity = entity;
    this.#peer = peer;
    this.#session = session;
    this.#removes = link.remote.attach.snd_settle_mode === SETTLED;
    this.#unsubscribe = entity.onAvailable(() => this.wake());
  }

  /** Delivers soon: at the end of the current turn, so that everything that came with it is known. */
  wake(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#peer.guard(() => this.#deliver());
    });
  }

  /**
   * Stops delivering. Locks of messages stay until they expire: they belong to the message, not to the link. A session's
   * lock ends with its link.
   */
  close(): void {
    this.#unsubscribe();
    clearTimeout(this.#drainTimer);
    if (this.#session) this.#entity.closeSession(this.#session);
  }

  /** Ends the link because the lock on its session is lost. */
  lose(): void {
    if (this.#session && this.#link.is_open()) this.#end(sessionLockLost(this.#session.id));
  }

  /** Settles deliveries as the client decided, and answers. */
  settle(dispositions: readonly RawDisposition[]): void {
    const answers = new Answers();
    for (const disposition of dispositions) this.#settle(disposition, answers);
    answers.flush();
  }

  #deliver(): void {
    const link = this.#link;
    if (!link.is_open()) return;
    try {
      this.#entity.check('receive');
    } catch (caught) {
      if (!(caught instanceof BrokerError)) throw caught;
      this.#end(caught);
      return;
    }
    if (this.#session && !this.#session.held) return;
    const { outgoing } = link.session;
    for (let credit = link.credit - unwritten(link); credit > 0 && outgoing.available() > 0; credit--) {
      if (!this.#deliverOne()) break;
    }
    if (link._draining) this.#finishDrain();
  }

  #deliverOne(): boolean {
    const entity = this.#entity;
    if (this.#removes) {
      const entry = entity.removeNext(this.#session);
      if (!entry) return false;
      const tag = Buffer.alloc(16);
      tag.writeUInt32BE(++this.#removed, 12);
      this.#link.send(entity.encoded(entry), tag, 0);
      return true;
    }
    const locked = entity.lockNext(this.#session);
    if (!locked) return false;
    this.#link.send(entity.encoded(locked.entry, false, true), locked.tag, 0);
    return true;
  }

  #end({ condition, message }: BrokerError): void {
    this.#link.close({ condition, description: message });
  }

  /** A drain ends when every transfer is written, or the client would count credit twice. */
  #finishDrain(): void {
    clearTimeout(this.#drainTimer);
    if (unwritten(this.#link) === 0) {
      answerDrain(this.#link);
      return;
    }
    this.#drainTimer = setTimeout(() => this.wake(), DRAIN_RETRY);
  }

  #settle({ delivery, state, settled }: RawDisposition, answers: Answers): void {
    const token = delivery.tag.toString('hex');
    const answer = (outcome: Outcome): void => {
      if (settled) forget(delivery);
      else if (this.#link.is_open()) answers.add(delivery, outcome);
    };
    const fail = (error: BrokerError): void => answer({ condition: error.condition, description: error.message });
    let settlement: Settlement | undefined;
    try {
      settlement = readOutcome(state);
    } catch (caught) {
      fail(asBrokerError(caught));
      return;
    }
    if (!settlement) return;
    const decided = settlement;
    this.#peer.broker.faults.perform(
      [{ at: 'settle', entity: this.#entity.path, operation: decided.kind, via: 'link' }],
      {
        act: () => this.#entity.settle([token], decided, { session: this.#session, caller: this.#peer.identity }),
        succeed: () => answer('accepted'),
        fail,
        forget: () => forget(delivery),
        drop: () => this.#peer.drop(),
        toError: asBrokerError,
      },
    );
  }
}

/** Joins neighbouring accepted deliveries of one disposition into one answer; all else is answered one by one. */
class Answers {
  #accepted: RheaDelivery[] = [];
  #flushed = false;

  add(delivery: RheaDelivery, outcome: Outcome): void {
    const previous = this.#accepted.at(-1);
    if (previous && (outcome !== 'accepted' || delivery.id !== previous.id + 1)) this.#write();
    if (outcome === 'accepted') this.#accepted.push(delivery);
    else writeDisposition([delivery], false, outcome);
    if (this.#flushed) this.#write();
  }

  flush(): void {
    this.#write();
    this.#flushed = true;
  }

  #write(): void {
    writeDisposition(this.#accepted.splice(0), false, 'accepted');
  }
}
