/** Numbers and lock tokens in the forms that the broker takes them. */

import type { SequenceNumber } from '../../letter.ts';
import { type LockToken, lockToken } from '../broker.ts';

/** A sequence number as the eight bytes of an AMQP long: JavaScript numbers end at 2^53. */
export function int64(number: SequenceNumber): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(number));
  return bytes;
}

/** Whether `token` has the form of a lock token. */
export function isLockToken(token: LockToken): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(token);
}

/** A lock token as the sixteen bytes of an AMQP uuid. */
export function tokenBytes(token: LockToken): Buffer {
  return Buffer.from(token.replaceAll('-', ''), 'hex');
}

/** The text of an AMQP uuid. */
export function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/**
 * The lock token of a delivery. Its tag is the token as .NET writes a Guid: the first three groups little-endian,
 * while every request takes it in the order of RFC 4122.
 */
export function lockTokenOfTag(tag: Buffer): LockToken {
  const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
  return lockToken(uuidText(Buffer.from(order.map((index) => tag[index] ?? 0))));
}
