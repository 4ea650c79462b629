import fc from 'fast-check';
import type { Typed } from 'rhea';
import { describe, expect, it } from 'vitest';
import {
  AmqpFormatError,
  encode,
  encodeMap,
  encodeSection,
  listItems,
  mapEntries,
  readValue,
  SECTION,
  sectionsOf,
  valueEnd,
} from '../../shared/brokers/serviceBus/amqp.ts';
import { CODE, encodeValue, messageOf, PROPERTY_VALUES, sectionsByRhea, types } from '../harness/typedMessage.ts';

const scalar: fc.Arbitrary<Typed> = fc.oneof(
  fc.constantFrom(...Object.values(PROPERTY_VALUES)),
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((n) => types.Int(n)),
  fc.nat(2 ** 32 - 1).map((n) => types.Uint(n)),
  fc.double().map((n) => types.Double(n)),
  fc.string({ unit: 'binary', maxLength: 400 }).map((text) => types.wrap_string(text)),
  fc.uint8Array({ maxLength: 400 }).map((bytes) => types.wrap_binary(Buffer.from(bytes))),
);

const value: fc.Arbitrary<Typed> = fc.letrec<{ any: Typed }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('any'), { maxLength: 5 }).map((items) => types.List32(items)),
    fc.constantFrom(types.List0(), types.List8([]), types.Map8([])),
    fc
      .array(fc.tuple(fc.string(), tie('any')), { maxLength: 5 })
      .map((pairs) => types.Map32(pairs.flatMap(([key, item]) => [types.wrap_string(key), item]))),
  ),
})).any;

function itemsOf([key, item]: [string, Typed]): string[] {
  return [types.wrap_string(key), item].map((typed) => encodeValue(typed).toString('hex'));
}

/** Runs `read` and says whether it ended well; any error but the codec's own fails the test. */
function endsWell(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (error instanceof AmqpFormatError) return false;
    throw error;
  }
}

describe('reading AMQP values', () => {
  it('finds the end of every value that rhea writes', () => {
    fc.assert(
      fc.property(value, fc.uint8Array({ maxLength: 10 }), (typed, rest) => {
        const bytes = encodeValue(typed);
        expect(valueEnd(Buffer.concat([bytes, rest]), 0)).toBe(bytes.length);
      }),
    );
  });

  it('cuts a map into entries that put together are the same bytes again', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), value), { maxLength: 20 }), (pairs) => {
        const bytes = encodeValue(types.Map32(pairs.flatMap(([key, item]) => [types.wrap_string(key), item])));
        const entries = mapEntries(bytes, 0);
        expect(entries.map((entry) => entry.key.value)).toEqual(pairs.map(([key]) => key));
        expect(entries.map((entry) => entry.value)).toEqual(pairs.map(([, item]) => encodeValue(item)));
        const again = encodeSection(SECTION.applicationProperties, encodeMap(entries.map((entry) => entry.bytes)));
        expect(sectionsByRhea(again)[0]?.items).toEqual(pairs.flatMap(itemsOf));
      }),
    );
  });

  it('cuts a list into its items', () => {
    fc.assert(
      fc.property(fc.array(value, { maxLength: 20 }), (items) => {
        const bytes = encodeValue(types.List32(items));
        expect(listItems(bytes, 0)).toEqual(items.map(encodeValue));
      }),
    );
  });

  it.each([
    ['ulong', types.Ulong(Buffer.alloc(8, 0xff)), 2n ** 64n - 1n],
    ['long', types.Long(Buffer.from('8000000000000000', 'hex')), -(2n ** 63n)],
    ['timestamp', types.Timestamp(-1), -1n],
    ['uuid', PROPERTY_VALUES.uuid, '00112233-4455-6677-8899-aabbccddeeff'],
    ['char', PROPERTY_VALUES.char, '📬'],
    ['double', types.Double(2), 2],
    ['int', types.SmallInt(-128), -128],
    ['ubyte', types.Ubyte(255), 255],
    ['boolean', types.Boolean(0), false],
  ])('keeps the type and the value of %s', (type, typed, expected) => {
    expect(readValue(encodeValue(typed as Typed))).toEqual({ type, value: expected });
  });

  it('understands descriptors in every form that the specification allows', () => {
    const inner = encodeValue(types.wrap_binary(Buffer.from('x')));
    const forms = ['005375', '00800000000000000075'];
    const symbolic = Buffer.concat([Buffer.from([0]), encodeValue(types.Sym8('amqp:data:binary')), inner]);
    const messages = [...forms.map((form) => Buffer.concat([Buffer.from(form, 'hex'), inner])), symbolic];
    for (const message of messages) {
      expect(sectionsOf(message)).toMatchObject([{ code: SECTION.data, start: 0, end: message.length }]);
    }
  });
});

describe('bytes that are not AMQP', () => {
  it('only ever give the format error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const garbage = Buffer.from(bytes);
        for (const read of [sectionsOf, readValue, (b: Buffer) => mapEntries(b, 0), (b: Buffer) => listItems(b, 0)]) {
          endsWell(() => read(garbage));
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it('only ever give the format error when they were a message once', () => {
    const message = messageOf({
      header: [types.True()],
      messageAnnotations: [['x-opt-sequence-number', types.Long(Buffer.alloc(8, 1))]],
      properties: [types.wrap_string('id')],
      applicationProperties: Object.entries(PROPERTY_VALUES),
    });
    const damage = fc.array(fc.tuple(fc.nat(message.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(damage, fc.nat(message.length), (changes, length) => {
        const bytes = Buffer.from(message);
        for (const [at, byte] of changes) bytes[at] = byte;
        const cut = bytes.subarray(0, length);
        endsWell(() => sectionsOf(cut).map((found) => readValue(cut, found.body)));
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['a map that claims four thousand million items', 'd1ffffffffffffffff'],
    ['an array of a hundred million nothings', 'f000000009' + '05f5e100' + '40'],
    ['values that are nested without end', '00'.repeat(5_000)],
    [
      'lists that are nested without end',
      `${Array.from({ length: 60 }, (_, i) => `c0${(2 + 3 * (59 - i)).toString(16).padStart(2, '0')}01`).join('')}40`,
    ],
    ['a key without a value', 'c1040340' + '4040'],
    ['a list that is longer than its items', 'c0030140' + '40'],
  ])('are refused at once: %s', (_, hex) => {
    const bytes = Buffer.from(hex, 'hex');
    const before = performance.now();
    endsWell(() => readValue(bytes));
    endsWell(() => listItems(bytes, 0));
    expect(endsWell(() => mapEntries(bytes, 0))).toBe(false);
    expect(performance.now() - before).toBeLessThan(200);
  });
});

describe('writing AMQP values', () => {
  it('writes what rhea reads as the same type and value', () => {
    const written = {
      Int: encode.int(-7),
      Uint: encode.uint(7),
      Long: encode.long(-(2n ** 40n)),
      Str8: encode.string('ä'),
      Str32: encode.string('x'.repeat(256)),
      Sym8: encode.symbol('s'),
      Vbin8: encode.binary(Buffer.from([1])),
      Vbin32: encode.binary(Buffer.alloc(256)),
      Timestamp: encode.timestamp(1_700_000_000_000),
    };
    for (const [name, bytes] of Object.entries(written)) {
      const read = new types.Reader(bytes).read();
      expect(read.type.name).toBe(name);
      expect(encodeValue(read)).toEqual(bytes);
    }
  });

  it('chooses the long form where the short one ends', () => {
    const entries = Array.from({ length: 200 }, (_, i) => Buffer.concat([encode.string(`k${i}`), encode.int(i)]));
    const map = encodeMap(entries);
    expect(map[0]).toBe(0xd1);
    expect(sectionsByRhea(encodeSection(CODE.applicationProperties, map))[0]?.entries.size).toBe(200);
  });
});
