/** Messages that hold everything AMQP allows, sent raw, and the judge of what came back: rhea, not the office's own codec. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { EncodedMessage } from '../../shared/brokers/broker.ts';
import { createServiceBus } from '../../shared/brokers/serviceBus/index.ts';
import { parseCatalog } from '../../shared/catalog.ts';
import { PLAIN, type TestOffice } from './office.ts';
import { BODIES, CODE, data, fullMessage, messageOf, sectionByRhea, sectionsByRhea, types } from './typedMessage.ts';

/** Application properties that a replay adds. */
export const ADDED = ['x-replay-count', 'x-replayed-at', 'x-replay-id', 'x-replay-of'];

/** Asserts that `arrived` is `original` but for what a replay resets, section by section and item by item. */
export function expectExact(original: Buffer, arrived: Buffer): void {
  const wholes = (message: Buffer) => sectionsByRhea(message).filter(({ code }) => code >= CODE.data);
  expect(wholes(arrived)).toEqual(wholes(original));
  const [had, has] = [original, arrived].map((message) => ({
    header: sectionByRhea(message, CODE.header)?.items,
    annotations: sectionByRhea(message, CODE.messageAnnotations)?.entries,
    properties: sectionByRhea(message, CODE.properties)?.items,
    application: sectionByRhea(message, CODE.applicationProperties)?.entries ?? new Map<string, string>(),
  }));
  expect(has?.header).toEqual(had?.header);
  expect(has?.annotations).toEqual(had?.annotations);
  // The two times are dropped (0x40 is null): their difference is the time to live, which the header has.
  expect(has?.properties).toEqual(had?.properties?.map((item, i) => (i === 8 || i === 9 ? '40' : item)));
  const kept = [...(has?.application ?? [])].filter(([name]) => !ADDED.includes(name));
  expect(kept).toEqual([...(had?.application ?? [])]);
  expect(ADDED.filter((name) => !has?.application.has(name))).toEqual([]);
}

/**
 * The whole way of a letter through an office, for every body shape: raw send → dead-letter by a real consumer → found or
 * held → planned → sent back → what arrived is compared with what died. `session`: the queue is one of sessions.
 */
export async function expectOfficeToBeExact(
  office: TestOffice,
  queue: string,
  { session }: { session?: string } = {},
): Promise<void> {
  const originals = new Map(Object.entries(BODIES).map(([name, body]) => [name, fullMessage(name, body)]));
  // Without a session such a queue would not take it.
  const bare = messageOf({ properties: [types.Str8('bare')], body: [data('nothing but an id and a body')] });
  if (session === undefined) originals.set('bare', bare);
  await sendRaw(office, queue, [...originals.values()]);
  const options = { maxAutoLockRenewalDurationInMs: 0, skipParsingBodyAsJson: true };
  const receiver =
    session === undefined
      ? office.client.createReceiver(queue, options)
      : await office.client.acceptSession(queue, session, options);
  for (let left = originals.size; left > 0; ) {
    for (const message of await receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 })) {
      const why = { deadLetterReason: 'Unprocessable', deadLetterErrorDescription: 'no such customer' };
      await receiver.deadLetterMessage(message, why);
      left -= 1;
    }
  }
  await receiver.close();
  if (session === undefined) await office.held(originals.size, queue);
  else await office.collect(queue);
  const finished = await office.run(await office.plan({}, queue));
  expect(finished.counts).toMatchObject({ planned: originals.size, done: originals.size, maybeDuplicate: 0 });
  // By their ids: partitions have an order each.
  const arrived = new Map(office.broker.messages(queue).map(({ stored }) => [idOf(stored), stored]));
  expect([...arrived.keys()].toSorted()).toEqual([...originals.keys()].toSorted());
  for (const [id, original] of originals) {
    const copy = arrived.get(id) ?? Buffer.alloc(0);
    if (sectionByRhea(original, CODE.header) !== undefined) expectExact(original, copy);
    else expect(sectionsByRhea(copy).at(-1)).toEqual(sectionsByRhea(original).at(-1));
  }
}

function idOf(message: Buffer): string {
  const [id = ''] = sectionByRhea(message, CODE.properties)?.items ?? [];
  return String(new types.Reader(Buffer.from(id, 'hex')).read().value);
}

/** Sends encoded messages one by one, byte for byte. */
export async function sendRaw(office: TestOffice, queue: string, messages: readonly EncodedMessage[]): Promise<void> {
  const settings = { ServiceBus: office.broker.connectionString };
  const owner = { team: 'test', contact: 'test' };
  const sources = [{ name: `raw-${randomUUID()}`, queue, mode: 'observe', owner, entity: PLAIN }];
  const catalog = parseCatalog(
    {
      version: 1,
      office: 'test',
      namespaces: { main: { connection: 'ServiceBus', operationsPerSecond: 100_000 } },
      sources,
    },
    settings,
  );
  const [source] = catalog.sources;
  if (source === undefined) throw new Error('a catalog with one entry has one source');
  const sender = createServiceBus({ settings, clock: Date.now, log: () => {} });
  try {
    const target = await sender.openTarget(source, queue);
    for (const message of messages) expect(await target.send([message], 5000)).toEqual({ kind: 'accepted' });
    await target.close();
  } finally {
    await sender.close();
  }
}
