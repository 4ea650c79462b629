import { once } from 'node:events';
import { type Delivery, type EventContext, type Sender, types } from 'rhea';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encode, encodeList, encodeMap, encodeSection, SECTION } from '../../shared/brokers/serviceBus/amqp.ts';
import {
  Bench,
  dataSection,
  EVERY_TYPE,
  manual,
  mapSection,
  rawEntries,
  sectionBytes,
  take,
  typedEntries,
  until,
} from './harness.ts';
import { RawClient } from './raw-client.ts';

let bench: Bench;
let raw: RawClient;
let sender: Sender;

beforeAll(async () => {
  bench = await Bench.start({ q: { MaxDeliveryCount: 100 } });
  raw = await RawClient.connect(bench.broker);
  sender = await raw.sender('q');
});
afterAll(async () => {
  raw.close();
  await bench.close();
});

const none = encode.null();
const properties = encodeSection(
  SECTION.properties,
  encodeList([
    Buffer.from('9800112233445566778899aabbccddeeff', 'hex'),
    encode.binary(Buffer.from('user')),
    none,
    none,
    none,
    encode.long(5n),
    encode.symbol('text/plain'),
    encode.symbol('gzip'),
  ]),
);
const footer = mapSection(SECTION.footer, EVERY_TYPE);
const application = mapSection(SECTION.applicationProperties, EVERY_TYPE);
const annotated = mapSection(SECTION.messageAnnotations, {
  ...EVERY_TYPE,
  'x-opt-jms-msg-type': Buffer.from('5105', 'hex'),
  'x-opt-partition-key': encode.string('p'),
});

const BODIES: [string, Buffer][] = [
  ['one data section', dataSection('{"id":12345678901234567890,"a":1.0}')],
  ['several data sections', Buffer.concat([dataSection('one'), dataSection('two'), dataSection('')])],
  ['a large body in many frames', dataSection(Buffer.alloc(150_000, 7))],
  [
    'sequences',
    Buffer.concat([
      encodeSection(SECTION.sequence, encodeList(Object.values(EVERY_TYPE))),
      encodeSection(SECTION.sequence, encodeList([])),
    ]),
  ],
  ...Object.entries(EVERY_TYPE).map(([name, value]): [string, Buffer] => [
    `the value ${name}`,
    encodeSection(SECTION.value, value),
  ]),
];

describe('a message', () => {
  it.each(BODIES)('comes back from a delivery and a peek as it was sent: %s', async (_, body) => {
    bench.broker.recreate('q');
    expect(await raw.sent(sender, Buffer.concat([annotated, properties, application, body, footer]))).toBe('accepted');
    const receiver = await raw.receiver('q', 1);
    const [context] = (await once(receiver, 'message')) as [EventContext];
    const delivered = context.message as unknown as Buffer;
    for (const message of [delivered, bench.broker.messages('q')[0]?.raw as Buffer]) {
      expect(Buffer.concat([properties, application, body, footer])).toEqual(
        message.subarray(-(properties.length + application.length + body.length + footer.length)),
      );
      expect(rawEntries(message, SECTION.messageAnnotations)).toMatchObject(
        rawEntries(annotated, SECTION.messageAnnotations),
      );
    }
    receiver.close();
  });

  it('in a batch comes back as it was sent', async () => {
    bench.broker.recreate('q');
    const messages = BODIES.slice(0, 2).map(([, body]) => Buffer.concat([properties, application, body, footer]));
    expect(await raw.sent(sender, Buffer.concat(messages.map(dataSection)), 0x80013700)).toBe('accepted');
    expect(bench.broker.messages('q').map(({ stored }) => stored)).toEqual(messages);
  });

  it('in a batch with one malformed message is stored as little as the others', async () => {
    bench.broker.recreate('q');
    const good = Buffer.concat([properties, dataSection('x')]);
    expect(await raw.sent(sender, Buffer.concat([good, Buffer.from('bad')].map(dataSection)), 0x80013700)).toBe(
      'amqp:decode-error',
    );
    expect(await raw.sent(sender, Buffer.from('garbage'))).toBe('amqp:decode-error');
    expect(await raw.sent(sender, good, 42)).toBe('amqp:not-implemented');
    expect(bench.broker.messages('q')).toEqual([]);
  });
});

describe('properties added over the link', () => {
  /** A delivery state with typed values: what rhea writes is what stands here. */
  function state(code: number, fields: unknown[]): unknown {
    return types.described_nc(types.wrap_ulong(code), types.wrap_list(fields as never));
  }
  function typedMap(key: (text: string) => unknown): unknown {
    const read = (bytes: Buffer) =>
      new (types as unknown as { Reader: new (b: Buffer) => { read(): unknown } }).Reader(bytes).read();
    return (types as unknown as { Map32(items: unknown[]): unknown }).Map32(
      Object.entries(SETTABLE).flatMap(([name, bytes]) => [key(`added-${name}`), read(bytes)]),
    );
  }
  // rhea's own decoder and encoder would change these; a test of their own follows.
  const { timestampOutOfRange: _, ulongBeyondDouble: __, longBeyondDouble: ___, ...SETTABLE } = EVERY_TYPE;
  const added = Object.fromEntries(Object.entries(SETTABLE).map(([name, value]) => [`added-${name}`, value]));

  async function settleWith(outcome: unknown): Promise<void> {
    bench.broker.recreate('q');
    await raw.sent(sender, Buffer.concat([properties, application, dataSection('x'), footer]));
    const receiver = await raw.receiver('q', 1);
    const [context] = (await once(receiver, 'message')) as [EventContext];
    (context.delivery as Delivery).update(false, outcome as never);
    await until(() => bench.broker.messages('q')[0]?.locked !== true, 'the settlement');
    receiver.close();
  }

  it.each([
    ['abandon', 0x27, 'q'],
    ['defer', 0x27, 'q'],
    ['dead-letter', 0x25, 'q/$DeadLetterQueue'],
  ] as const)('keep the types the client sent, and leave the others alone: %s', async (how, code, path) => {
    if (how === 'dead-letter') {
      const error = state(0x1d, [types.wrap_symbol('com.microsoft:dead-letter'), null, typedMap(types.wrap_string)]);
      await settleWith(state(code, [error]));
    } else {
      await settleWith(state(code, [null, how === 'defer', typedMap(types.wrap_symbol)]));
    }
    const [message] = bench.broker.messages(path);
    const stored = message?.stored as Buffer;
    expect(rawEntries(stored, SECTION.applicationProperties)).toEqual({ ...EVERY_TYPE, ...added });
    expect(sectionBytes(stored, SECTION.properties)).toEqual([properties]);
    expect(sectionBytes(stored, SECTION.footer)).toEqual([footer]);
  });

  it('keep 64-bit values exactly, which a decoder would round', async () => {
    bench.broker.recreate('q');
    await raw.sent(sender, Buffer.concat([properties, dataSection('x')]));
    const receiver = await raw.receiver('q', 1);
    const [context] = (await once(receiver, 'message')) as [EventContext];
    const exact = {
      long: EVERY_TYPE.longBeyondDouble as Buffer,
      ulong: EVERY_TYPE.ulongBeyondDouble as Buffer,
      time: EVERY_TYPE.timestampOutOfRange as Buffer,
    };
    const map = encodeMap(Object.entries(exact).map(([name, value]) => Buffer.concat([encode.symbol(name), value])));
    const modified = encodeList([none, encode.boolean(true), map]);
    const id = context.delivery?.id as number;
    raw.writeDisposition(receiver, id, id, Buffer.concat([Buffer.from([0x00, 0x53, 0x27]), modified]));
    await until(() => bench.broker.messages('q')[0]?.state === 'deferred', 'the deferral');
    expect(rawEntries(bench.broker.messages('q')[0]?.stored as Buffer, SECTION.applicationProperties)).toEqual(exact);
    receiver.close();
  });

  it('by the SDK are of the types the SDK encodes', async () => {
    bench.broker.recreate('q');
    await raw.sent(sender, Buffer.concat([properties, application, dataSection('x')]));
    const receiver = bench.client().createReceiver('q', manual);
    const [message] = await take(receiver, 1);
    await receiver.deadLetterMessage(message as never, {
      deadLetterReason: 'r',
      deadLetterErrorDescription: 'd',
      number: 5,
      negative: -5,
      fraction: 1.5,
      date: new Date(1_700_000_000_000),
      flag: true,
    });
    const [dead] = bench.broker.messages('q/$DeadLetterQueue');
    expect(rawEntries(dead?.stored as Buffer, SECTION.applicationProperties)).toMatchObject(EVERY_TYPE);
    expect(typedEntries(dead?.stored as Buffer, SECTION.applicationProperties)).toMatchObject({
      number: { type: 'uint', value: 5 },
      negative: { type: 'int', value: -5 },
      fraction: { type: 'double', value: 1.5 },
      date: { type: 'timestamp', value: 1_700_000_000_000n },
      flag: { type: 'boolean', value: true },
      DeadLetterReason: { type: 'string', value: 'r' },
    });
  });
});
