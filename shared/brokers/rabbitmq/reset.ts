/** Makes the message that goes back from the message that came. The whole of what a replay changes is in this file. */

import { OfficeError } from '../../errors.ts';
import type { ResendChange } from '../broker.ts';
import { openEnvelope } from './envelope.ts';
import { encodeField, FieldFormatError, type RawField, readField } from './fieldTable.ts';
import { isReset, REPLAY } from './names.ts';
import {
  encodeHeaders,
  encodeShortText,
  headersOf,
  type PropertyName,
  readProperties,
  shortText,
  writeProperties,
} from './properties.ts';

/** A message to publish: what it is published with is not part of it. */
export interface Publishing {
  readonly properties: Buffer;
  readonly body: Buffer;
}

/** What a publish needs beside the change. */
export interface Publisher {
  /** The user of the office's connection. */
  readonly user: string;
}

/** Longest time to live that the broker takes, ms: it is kept as an unsigned 32-bit integer. */
const MAX_EXPIRATION = 2 ** 32 - 1;

/**
 * The message to publish in place of `message`. Everything but the following is taken over byte for byte: headers about deaths and
 * deliveries go; the time to live that the broker took off at death comes back, or the one that the plan chose; a user id of
 * somebody else becomes a header; the replay headers come. Throws `DLO_NOT_RESENDABLE` when `message` cannot be taken apart.
 */
export function reset(message: Buffer, change: ResendChange, { user }: Publisher): Publishing {
  try {
    const { properties: bytes, body } = openEnvelope(message);
    const properties = new Map(readProperties(bytes));
    const before = headersOf(properties);
    const added = replayHeaders(change);
    setTimeToLive(properties, before, change.timeToLive);
    const userId = shortText(properties, 'userId');
    if (userId !== undefined && userId.toString() !== user) {
      properties.delete('userId');
      added.push(encodeField(REPLAY.originalUserId, userId.toString()));
    }
    const kept = before.filter(({ name }) => !isReset(name)).map((field) => field.bytes);
    if (change.newMessageId !== undefined) {
      const known = before.some(({ name }) => name === REPLAY.originalMessageId);
      const old = shortText(properties, 'messageId');
      if (!known && old !== undefined) added.push(encodeField(REPLAY.originalMessageId, old.toString()));
      properties.set('messageId', encodeShortText(change.newMessageId));
    }
    properties.set('headers', encodeHeaders([...kept, ...added]));
    return { properties: writeProperties(properties), body };
  } catch (cause) {
    if (!(cause instanceof FieldFormatError)) throw cause;
    throw new OfficeError('DLO_NOT_RESENDABLE', `the message cannot be taken apart: ${cause.message}`, { cause });
  }
}

function replayHeaders(change: ResendChange): Buffer[] {
  const headers = [
    encodeField(REPLAY.count, change.replayCount),
    encodeField(REPLAY.at, BigInt(Math.floor(change.replayedAt / 1000))),
    encodeField(REPLAY.id, change.planId),
    encodeField(REPLAY.of, change.replayOf),
  ];
  if (change.bypass) headers.push(encodeField(REPLAY.bypass, '1'), encodeField(REPLAY.babelQueueBypass, '1'));
  if (change.sandbox) headers.push(encodeField(REPLAY.sandbox, '1'));
  return headers;
}

/** The broker takes `expiration` off a message that dies and keeps it in the entry of that death. */
function setTimeToLive(
  properties: Map<PropertyName, Buffer>,
  headers: readonly RawField[],
  choice: number | 'drop' | undefined,
): void {
  const ms = choice === undefined ? originalExpiration(headers) : choice;
  if (choice === undefined && properties.has('expiration')) return; // it was published to the dead-letter queue with one
  if (ms === undefined || ms === 'drop') properties.delete('expiration');
  else properties.set('expiration', encodeShortText(String(Math.min(ms, MAX_EXPIRATION))));
}

/** Time to live that the message had when it died first, ms; `undefined` where it had none of its own. */
export function originalExpiration(headers: readonly RawField[]): number | undefined {
  const deaths = headers.find(({ name }) => name === 'x-death');
  if (deaths === undefined) return undefined;
  const list = readField(deaths.value);
  if (list.type !== 'array') return undefined;
  for (const entry of list.value.toReversed()) {
    if (entry.type !== 'table') continue;
    const [, found] = entry.value.find(([name]) => name === 'original-expiration') ?? [];
    if (found?.type === 'string' && /^\d{1,10}$/.test(found.value)) return Number(found.value);
  }
  return undefined;
}
