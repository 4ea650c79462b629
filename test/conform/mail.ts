/** Steps that many beliefs begin with: encoded messages, letters that died, and what a refusal said. */
import type { ServiceBusReceivedMessage, ServiceBusReceiver, ServiceBusSender } from '@azure/service-bus';
import type { EncodedMessage, LockToken, ReadLetter } from '../../shared/brokers/broker.ts';
import { lockActive } from '../../shared/brokers/serviceBus/receive.ts';
import { isOfficeError } from '../../shared/errors.ts';
import { type SequenceNumber, sequenceNumber } from '../../shared/letter.ts';
import { data, messageOf, type Parts, types } from '../harness/typedMessage.ts';
import { Surprise, see } from './belief.ts';
import { type Context, dlqOf } from './context.ts';

type Typed = ReturnType<typeof types.Str8>;

/** The lowest number there is. */
export const START: SequenceNumber = sequenceNumber(0n);
/** Why letters of these tests die. */
export const WHY = { deadLetterReason: 'Unprocessable', deadLetterErrorDescription: 'no such customer' };

/** What is set on a message beside its id. */
export interface Note {
  readonly subject?: string;
  readonly session?: string;
  readonly key?: string;
  readonly ttlMs?: number;
  readonly properties?: readonly (readonly [string, Typed])[];
  readonly body?: Buffer[];
}

/** An encoded message with this id. */
export function note(id: string, { subject, session, key, ttlMs, properties, body }: Note = {}): EncodedMessage {
  const parts: Parts = {
    properties: [
      types.Str8(id),
      types.Null(),
      types.Null(),
      subject === undefined ? types.Null() : types.Str8(subject),
      ...Array.from({ length: 6 }, () => types.Null()),
      session === undefined ? types.Null() : types.Str8(session),
    ],
    body: body ?? [data(`body of ${id}`)],
  };
  if (ttlMs !== undefined) parts.header = [types.False(), types.Ubyte(4), types.Uint(ttlMs)];
  if (key !== undefined) parts.messageAnnotations = [['x-opt-partition-key', types.Str8(key)]];
  if (properties !== undefined) parts.applicationProperties = properties.map(([name, value]) => [name, value]);
  return messageOf(parts);
}

/** Messages with ids `name-0`, `name-1`, … and what else is given. */
export function notes(context: Context, count: number, more: Note = {}, name = 'note'): EncodedMessage[] {
  return Array.from({ length: count }, (_, i) => note(context.id(`${name}-${i}`), more));
}

/** Receives exactly `count` messages under a lock. Throws `Surprise` when they do not come. */
export async function receive(
  context: Context,
  receiver: ServiceBusReceiver,
  count: number,
): Promise<ServiceBusReceivedMessage[]> {
  const received: ServiceBusReceivedMessage[] = [];
  while (received.length < count) {
    const more = await receiver.receiveMessages(count - received.length, {
      maxWaitTimeInMs: context.place.slownessMs,
    });
    if (more.length === 0) throw new Surprise(`receiving ${count}: only ${received.length} came`);
    received.push(...more);
  }
  return received;
}

/** The one message that comes. */
export async function receiveOne(context: Context, receiver: ServiceBusReceiver): Promise<ServiceBusReceivedMessage> {
  const [message] = await receive(context, receiver, 1);
  return message as ServiceBusReceivedMessage;
}

/** Sees that nothing comes from the entity at `path`, for as long as one is patient. */
export async function seeNothing(context: Context, path: string): Promise<void> {
  const receiver = context.receiver(path);
  const received = await receiver.receiveMessages(1, { maxWaitTimeInMs: context.place.patienceMs });
  see(
    `what ${path.split('/').at(-1)} gives`,
    received.map(({ messageId }) => messageId),
    [],
  );
  await receiver.close();
}

/** Has a consumer dead-letter the next `count` messages of the entity at `path`, for `WHY`. */
export async function deadLetterNext(context: Context, path: string, count: number): Promise<void> {
  const receiver = context.receiver(path);
  for (const message of await receive(context, receiver, count)) await receiver.deadLetterMessage(message, WHY);
  await receiver.close();
}

/** Sends `messages` to the queue at `path` and has them dead-lettered; gives the letters in the order they have there. */
export async function die(context: Context, path: string, messages: readonly EncodedMessage[]): Promise<ReadLetter[]> {
  await context.send(path, ...messages);
  await deadLetterNext(context, path, messages.length);
  return lettersOf(context, path, messages.length);
}

/** The dead letters of the entity at `path`, once there are `count`. */
export async function lettersOf(context: Context, path: string, count: number): Promise<ReadLetter[]> {
  const queue = await context.deadLetters(path);
  return context.until(`${count} dead letters`, async () => {
    const letters: ReadLetter[] = [];
    for (let from = START; ; ) {
      const page = await queue.peek(from, 250);
      const last = page.at(-1);
      if (last === undefined) return letters.length >= count ? letters : undefined;
      letters.push(...page);
      from = next(last.letter.sequenceNumber);
    }
  });
}

/** Locks and holds all `count` dead letters of the entity at `path`; gives their numbers, ascending. */
export async function hold(context: Context, path: string, count: number): Promise<SequenceNumber[]> {
  const locks = await lock(context, dlqOf(path), count);
  const node = await context.node(dlqOf(path));
  await node.settle([...locks.values()], 'defered');
  return [...locks.keys()];
}

/** Locks `count` active messages over a receive link of the office that is closed again; gives tokens by number. */
export async function lock(context: Context, path: string, count: number): Promise<Map<SequenceNumber, LockToken>> {
  const locks = await lockActive(await context.connection(), path, count, context.place.slownessMs);
  see('messages locked', locks.size, count);
  return new Map([...locks].map(([number, { lock }]) => [number, lock]));
}

/** The number behind. */
export function next(number: SequenceNumber): SequenceNumber {
  return sequenceNumber(BigInt(number) + 1n);
}

/** What was refused, as the code the library gives it, or `nothing was refused`. */
export async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
    return 'nothing was refused';
  } catch (error) {
    if (isOfficeError(error)) return String(error.data.code ?? error.code);
    const { code, condition, name } = error as { code?: string; condition?: string; name?: string };
    return code ?? condition ?? name ?? String(error);
  }
}

/** Sends with the official client and closes the sender. */
export async function withSender<T>(
  context: Context,
  entity: string,
  work: (sender: ServiceBusSender) => Promise<T>,
): Promise<T> {
  const sender = context.client.createSender(entity);
  try {
    return await work(sender);
  } finally {
    await sender.close();
  }
}
