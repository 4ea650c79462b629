/** The dead letter as every part of the office passes it on. Knows no broker's SDK. */
import { createHash } from 'node:crypto';

declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

/** Identity of a source: namespace host and entity path, lower-cased, safe as a table key. */
export type SourceKey = Branded<string, 'SourceKey'>;

/** A 64-bit sequence number as a decimal string. Never a JavaScript number: partitioned entities go beyond 2^53. */
export type SequenceNumber = Branded<string, 'SequenceNumber'>;

/** Identity of a plan, e.g. `20261130t104512-k3f5q2xa`. Sorts by time of creation. */
export type PlanId = Branded<string, 'PlanId'>;

const SEQUENCE_NUMBER = /^(0|[1-9]\d{0,18})$/;
const MAX_SEQUENCE_NUMBER = 2n ** 63n - 1n;
const PLAN_ID = /^\d{8}t\d{6}-[a-z2-7]{8}$/;

/** `text` as a sequence number, or `undefined` when it is not a decimal between 0 and 2^63 - 1. */
export function parseSequenceNumber(text: string): SequenceNumber | undefined {
  return SEQUENCE_NUMBER.test(text) && BigInt(text) <= MAX_SEQUENCE_NUMBER ? (text as SequenceNumber) : undefined;
}

/** A sequence number from the broker's own 64-bit integer. */
export function sequenceNumber(value: bigint): SequenceNumber {
  return BigInt.asUintN(64, value).toString() as SequenceNumber;
}

/** Orders sequence numbers by value. */
export function compareSequenceNumbers(a: SequenceNumber, b: SequenceNumber): number {
  return a.length === b.length ? (a < b ? -1 : a > b ? 1 : 0) : a.length - b.length;
}

/** `text` as a plan id, or `undefined` when it does not have the form of one. */
export function parsePlanId(text: string): PlanId | undefined {
  return PLAN_ID.test(text) ? (text as PlanId) : undefined;
}

/** A new plan id from the time (ms since 1970, shown in UTC) and 5 random bytes. */
export function newPlanId(now: number, random: Uint8Array): PlanId {
  const stamp = new Date(now).toISOString().replace(/[-:]/g, '').slice(0, 15).toLowerCase();
  let bits = 0n;
  for (const byte of random.subarray(0, 5)) bits = (bits << 8n) | BigInt(byte);
  let tail = '';
  for (let i = 0; i < 8; i++) {
    tail += 'abcdefghijklmnopqrstuvwxyz234567'[Number(bits & 31n)];
    bits >>= 5n;
  }
  return `${stamp}-${tail}` as PlanId;
}

/** When a plan was made, ms since 1970 to the second, read from its id. */
export function planCreatedAt(id: PlanId): number {
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)/.exec(id) ?? [];
  return Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s));
}

/** How the body is carried: one data section, several, an AMQP value, an AMQP sequence, or no body at all. */
export type BodyKind = 'data' | 'data-several' | 'value' | 'sequence' | 'none';

/** One application property with the name of its wire type. `value` is fit for JSON; wide numbers and binary are text. */
export interface LetterProperty {
  readonly name: string;
  readonly type: string;
  readonly value: string | number | boolean | null;
}

/** What a message says about its own earlier replays (the office's own application properties). */
export interface ReplayMark {
  /** How often the message has been sent back. 0 when it never was, or when the property is not a count. */
  readonly count: number;
  readonly planId: PlanId | undefined;
  /** The sequence number it had in the dead-letter queue before it was sent back. */
  readonly of: SequenceNumber | undefined;
  /** When it was sent back, ms since 1970. */
  readonly at: number | undefined;
}

/** One dead-lettered message, as read from the broker. Times are ms since 1970 (UTC), sizes are bytes. */
export interface Letter {
  readonly sequenceNumber: SequenceNumber;
  /** `held` is deferred in the dead-letter queue; `active` is not held yet. */
  readonly state: 'active' | 'held';
  readonly messageId: string | undefined;
  readonly correlationId: string | undefined;
  readonly subject: string | undefined;
  readonly contentType: string | undefined;
  readonly sessionId: string | undefined;
  readonly partitionKey: string | undefined;
  readonly to: string | undefined;
  readonly replyTo: string | undefined;
  /** The entity it died in before, when the broker forwarded it out of that one's dead-letter queue. A hint, and no more. */
  readonly deadLetterSource: string | undefined;
  /** When the broker first accepted the message. No broker tells when it died. */
  readonly enqueuedAt: number;
  readonly timeToLive: number | undefined;
  /** Failed deliveries before it died; frozen in the dead-letter queue. */
  readonly deliveryCount: number;
  readonly reason: string | undefined;
  readonly description: string | undefined;
  readonly properties: readonly LetterProperty[];
  /** Of the application properties but for those about the death: characters of the longest name or value, encoded bytes of all. */
  readonly propertySize: { readonly longest: number; readonly total: number };
  readonly body: { readonly kind: BodyKind; readonly bytes: number; readonly hash: string };
  /** The whole encoded message. */
  readonly bytes: number;
  readonly replay: ReplayMark;
}

/**
 * Fingerprint of a message's identity. Entities are recreated and numbering restarts, so a sequence number alone
 * does not say that it is still the same message.
 */
export interface LetterIdentity {
  readonly messageId: string | undefined;
  readonly enqueuedAt: number;
  readonly body: { readonly hash: string };
}

/** Whether two readings are of the same message. */
export function isSameMessage(a: LetterIdentity, b: LetterIdentity): boolean {
  return a.messageId === b.messageId && a.enqueuedAt === b.enqueuedAt && a.body.hash === b.body.hash;
}

/** Property that keeps the message id of a letter that was sent under a new one. */
export const ORIGINAL_MESSAGE_ID = 'x-original-message-id';

/**
 * Whether `copy` says that it is what was sent of `original`, and has its message id or kept it. Whoever makes a message of
 * another one may copy all its properties, those of a replay too; that is a stranger.
 */
export function isCopyOf(copy: Letter, { sequenceNumber, messageId }: Letter): boolean {
  if (copy.replay.of !== sequenceNumber) return false;
  const kept = copy.properties.find(({ name }) => name === ORIGINAL_MESSAGE_ID)?.value;
  return copy.messageId === messageId || (kept !== undefined && kept === messageId);
}

/**
 * {@link LetterIdentity} in 22 characters. Frozen in a plan, and compared before anything is sent, removed, or written into a
 * letter's record.
 */
export function identityDigest(letter: LetterIdentity): string {
  const text = JSON.stringify([letter.messageId ?? null, letter.enqueuedAt, letter.body.hash]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** A letter by its number, and the digest of the message that has to be under it. */
export interface IdentifiedLetter {
  readonly number: SequenceNumber;
  readonly identity: string;
}
