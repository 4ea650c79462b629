/**
 * The port that a broker adapter implements. The domain (classify, selection, plan, retention) sees brokers only
 * through this file. Nothing here retries by itself: the caller's journal decides what is done again.
 */
import type { Source } from '../catalog.ts';
import type { Letter, PlanId, SequenceNumber } from '../letter.ts';

declare const brand: unique symbol;

/** A message exactly as it is encoded on the wire. Opaque to the domain. */
export type EncodedMessage = Buffer & { readonly [brand]: 'EncodedMessage' };

/** Bytes that are a whole message as its broker encodes it: for adapters, which alone can know. */
export function encodedMessage(bytes: Buffer): EncodedMessage {
  return bytes as EncodedMessage;
}

/** A letter together with its encoded message. `message` is absent when it was read without body. */
export interface ReadLetter {
  readonly letter: Letter;
  readonly message: EncodedMessage;
}

/** A letter as seen without its body: enough to tell whether it is a known one. */
export type Sighting = Pick<Letter, 'sequenceNumber' | 'state' | 'messageId' | 'enqueuedAt'>;

/** The broker's handle on one locked message. */
export type LockToken = string & { readonly [brand]: 'LockToken' };

/** A broker's handle from its text: for adapters, which alone get them. */
export function lockToken(text: string): LockToken {
  return text as LockToken;
}

/** What a trigger tells about the message it holds: only enough to find it, since names and numbers arrive changed. */
export interface TriggerSight {
  readonly sequenceNumber: number;
  readonly messageId: string | undefined;
  readonly lockToken: LockToken;
}

/** A letter that is locked by us. */
export interface LockedLetter extends ReadLetter {
  readonly lock: LockToken;
  /** When the lock ends, ms since 1970, by the broker's clock as it told it. */
  readonly lockedUntil: number;
}

/** What became of an attempt to lock held letters by number. Every number asked for is in exactly one list. */
export interface Taken {
  readonly locked: readonly LockedLetter[];
  /** Not in the dead-letter queue any more. */
  readonly absent: readonly SequenceNumber[];
  /** There, but locked by somebody else right now. */
  readonly busy: readonly SequenceNumber[];
  /** There, but active: not held yet, so it cannot be taken by number. */
  readonly active: readonly SequenceNumber[];
}

/** Result of settling by lock token: `lost` means the lock had ended and nothing was changed by this call. */
export type Settled = 'settled' | 'lost';

/** What the broker said to a send. `unknown`: it may or may not have the messages. */
export type SendOutcome =
  | { readonly kind: 'accepted' }
  /** Refused because of the message (size, session, format): sending it again is refused again. */
  | { readonly kind: 'refused-message'; readonly code: string; readonly description: string }
  /** Refused, and whether message or target is to blame is not told: one message alone shows it. Nothing was taken. */
  | { readonly kind: 'refused-unexplained'; readonly code: string; readonly description: string }
  /** Refused because of the target (missing, disabled, full, no right): every message would be. */
  | { readonly kind: 'refused-target'; readonly code: string; readonly description: string }
  /** Refused for now (throttled): try again later, slower. */
  | { readonly kind: 'refused-busy'; readonly code: string; readonly description: string }
  | { readonly kind: 'unknown'; readonly description: string };

/** What a replay changes on a message; everything else goes back as it came. */
export interface ResendChange {
  readonly replayCount: number;
  /** ms since 1970; written in unix seconds. */
  readonly replayedAt: number;
  readonly planId: PlanId;
  readonly replayOf: SequenceNumber;
  /** Subscription name, only for a message sent to a topic. */
  readonly replayFor?: string;
  readonly bypass: boolean;
  /** A copy for a sandbox, marked `x-replay-sandbox`. */
  readonly sandbox?: boolean;
  /** Another time to live than it had, ms, or none of its own. */
  readonly timeToLive?: number | 'drop';
  /** A new message id; the old one is kept in `x-original-message-id`. */
  readonly newMessageId?: string;
}

/** The dead-letter queue of one source, open. Close it when done; a lock outlives the link it was made on. */
export interface DeadLetterQueue {
  /**
   * Letters from number `from` upwards, in ascending order, without locking or changing anything.
   * May return fewer than `max` though more are there; only an empty answer means the end.
   */
  peek(from: SequenceNumber, max: number): Promise<ReadLetter[]>;
  /** The letter with exactly this number, or `undefined`. Changes nothing. */
  peekOne(number: SequenceNumber): Promise<ReadLetter | undefined>;
  /** What is there from `from` upwards, read without bodies. Changes nothing. */
  scan(from: SequenceNumber, max: number): Promise<Sighting[]>;
  /** Locks up to `max` active letters, waiting at most `waitMs` for the first. */
  receive(max: number, waitMs: number): Promise<LockedLetter[]>;
  /** Sets locked letters aside in the dead-letter queue: delivered to nobody, taken by number. Same order as `locks`. */
  hold(locks: readonly LockToken[]): Promise<Settled[]>;
  /** Locks held letters by number. */
  take(numbers: readonly SequenceNumber[]): Promise<Taken>;
  /**
   * Locks letters by number that are not held, by receiving at most `depth` letters from the front and giving the others
   * back. A letter deeper than that is `active`; one that is not and did not come is `busy`.
   */
  seize(numbers: readonly SequenceNumber[], depth: number): Promise<Taken>;
  /** Removes locked letters for good. Same order as `locks`. */
  complete(locks: readonly LockToken[]): Promise<Settled[]>;
  /** Gives locks back: a held letter stays held, an active one becomes available. Same order as `locks`. */
  release(locks: readonly LockToken[]): Promise<Settled[]>;
  close(): Promise<void>;
}

/** A queue or topic that letters are sent back to. */
export interface ReplayTarget {
  /** Largest transfer the broker accepts, in bytes. */
  readonly maxBytes: number;
  /** Bytes that `messages` need in one transfer. */
  batchBytes(messages: readonly EncodedMessage[]): number;
  /** Sends all or none, once, and waits for the broker's word at most `timeoutMs`. Never throws for a refusal. */
  send(messages: readonly EncodedMessage[], timeoutMs: number): Promise<SendOutcome>;
  close(): Promise<void>;
}

/**
 * What is known of a queue or topic that letters are sent back to. A fact that could not be read is absent: it is never
 * guessed, and preflight blocks where an unknown one could lose a message.
 */
export interface TargetFacts {
  /** Where the facts come from. */
  readonly from: 'resource-manager' | 'administration' | 'none';
  /** Where nothing could be read because the office may not: the right that is missing, and the scope. */
  readonly forbidden?: string;
  /** `missing`: there is no such entity. */
  readonly status?: 'active' | 'disabled' | 'send-disabled' | 'receive-disabled' | 'missing';
  /** `false`, or the window in ms. */
  readonly duplicateDetection?: false | number;
  readonly requiresSession?: boolean;
  readonly deadLettersOnExpiry?: boolean;
  /** Default time to live, ms; absent also where messages never expire. */
  readonly defaultTimeToLive?: number;
  readonly maxMessageBytes?: number;
  readonly lockDuration?: number;
  readonly maxDeliveryCount?: number;
  readonly partitioned?: boolean;
}

/**
 * What the broker itself counts in a dead-letter queue, held and locked letters included; or why that is not known. It lags, and is
 * for comparing only.
 */
export type BrokerCount = { readonly count: number } | { readonly unread: string };

/** A broker. One instance serves all sources; connections are shared and reopened as needed. */
export interface Broker {
  open(source: Source): Promise<DeadLetterQueue>;
  /** Opens a target beside `source`, in the same namespace. Throws `DLO_TARGET_…` when it cannot be reached. */
  openTarget(source: Source, entity: string): Promise<ReplayTarget>;
  /**
   * Facts about an entity beside `source`: by Resource Manager where the namespace's resource id is known, else by the
   * administration interface, else none. Changes nothing; throws nothing but `DLO_BROKER_UNAVAILABLE`.
   */
  facts(source: Source, entity: string): Promise<TargetFacts>;
  /** The broker's own count of the letters of `source`: one read of its management, or none where the last one failed. Throws nothing. */
  count(source: Source): Promise<BrokerCount>;
  /**
   * Whether messages of that plan, or of its letters only the copies of `sent`, are still waiting in `entity`, as far as a
   * bounded look can tell. `unknown` where it may not be looked at. Changes nothing.
   */
  isWaiting(
    source: Source,
    entity: string,
    planId: PlanId,
    sent?: readonly Letter[],
  ): Promise<'yes' | 'no' | 'unknown'>;
  /** The message to send in place of `letter`. Throws `DLO_NOT_RESENDABLE` when it cannot be done exactly. */
  reset(message: EncodedMessage, change: ResendChange): EncodedMessage;
  /** The body's bytes for showing, section by section. */
  bodyOf(message: EncodedMessage): Buffer[];
  close(): Promise<void>;
}
