/** The messages of a run: made at random, killed by a consumer, and read back from the broker as they are stored. */
import type { ServiceBusMessage, ServiceBusReceiver } from '@azure/service-bus';
import type { StoredView } from '../../local/broker/index.ts';
import type { Dice } from '../harness/dice.ts';
import type { TestOffice } from '../harness/office.ts';
import { CODE, type ReadSection, sectionByRhea, sectionsByRhea, types } from '../harness/typedMessage.ts';
import type { Scenario } from './scenario.ts';

/** A stored message, as far as a judge needs it. */
export interface Piece {
  readonly number: string;
  readonly state: StoredView['state'];
  readonly locked: boolean;
  /** The id it was sent with first. */
  readonly origin: string;
  readonly planId: string | undefined;
  readonly of: string | undefined;
  readonly count: number;
  /** Its name, which is its own also where its id is not; of a contest only. */
  readonly mail: string | undefined;
  readonly stored: Buffer;
}

/** Sends the letters of a run and has a consumer reject each of them. Gives the messages as they were, by id. */
export async function killLetters(office: TestOffice, queue: string, run: Scenario): Promise<Map<string, Buffer>> {
  const messages = Array.from({ length: run.letters }, (_, i) => makeMessage(run.dice, `${run.seed}-${i}`, run.kind));
  const sender = office.client.createSender(queue);
  // In an entity with sessions or partitions a batch is of one session.
  const isOneByOne = run.kind === 'sessions' || run.kind === 'partitioned';
  const size = isOneByOne ? 1 : 40;
  for (let i = 0; i < messages.length; i += size) await sender.sendMessages(messages.slice(i, i + size));
  await sender.close();
  const originals = new Map(office.broker.messages(queue).map((view) => [pieceOf(view).origin, view.stored]));
  if (originals.size !== run.letters) throw new Error(`${originals.size} of ${run.letters} messages were stored`);
  if (run.kind === 'sessions') {
    for (const session of new Set(messages.map(({ sessionId }) => sessionId ?? ''))) {
      const receiver = await office.client.acceptSession(queue, session, { maxAutoLockRenewalDurationInMs: 0 });
      await rejectAll(receiver, messages.filter(({ sessionId }) => sessionId === session).length);
      await receiver.close();
    }
  } else {
    const receiver = office.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
    await rejectAll(receiver, messages.length);
    await receiver.close();
  }
  return originals;
}

/** Has a consumer reject that many messages. */
export async function rejectAll(receiver: ServiceBusReceiver, count: number): Promise<void> {
  const why = { deadLetterReason: 'UnsupportedCurrency', deadLetterErrorDescription: 'no such currency' };
  for (let left = count; left > 0; ) {
    const messages = await receiver.receiveMessages(Math.min(left, 100), { maxWaitTimeInMs: 10_000 });
    if (messages.length === 0) throw new Error(`${left} messages did not come to be rejected`);
    for (let i = 0; i < messages.length; i += 20) {
      await Promise.all(messages.slice(i, i + 20).map((message) => receiver.deadLetterMessage(message, why)));
    }
    left -= messages.length;
  }
}

function makeMessage(dice: Dice, messageId: string, kind: Scenario['kind']): ServiceBusMessage {
  const bodies: ServiceBusMessage['body'][] = [{ order: messageId, amount: dice.next() }, `text of ${messageId}`];
  bodies.push(Buffer.alloc(dice.int(0, 3000), dice.int(0, 255)));
  return {
    messageId,
    body: bodies[dice.int(0, bodies.length - 1)],
    ...(dice.chance(0.5) && { correlationId: `c-${messageId}`, subject: 'OrderPlaced' }),
    ...(dice.chance(0.3) && { contentType: 'application/json' }),
    ...(dice.chance(0.2) && { timeToLive: 3_600_000 * 24 * dice.int(1, 100) }),
    ...(kind === 'sessions' && { sessionId: `chat-${dice.int(0, 2)}` }),
    ...(kind === 'partitioned' && dice.chance(0.5) && { partitionKey: `key-${dice.int(0, 5)}` }),
    applicationProperties: {
      text: `ä-${messageId}`,
      number: dice.int(-1000, 1000),
      real: dice.next(),
      yes: dice.chance(0.5),
      ...(dice.chance(0.5) && { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` }),
    },
  };
}

/** Reads what identifies a stored message. */
export function pieceOf({ sequenceNumber, state, locked, stored }: StoredView): Piece {
  const added = entriesOf(stored, CODE.applicationProperties);
  const text = (name: string) => {
    const bytes = added.get(name);
    return bytes === undefined ? undefined : String(decoded(bytes));
  };
  const id = sectionByRhea(stored, CODE.properties)?.items[0];
  return {
    number: String(sequenceNumber),
    state,
    locked,
    origin: text('x-original-message-id') ?? (id === undefined ? '' : String(decoded(id))),
    planId: text('x-replay-id'),
    of: text('x-replay-of'),
    count: Number(text('x-replay-count') ?? 0),
    mail: text('mail'),
    stored,
  };
}

function entriesOf(message: Buffer, code: number): ReadonlyMap<string, string> {
  return sectionByRhea(message, code)?.entries ?? new Map<string, string>();
}

function decoded(hex: string): unknown {
  return new types.Reader(Buffer.from(hex, 'hex')).read().value;
}

/** Properties by their place: message id, absolute expiry, creation. */
const [ID, EXPIRY, CREATION] = [0, 8, 9];
const NULL = '40';

/** What of `original` is not in `copy` as it was; nothing when only what a replay resets differs. */
export function differences(original: Buffer, copy: Buffer, isRenamed: boolean): string[] {
  const found: string[] = [];
  const wholes = (message: Buffer) =>
    sectionsByRhea(message)
      .filter(({ code }) => code >= CODE.data)
      .map(({ bytes }) => bytes)
      .join();
  if (wholes(original) !== wholes(copy)) found.push('body or footer');
  const [had, has] = [original, copy].map((message) => sectionByRhea(message, CODE.properties)?.items ?? []) as [
    ReadSection['items'],
    ReadSection['items'],
  ];
  for (let place = 0; place < Math.max(had.length, has.length); place++) {
    if (place === EXPIRY || place === CREATION || (place === ID && isRenamed)) continue;
    if ((had[place] ?? NULL) !== (has[place] ?? NULL)) found.push(`property ${place}`);
  }
  const after = entriesOf(copy, CODE.applicationProperties);
  for (const [name, value] of entriesOf(original, CODE.applicationProperties)) {
    if (after.get(name) !== value) found.push(`application property ${name}`);
  }
  for (const name of ['DeadLetterReason', 'DeadLetterErrorDescription']) if (after.has(name)) found.push(name);
  return found;
}
