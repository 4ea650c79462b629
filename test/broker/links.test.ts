import { once } from 'node:events';
import rhea, { type AmqpError, type Delivery, type EventContext, type Receiver } from 'rhea';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { swapGuid } from '../../local/broker/encoding.ts';
import { encode, encodeList } from '../../shared/brokers/serviceBus/amqp.ts';
import { Bench, dataSection, until } from './harness.ts';
import { RawClient } from './raw-client.ts';

let bench: Bench;
let raw: RawClient;

beforeAll(async () => {
  bench = await Bench.start({ q: {}, other: {} });
});
beforeEach(async () => {
  for (const path of ['q', 'other']) bench.broker.recreate(path);
  raw = await RawClient.connect(bench.broker);
});
afterEach(() => raw.close());
afterAll(() => bench.close());

// rhea's declarations leave these out.
const ACCEPTED = (rhea.message as unknown as { accepted(): { described(): never } }).accepted().described();
const creditOf = (receiver: Receiver) => (receiver as unknown as { credit: number }).credit;
const stored = (path = 'q') => bench.broker.messages(path);

async function fill(path: string, count: number): Promise<void> {
  const sender = await raw.sender(path);
  const batch = Buffer.concat(Array.from({ length: count }, () => dataSection(dataSection('x'))));
  expect(await raw.sent(sender, batch, 0x80013700)).toBe('accepted');
}

describe('a drain', () => {
  it('is answered when there is no credit at all', async () => {
    const receiver = await raw.receiver('q', 0);
    const drained = once(receiver, 'receiver_drained');
    receiver.drain_credit();
    await drained;
  });

  it('is answered after everything the credit allows has come', async () => {
    await fill('q', 3);
    const receiver = await raw.receiver('q', 0);
    let received = 0;
    receiver.on('message', () => received++);
    const drained = once(receiver, 'receiver_drained');
    receiver.add_credit(10);
    receiver.drain_credit();
    await drained;
    expect([received, creditOf(receiver)]).toEqual([3, 0]);
    expect(stored().map(({ locked }) => locked)).toEqual([true, true, true]);
    await fill('q', 1);
    expect(stored().at(-1)).toMatchObject({ locked: false });
  });
});

describe('credit', () => {
  it('counts what a narrow session window still holds back', async () => {
    const narrow = await RawClient.connect(bench.broker, true, { incoming: 5 });
    await fill('q', 30);
    const receiver = await narrow.receiver('q', 10);
    let received = 0;
    receiver.on('message', () => received++);
    await until(() => received === 5, 'what the window lets through');
    await fill('q', 1);
    await bench.client().createReceiver('other').peekMessages(1);
    expect(stored().filter(({ locked }) => locked)).toHaveLength(10);
    narrow.close();
  });
});

describe('one disposition for many deliveries', () => {
  it('is answered for each of them, also when one has lost its lock', async () => {
    await fill('q', 5);
    const receiver = await raw.receiver('q', 5);
    const deliveries: Delivery[] = [];
    receiver.on('message', ({ delivery }: EventContext) => deliveries.push(delivery as Delivery));
    await until(() => deliveries.length === 5, 'the deliveries');
    const lost = swapGuid(deliveries[2]?.tag as Buffer);
    const settled = await raw.manage('q', 'update-disposition', {
      'lock-tokens': encodeList([Buffer.concat([Buffer.from([0x98]), lost])]),
      'disposition-status': encode.string('abandoned'),
    });
    expect(settled.status).toBe(200);
    raw.writeDisposition(receiver, deliveries[0]?.id as number, 0xffff_ffff, Buffer.from('00532445', 'hex'));
    await until(() => deliveries.every((delivery) => delivery.remote_settled), 'all answers');
    const outcomes = deliveries.map(({ remote_state: state }) => (state as { error?: AmqpError }).error?.condition);
    expect(outcomes).toEqual([undefined, undefined, 'com.microsoft:message-lock-lost', undefined, undefined]);
    expect(stored().map(({ sequenceNumber }) => sequenceNumber)).toEqual([3n]);
  });
});

describe('a delivery', () => {
  it('that is released goes back uncounted', async () => {
    await fill('q', 1);
    const receiver = await raw.receiver('q', 1);
    const [context] = (await once(receiver, 'message')) as [EventContext];
    context.delivery?.release();
    await until(() => stored()[0]?.locked === false, 'the release');
    expect(stored()).toMatchObject([{ deliveryCount: 0 }]);
  });

  it('that the client settles at once needs no answer', async () => {
    await fill('q', 1);
    const receiver = await raw.receiver('q', 1);
    const [context] = (await once(receiver, 'message')) as [EventContext];
    context.delivery?.update(true, ACCEPTED);
    await until(() => stored().length === 0, 'the settlement');
  });

  it('left unsettled on a closed link stays locked and does not stand in the way of other links', async () => {
    await fill('q', 500);
    await fill('other', 4000);
    const leaving = await raw.receiver('q', 500);
    const left: Delivery[] = [];
    leaving.on('message', ({ delivery }: EventContext) => left.push(delivery as Delivery));
    await until(() => left.length === 500, 'the deliveries of the first link');
    leaving.close();
    await once(leaving, 'receiver_close');
    // The client's own ring has to forget them as well.
    for (const delivery of left) (delivery as { settled: boolean }).settled = true;
    expect(stored().every(({ locked }) => locked)).toBe(true);
    // More than a ring of 2,048 on the same session: the first 500 must not fill it.
    const staying = await raw.receiver('other', 2000);
    staying.on('message', (context: EventContext) => {
      context.delivery?.update(true, ACCEPTED);
      if (creditOf(staying) < 1000) staying.add_credit(1000);
    });
    await until(() => stored('other').length === 0, 'everything to be accepted');
  });
});

describe('a send', () => {
  it('answers each of many sends of one turn with its own outcome', async () => {
    const sender = await raw.sender('q');
    const outcomes = new Map<number, string>();
    sender.on('accepted', ({ delivery }: EventContext) => outcomes.set(delivery?.id as number, 'accepted'));
    sender.on('rejected', ({ delivery }: EventContext) => outcomes.set(delivery?.id as number, 'rejected'));
    const expected = new Map(
      Array.from({ length: 20 }, (_, i): [number, string] => {
        const bad = i % 3 === 1;
        return [
          raw.sendBytes(sender, bad ? Buffer.from('bad') : dataSection('x')).id as number,
          bad ? 'rejected' : 'accepted',
        ];
      }),
    );
    await until(() => outcomes.size === 20, 'all outcomes');
    expect(outcomes).toEqual(expected);
    expect(stored()).toHaveLength([...expected.values()].filter((outcome) => outcome === 'accepted').length);
  });

  it('can be followed by any number of others on the same link', async () => {
    const sender = await raw.sender('q');
    let settled = 0;
    sender.on('settled', () => settled++);
    const sendAll = () => {
      while (sent < 3000 && sender.sendable()) {
        raw.sendBytes(sender, dataSection('x'));
        sent++;
      }
    };
    let sent = 0;
    sender.on('sendable', sendAll);
    sendAll();
    await until(() => settled === 3000, 'all outcomes');
    expect(stored()).toHaveLength(3000);
  });

  it('states the largest message it takes', async () => {
    const sender = await raw.sender('q');
    expect(Number(sender.max_message_size)).toBe(262_144);
  });
});
