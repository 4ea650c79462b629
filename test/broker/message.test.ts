import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deliver, messagesOfBatch, receiveMessage, withProperties } from '../../local/broker/message.ts';
import { checkValues } from '../../local/broker/well-formed.ts';
import {
  encode,
  encodeList,
  encodeMap,
  encodeSection,
  listItems,
  mapEntries,
  readValue,
  SECTION,
  sectionsOf,
} from '../../shared/brokers/serviceBus/amqp.ts';
import { dataSection, EVERY_TYPE, mapSection, rawEntries, sectionBytes, typedEntries } from './harness.ts';

const FACTS = {
  deliveryCount: 4,
  sequenceNumber: 7n,
  enqueueSequenceNumber: 3n,
  enqueuedAt: 1_700_000_000_000,
  deferred: true,
};
const none = encode.null();
const newId = () => 'new-id';
const properties = encodeSection(
  SECTION.properties,
  encodeList([encode.string('id'), encode.binary(Buffer.from('user'))]),
);

describe('a delivered message', () => {
  it('keeps every section it does not have to write, byte for byte', () => {
    const bodies = [
      Buffer.concat([dataSection('one'), dataSection('two'), dataSection('')]),
      encodeSection(SECTION.sequence, encodeList(Object.values(EVERY_TYPE))),
      ...Object.values(EVERY_TYPE).map((value) => encodeSection(SECTION.value, value)),
      Buffer.alloc(0),
    ];
    for (const body of bodies) {
      const rest = Buffer.concat([
        properties,
        mapSection(SECTION.applicationProperties, EVERY_TYPE),
        body,
        mapSection(SECTION.footer, EVERY_TYPE),
      ]);
      const sent = Buffer.concat([
        encodeSection(SECTION.header, encodeList([encode.boolean(true)])),
        mapSection(SECTION.deliveryAnnotations, { hop: encode.int(1) }),
        mapSection(SECTION.messageAnnotations, EVERY_TYPE),
        rest,
      ]);
      const delivered = deliver(receiveMessage(sent, newId).message, FACTS);
      expect(delivered.subarray(delivered.length - rest.length)).toEqual(rest);
      expect(rawEntries(delivered, SECTION.messageAnnotations)).toMatchObject(EVERY_TYPE);
      expect(sectionBytes(delivered, SECTION.deliveryAnnotations)).toEqual([]);
    }
  });

  it("carries the broker's own annotations with the types clients expect, and none that the sender claimed", () => {
    const claimed = mapSection(SECTION.messageAnnotations, {
      'x-opt-sequence-number': encode.long(999n),
      'x-opt-locked-until': encode.timestamp(1),
      'x-opt-partition-key': encode.string('key'),
    });
    const { message } = receiveMessage(Buffer.concat([claimed, properties, dataSection('x')]), newId);
    const peeked = typedEntries(deliver(message, FACTS), SECTION.messageAnnotations);
    expect(peeked).toEqual({
      'x-opt-partition-key': { type: 'string', value: 'key' },
      'x-opt-enqueued-time': { type: 'timestamp', value: 1_700_000_000_000n },
      'x-opt-sequence-number': { type: 'long', value: 7n },
      'x-opt-enqueue-sequence-number': { type: 'long', value: 3n },
      'x-opt-message-state': { type: 'int', value: 1 },
    });
    expect(entryCount(deliver(message, FACTS), SECTION.messageAnnotations)).toBe(5);
    const locked = typedEntries(deliver(message, { ...FACTS, lockedUntil: 5 }), SECTION.messageAnnotations);
    expect(locked['x-opt-locked-until']).toEqual({ type: 'timestamp', value: 5n });
  });

  it('keeps the header but for the delivery count', () => {
    const header = encodeSection(
      SECTION.header,
      encodeList([encode.boolean(true), Buffer.from('5009', 'hex'), encode.uint(60_000), none, encode.uint(77)]),
    );
    const delivered = deliver(
      receiveMessage(Buffer.concat([header, properties, dataSection('x')]), newId).message,
      FACTS,
    );
    const [section] = sectionsOf(delivered);
    const items = listItems(delivered, section?.body ?? 0);
    expect(items.map((item) => readValue(item).value)).toEqual([true, 9, 60_000, null, 4]);
  });

  it('loses its body and nothing else when the body is to be omitted', () => {
    const footer = mapSection(SECTION.footer, { f: encode.int(1) });
    const { message } = receiveMessage(
      Buffer.concat([properties, dataSection('one'), dataSection('two'), footer]),
      newId,
    );
    const peeked = deliver(message, FACTS, true);
    expect(sectionBytes(peeked, SECTION.data)).toEqual([]);
    expect(sectionBytes(peeked, SECTION.properties)).toEqual([properties]);
    expect(sectionBytes(peeked, SECTION.footer)).toEqual([footer]);
  });
});

describe('added properties', () => {
  it('leave the bytes of all other entries alone, and keep the types they came with', () => {
    const sent = Buffer.concat([properties, mapSection(SECTION.applicationProperties, EVERY_TYPE), dataSection('x')]);
    const added = Object.entries(EVERY_TYPE).map(([name, value]) => ({ name: `added-${name}`, value }));
    const changed = withProperties(receiveMessage(sent, newId).message, [
      ...added,
      { name: 'int', value: encode.string('new') },
    ]);
    const { int: _, ...others } = EVERY_TYPE;
    expect(rawEntries(changed.bytes, SECTION.applicationProperties)).toEqual({
      ...others,
      ...Object.fromEntries(added.map(({ name, value }) => [name, value])),
      int: encode.string('new'),
    });
  });

  it('make a section of their own where there was none, in its place', () => {
    const { message } = receiveMessage(Buffer.concat([properties, dataSection('x')]), newId);
    const changed = withProperties(message, [{ name: 'n', value: encode.int(1) }]);
    expect(sectionsOf(changed.bytes).map(({ code }) => code)).toEqual([0x73, 0x74, 0x75]);
    expect(receiveMessage(changed.bytes, newId).message.bytes).toEqual(changed.bytes);
  });
});

describe('a message that comes in', () => {
  it.each([
    ['no properties', dataSection('x')],
    ['properties without an id', Buffer.concat([encodeSection(SECTION.properties, encodeList([])), dataSection('x')])],
    ['a null id', Buffer.concat([encodeSection(SECTION.properties, encodeList([none])), dataSection('x')])],
  ])('gets a message id when it has %s', (_, sent) => {
    const { message } = receiveMessage(sent, newId);
    const [section] = sectionBytes(message.bytes, SECTION.properties);
    expect(section).toEqual(encodeSection(SECTION.properties, encodeList([encode.string('new-id')])));
    expect(sectionsOf(message.bytes).map(({ code }) => code)).toEqual([0x73, 0x75]);
  });

  it('keeps the other properties when its id is put in', () => {
    const items = [encode.binary(Buffer.from('user')), encode.string('to'), encode.symbol('subject')];
    const { message } = receiveMessage(encodeSection(SECTION.properties, encodeList([none, ...items])), newId);
    expect(listItems(message.bytes, sectionsOf(message.bytes)[0]?.body ?? 0)).toEqual([
      encode.string('new-id'),
      ...items,
    ]);
  });

  it.each([
    ['cut short', dataSection('hello').subarray(0, -1)],
    ['no section', encode.string('hello')],
    ['sections out of order', Buffer.concat([dataSection('x'), properties])],
    ['two property sections', Buffer.concat([properties, properties, dataSection('x')])],
    ['a body of two kinds', Buffer.concat([dataSection('x'), encodeSection(SECTION.value, none)])],
    ['properties that are no list', encodeSection(SECTION.properties, encode.int(1))],
    ['annotations that are no map', encodeSection(SECTION.messageAnnotations, encodeList([none]))],
    ['a time to live that is no uint', encodeSection(SECTION.header, encodeList([none, none, encode.string('1')]))],
    ['an array of four billion nulls', encodeSection(SECTION.value, Buffer.from('f000000005ffffffff40', 'hex'))],
    ['a list with a wrong length', encodeSection(SECTION.value, Buffer.from('c0050140404040', 'hex'))],
    ['values nested without end', encodeSection(SECTION.value, nested(5000))],
  ])('is refused when malformed: %s', (_, bytes) => {
    expect(() => receiveMessage(bytes, newId)).toThrow(expect.objectContaining({ name: 'AmqpFormatError' }));
  });

  it('is either taken or refused, whatever its bytes: never anything else', () => {
    const whole = Buffer.concat([properties, mapSection(SECTION.applicationProperties, EVERY_TYPE), dataSection('x')]);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, byte, length) => {
        const damaged = Buffer.from(whole.subarray(0, length));
        if (at < damaged.length) damaged[at] = byte;
        try {
          const { message } = receiveMessage(damaged, newId);
          deliver(withProperties(message, [{ name: 'n', value: encode.int(1) }]), FACTS);
        } catch (caught) {
          expect(caught).toMatchObject({ name: 'AmqpFormatError' });
        }
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a batch', () => {
  it('holds one message in each data section, whatever its size', () => {
    const messages = [Buffer.alloc(300, 1), Buffer.from([2]), Buffer.alloc(70_000, 3)];
    expect(messagesOfBatch(Buffer.concat([properties, ...messages.map(dataSection)]))).toEqual(messages);
  });

  it('is refused when it is empty', () => {
    expect(() => messagesOfBatch(properties)).toThrow('no messages');
  });
});

describe('the check of encoded values', () => {
  it('accepts every AMQP type', () => {
    checkValues(Buffer.concat(Object.values(EVERY_TYPE)));
    checkValues(
      encodeMap(Object.entries(EVERY_TYPE).map(([name, value]) => Buffer.concat([encode.string(name), value]))),
    );
  });
});

function entryCount(message: Buffer, code: number): number {
  const section = sectionsOf(message).find((candidate) => candidate.code === code);
  return section ? mapEntries(message, section.body).length : 0;
}

function nested(depth: number): Buffer {
  let value = none;
  for (let i = 0; i < depth; i++) value = encodeList([value]);
  return value;
}
