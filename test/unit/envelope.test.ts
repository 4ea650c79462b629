import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodedMessage, type ResendChange } from '../../shared/brokers/broker.ts';
import { bodyParts, openEnvelope } from '../../shared/brokers/serviceBus/envelope.ts';
import { NO_NUMBER, readLetter } from '../../shared/brokers/serviceBus/readLetter.ts';
import { reset } from '../../shared/brokers/serviceBus/reset.ts';
import { isOfficeError } from '../../shared/errors.ts';
import { isSameMessage, type PlanId, type SequenceNumber } from '../../shared/letter.ts';
import {
  BODIES,
  CODE,
  data,
  encodeValue,
  messageOf,
  type Parts,
  PROPERTY_VALUES,
  section,
  sectionByRhea,
  sectionsByRhea,
  types,
} from '../harness/typedMessage.ts';

const DAY = 86_400_000;
const change: ResendChange = {
  replayCount: 1,
  replayedAt: 1_800_000_000_500,
  planId: '20261130t104512-k3f5q2xa' as PlanId,
  replayOf: '42' as SequenceNumber,
  bypass: false,
};

function long(value: bigint) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return types.Long(bytes);
}

/** A dead letter as Service Bus gives it out. */
const letter: Parts = {
  header: [types.True(), types.Ubyte(7), types.Uint(60_000), types.False(), types.Uint(3)],
  messageAnnotations: [
    ['x-opt-sequence-number', long(42n)],
    ['x-opt-enqueue-sequence-number', long(40n)],
    ['x-opt-enqueued-time', types.Timestamp(1_700_000_000_000)],
    ['x-opt-locked-until', types.Timestamp(1_700_000_060_000)],
    ['x-opt-message-state', types.Int(1)],
    ['x-opt-deadletter-source', types.Str8('orders')],
    ['x-opt-scheduled-enqueue-time', types.Timestamp(1_699_999_999_000)],
    ['x-opt-lock-token', PROPERTY_VALUES.uuid ?? types.Null()],
    ['x-opt-partition-key', types.Str8('key')],
    ['x-opt-jms-msg-type', types.Byte(5)],
  ],
  properties: [
    types.Str8('id-1'),
    types.Vbin8(Buffer.from('user')),
    types.Str8('to'),
    types.Str8('subject'),
    types.Str8('reply'),
    types.Str8('correlation'),
    types.Sym8('application/json'),
    types.Sym8('gzip'),
    types.Timestamp(1_700_000_060_000),
    types.Timestamp(1_700_000_000_000),
    types.Str8('session'),
    types.SmallUint(4),
    types.Str8('reply-session'),
  ],
  applicationProperties: [
    ['kept', types.Int(5)],
    ['DeadLetterReason', types.Str8('MaxDeliveryCountExceeded')],
    ['DeadLetterErrorDescription', types.Str8('Message could not be consumed after 3 delivery attempts.')],
    ['traceparent', types.Str8('00-aa-bb-01')],
  ],
  body: [data('{}')],
  footer: [['x-foot', types.Int(1)]],
};

function notResendable(message: Buffer): void {
  expect(() => reset(encodedMessage(message), change)).toThrow(expect.objectContaining({ code: 'DLO_NOT_RESENDABLE' }));
}

function hex(value: Parameters<typeof encodeValue>[0]): string {
  return encodeValue(value).toString('hex');
}

describe('reading a letter', () => {
  it('finds what the broker and the sender wrote on it', () => {
    const read = readLetter(messageOf(letter));
    expect(read.deadLetterSource).toBe('orders');
    expect(read).toMatchObject({
      sequenceNumber: '42',
      state: 'held',
      messageId: 'id-1',
      correlationId: 'correlation',
      subject: 'subject',
      contentType: 'application/json',
      sessionId: 'session',
      partitionKey: 'key',
      to: 'to',
      replyTo: 'reply',
      enqueuedAt: 1_700_000_000_000,
      timeToLive: 60_000,
      deliveryCount: 3,
      reason: 'MaxDeliveryCountExceeded',
      description: 'Message could not be consumed after 3 delivery attempts.',
      bytes: messageOf(letter).length,
      replay: { count: 0 },
    });
  });

  it('names the wire type of every application property, and shows wide values as text', () => {
    const read = readLetter(messageOf({ applicationProperties: Object.entries(PROPERTY_VALUES) }));
    const shown = Object.fromEntries(read.properties.map(({ name, type, value }) => [name, [type, value]]));
    expect(shown).toMatchObject({
      null: ['null', null],
      booleanByte: ['boolean', true],
      ubyte: ['ubyte', 5],
      uintZero: ['uint', 0],
      ulong: ['ulong', '18446744073709551615'],
      intSmall: ['int', 5],
      longSmall: ['long', -5],
      long: ['long', '1152921504606846977'],
      doubleWhole: ['double', 2],
      doubleNaN: ['double', 'NaN'],
      char: ['char', '📬'],
      timestamp: ['timestamp', '2023-11-14T22:13:20.123Z'],
      uuid: ['uuid', '00112233-4455-6677-8899-aabbccddeeff'],
      binary: ['binary', 'AP+A'],
      string: ['string', 'grün 📨'],
      symbol: ['symbol', 'symbol'],
      dateTimeOffset: ['described', '{"descriptor":"com.microsoft:datetime-offset","value":"638000000000000000"}'],
    });
  });

  it('shows nested values as JSON text', () => {
    const nested = types.List8([types.Int(1), types.Map8([types.Str8('__proto__'), types.Vbin8(Buffer.from('x'))])]);
    const [property] = readLetter(messageOf({ applicationProperties: [['n', nested]] })).properties;
    expect(property).toEqual({ name: 'n', type: 'list', value: '[1,{"__proto__":"eA=="}]' });
  });

  it.each([
    ['a uuid', types.Uuid(Buffer.alloc(16, 1)), '01010101-0101-0101-0101-010101010101'],
    ['a wide number', types.Ulong(Buffer.alloc(8, 0xff)), '18446744073709551615'],
    ['binary', types.Vbin8(Buffer.from('id')), 'aWQ='],
    ['nothing', types.Null(), undefined],
  ])('reads a message id that is %s', (_, id, expected) => {
    expect(readLetter(messageOf({ properties: [id] })).messageId).toBe(expected);
  });

  it.each([
    ['an int', types.Int(2), 2],
    ['a uint', types.Uint(2), 2],
    ['a long', long(2n), 2],
    ['a whole double', types.Double(2), 2],
    ['digits', types.Str8('2'), 2],
    ['a negative number', types.Int(-2), 0],
    ['more than an int can hold', long(2n ** 40n), 0],
    ['half a replay', types.Double(1.5), 0],
    ['a word', types.Str8('two'), 0],
    ['nothing', types.Null(), 0],
  ])('counts replays when the property is %s', (_, count, expected) => {
    expect(readLetter(messageOf({ applicationProperties: [['x-replay-count', count]] })).replay.count).toBe(expected);
  });

  it('reads back what an earlier replay wrote', () => {
    const replayed = reset(messageOf(letter), { ...change, replayCount: 2 });
    expect(readLetter(replayed).replay).toEqual({
      count: 2,
      planId: change.planId,
      of: change.replayOf,
      at: 1_800_000_000_000,
    });
  });

  it('takes a time to live beyond the header from the two times', () => {
    const properties = [
      ...Array.from({ length: 8 }, () => types.Null()),
      types.Timestamp(100 * DAY),
      types.Timestamp(0),
    ];
    const header = [types.Null(), types.Null(), types.Uint(2 ** 32 - 1)];
    expect(readLetter(messageOf({ header, properties })).timeToLive).toBe(100 * DAY);
  });

  it('takes a header at its largest without the two times for no time to live', () => {
    const header = [types.Null(), types.Null(), types.Uint(2 ** 32 - 1)];
    expect(readLetter(messageOf({ header })).timeToLive).toBeUndefined();
  });

  it('measures the properties that go back', () => {
    const { propertySize } = readLetter(
      messageOf({
        applicationProperties: [
          ['DeadLetterErrorDescription', types.Str32('x'.repeat(500))],
          ['n'.repeat(20), types.Int(1)],
          ['text', types.Str32('ü'.repeat(300))],
        ],
      }),
    );
    expect(propertySize.longest).toBe(300);
    expect(propertySize.total).toBeGreaterThan(620);
    expect(propertySize.total).toBeLessThan(700);
  });

  it('takes the reason from a string only', () => {
    expect(
      readLetter(messageOf({ applicationProperties: [['DeadLetterReason', types.Int(1)]] })).reason,
    ).toBeUndefined();
  });

  it('tells kind and size of every body', () => {
    const bodies = Object.values(BODIES).map((body) => readLetter(messageOf({ body })).body);
    expect(bodies.map(({ kind, bytes }) => [kind, bytes])).toEqual([
      ['data', 256],
      ['data', 0],
      ['data', 200 * 1024],
      ['data', 39],
      ['data-several', 303],
      ['value', 9],
      ['value', 1],
      ['value', 7],
      ['value', expect.any(Number)],
      ['sequence', 11],
      ['sequence', 13],
    ]);
    expect(new Set(bodies.map(({ hash }) => hash)).size).toBe(bodies.length);
  });

  it.each([
    ['a header that has one', letter.header],
    ['a header without it', [types.False()]],
    ['no header', undefined],
  ])('gives the message another time to live where the plan says so: %s', (_what, header) => {
    const { header: _own, ...rest } = letter;
    const mortal = messageOf({ ...rest, ...(header && { header }) });
    expect(readLetter(reset(mortal, { ...change, timeToLive: 3_600_000 })).timeToLive).toBe(3_600_000);
    expect(readLetter(reset(mortal, { ...change, timeToLive: 'drop' })).timeToLive).toBeUndefined();
  });

  it('drops a time to live beyond the header too', () => {
    const properties = [
      ...Array.from({ length: 8 }, () => types.Null()),
      types.Timestamp(100 * DAY),
      types.Timestamp(0),
    ];
    const message = messageOf({
      header: [types.Null(), types.Null(), types.Uint(2 ** 32 - 1)],
      properties,
      body: [data('x')],
    });
    expect(readLetter(reset(message, { ...change, timeToLive: 'drop' })).timeToLive).toBeUndefined();
    expect(readLetter(reset(message, { ...change, timeToLive: 1000 })).timeToLive).toBe(1000);
  });

  it('has the same fingerprint however the broker frames the same bytes', () => {
    const short = readLetter(messageOf({ body: [section(CODE.data, types.Vbin8(Buffer.from('x')))] }));
    const wide = readLetter(messageOf({ body: [section(CODE.data, types.Vbin32(Buffer.from('x')))] }));
    expect(isSameMessage(short, wide)).toBe(true);
  });

  it('does not take two data sections for one', () => {
    const hashOf = (body: Buffer[]) => readLetter(messageOf({ body })).body.hash;
    expect(hashOf([data('ab'), data('c')])).not.toBe(hashOf([data('a'), data('bc')]));
    expect(hashOf([data('abc')])).not.toBe(hashOf([data('abc'), data('')]));
  });
});

describe('a message that cannot be read', () => {
  const broken = section(CODE.applicationProperties, types.Str8('no map'));

  it('still gives what is readable, and is not sent back', () => {
    const start = messageOf({
      header: letter.header ?? [],
      messageAnnotations: letter.messageAnnotations ?? [],
      body: [],
    });
    const message = Buffer.concat([start, broken, data('body')]);
    expect(readLetter(message)).toMatchObject({
      sequenceNumber: '42',
      deliveryCount: 3,
      properties: [],
      body: { bytes: 4 },
    });
    notResendable(message);
  });

  it('never makes the reader throw, whatever the bytes', () => {
    const message = messageOf({ ...letter, applicationProperties: Object.entries(PROPERTY_VALUES) });
    const damage = fc.array(fc.tuple(fc.nat(message.length - 1), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(damage, fc.nat(message.length), (changes, length) => {
        const bytes = Buffer.from(message.subarray(0, length));
        for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
        JSON.stringify(readLetter(bytes));
        bodyParts(openEnvelope(bytes));
        try {
          reset(encodedMessage(bytes), change);
        } catch (error) {
          if (!isOfficeError(error, 'DLO_NOT_RESENDABLE')) throw error;
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it('has no number when the broker wrote none', () => {
    expect(readLetter(Buffer.from('garbage')).sequenceNumber).toBe(NO_NUMBER);
  });

  it.each([
    ['it is empty', Buffer.alloc(0)],
    ['it is cut short', messageOf(letter).subarray(0, -1)],
    ['it has no body', messageOf({ ...letter, body: [], footer: [] })],
    ['its body mixes kinds', messageOf({ body: [data('x'), section(CODE.value, types.Null())] })],
    ['it has two values', messageOf({ body: [section(CODE.value, types.Null()), section(CODE.value, types.Null())] })],
    ['a data section holds text', messageOf({ body: [section(CODE.data, types.Str8('x'))] })],
    ['a section is there twice', Buffer.concat([broken, broken, data('x')])],
    ['its sections are out of order', Buffer.concat([data('x'), section(CODE.properties, types.List0())])],
    ['bytes follow it', Buffer.concat([messageOf(letter), Buffer.from([1])])],
  ])('is not sent back when %s', (_, message) => notResendable(message));
});

describe('what a replay resets', () => {
  const before = messageOf(letter);
  const after = reset(before, change);

  it('keeps durable, priority and time to live, and begins counting deliveries anew', () => {
    const header = sectionByRhea(after, CODE.header);
    expect(header?.items).toEqual(sectionByRhea(before, CODE.header)?.items.slice(0, 3));
  });

  it('drops the annotations of the broker by name and keeps all others as they are', () => {
    const kept = sectionByRhea(after, CODE.messageAnnotations)?.entries;
    expect([...(kept ?? [])]).toEqual([
      ['x-opt-partition-key', hex(types.Str8('key'))],
      ['x-opt-jms-msg-type', hex(types.Byte(5))],
    ]);
  });

  it('drops creation and expiry, whose difference the header holds, and nothing else of the properties', () => {
    const items = sectionByRhea(before, CODE.properties)?.items ?? [];
    const expected = items.map((item, i) => (i === 8 || i === 9 ? '40' : item));
    expect(sectionByRhea(after, CODE.properties)?.items).toEqual(expected);
  });

  it('removes why it died and says that it was replayed', () => {
    expect([...(sectionByRhea(after, CODE.applicationProperties)?.entries ?? [])]).toEqual([
      ['kept', hex(types.Int(5))],
      ['traceparent', hex(types.Str8('00-aa-bb-01'))],
      ['x-replay-count', hex(types.Int(1))],
      ['x-replayed-at', hex(long(1_800_000_000n))],
      ['x-replay-id', hex(types.Str8(change.planId))],
      ['x-replay-of', hex(types.Str8('42'))],
    ]);
  });

  it('keeps body and footer byte for byte', () => {
    const rest = (message: Buffer) => sectionsByRhea(message).filter(({ code }) => code >= CODE.data);
    expect(rest(after)).toEqual(rest(before));
  });

  it.each(Object.entries(BODIES))('keeps the body when it is %s', (_, body) => {
    const sent = reset(messageOf({ ...letter, body }), change);
    expect(
      sectionsByRhea(sent)
        .filter(({ code }) => code >= CODE.data && code <= CODE.value)
        .map(({ bytes }) => bytes),
    ).toEqual(body.map((bytes) => bytes.toString('hex')));
  });

  it('keeps the type and the encoding of every application property', () => {
    const sent = reset(messageOf({ applicationProperties: Object.entries(PROPERTY_VALUES) }), change);
    const entries = sectionByRhea(sent, CODE.applicationProperties)?.entries;
    for (const [name, value] of Object.entries(PROPERTY_VALUES))
      expect([name, entries?.get(name)]).toEqual([name, hex(value)]);
  });

  it('leaves sections that need no change as the bytes they are, and adds none that is not needed', () => {
    const message = messageOf({ header: [types.Null()], properties: [types.Str8('id')] });
    const sections = sectionsByRhea(reset(message, change));
    expect(sections.map(({ code }) => code)).toEqual([
      CODE.header,
      CODE.properties,
      CODE.applicationProperties,
      CODE.data,
    ]);
    expect(sections.slice(0, 2)).toEqual(sectionsByRhea(message).slice(0, 2));
    const bare = sectionsByRhea(reset(encodedMessage(data('only a body')), change));
    expect(bare.map(({ code }) => code)).toEqual([CODE.applicationProperties, CODE.data]);
  });

  it('has no annotations left when all were the broker’s', () => {
    const message = messageOf({ messageAnnotations: [['x-opt-sequence-number', long(1n)]] });
    expect(sectionByRhea(reset(message, change), CODE.messageAnnotations)).toBeUndefined();
  });

  it('keeps delivery annotations that are not the broker’s', () => {
    const deliveryAnnotations: Parts['deliveryAnnotations'] = [
      ['x-opt-lock-token', types.Uuid(Buffer.alloc(16))],
      ['x-hop', types.Int(1)],
    ];
    const sent = reset(messageOf({ deliveryAnnotations }), change);
    expect([...(sectionByRhea(sent, CODE.deliveryAnnotations)?.entries.keys() ?? [])]).toEqual(['x-hop']);
  });

  it('replaces what earlier replays wrote, and takes back a bypass that this plan does not want', () => {
    const bypassed = reset(before, { ...change, replayFor: 'billing', bypass: true });
    const again = reset(bypassed, { ...change, replayCount: 2 });
    const entries = sectionByRhea(again, CODE.applicationProperties)?.entries;
    expect(entries?.get('x-replay-count')).toBe(hex(types.Int(2)));
    expect([...(entries?.keys() ?? [])].filter((name) => /bypass|replay-for/.test(name))).toEqual([]);
  });

  it('tells handlers to skip outside effects when the plan says so', () => {
    const sent = sectionByRhea(reset(before, { ...change, bypass: true }), CODE.applicationProperties)?.entries;
    expect(sent?.get('replay-bypass')).toBe(hex(types.Str8('1')));
    expect(sent?.has('bq-replay-bypass')).toBe(false);
    const babel = messageOf({ applicationProperties: [['bq-job', types.Str8('x')]] });
    const sentBabel = sectionByRhea(reset(babel, { ...change, bypass: true }), CODE.applicationProperties)?.entries;
    expect(sentBabel?.get('bq-replay-bypass')).toBe(hex(types.Str8('1')));
  });

  it('names the subscription of a letter that goes to a topic', () => {
    const sent = sectionByRhea(reset(before, { ...change, replayFor: 'billing' }), CODE.applicationProperties);
    expect(sent?.entries.get('x-replay-for')).toBe(hex(types.Str8('billing')));
  });
});

describe('a new message id', () => {
  const propertiesOf = (message: Buffer) => sectionByRhea(message, CODE.applicationProperties)?.entries;

  it('replaces the old one, which is kept beside it in the type it had', () => {
    const message = messageOf({ properties: [types.Uuid(Buffer.alloc(16, 7)), types.Vbin8(Buffer.from('user'))] });
    const sent = reset(message, { ...change, newMessageId: 'new-1' });
    expect(sectionByRhea(sent, CODE.properties)?.items).toEqual([
      hex(types.Str8('new-1')),
      hex(types.Vbin8(Buffer.from('user'))),
    ]);
    expect(propertiesOf(sent)?.get('x-original-message-id')).toBe(hex(types.Uuid(Buffer.alloc(16, 7))));
  });

  it('keeps the very first id when there were several replays', () => {
    const first = reset(messageOf({ properties: [types.Str8('id-1')] }), { ...change, newMessageId: 'id-2' });
    const second = reset(first, { ...change, newMessageId: 'id-3' });
    expect(propertiesOf(second)?.get('x-original-message-id')).toBe(hex(types.Str8('id-1')));
  });

  it('is put into a message that had no properties', () => {
    const sent = reset(encodedMessage(data('x')), { ...change, newMessageId: 'new-1' });
    expect(sectionByRhea(sent, CODE.properties)?.items).toEqual([hex(types.Str8('new-1'))]);
    expect(propertiesOf(sent)?.has('x-original-message-id')).toBe(false);
  });
});

describe('the time to live of a replayed message', () => {
  const nulls = Array.from({ length: 8 }, () => types.Null());
  const times = (expires: number, created: number) => [...nulls, types.Timestamp(expires), types.Timestamp(created)];
  const replayed = (parts: Parts) => {
    const sent = reset(messageOf(parts), change);
    return { header: sectionByRhea(sent, CODE.header)?.items, properties: sectionByRhea(sent, CODE.properties)?.items };
  };

  it('is told by two new times when it is longer than the header can say', () => {
    const header = [types.Null(), types.Null(), types.Uint(2 ** 32 - 1)];
    const sent = replayed({ header, properties: times(1_700_000_000_000 + 100 * DAY, 1_700_000_000_000) });
    expect(sent.properties?.slice(8)).toEqual([
      hex(types.Timestamp(change.replayedAt + 100 * DAY)),
      hex(types.Timestamp(change.replayedAt)),
    ]);
    expect(sent.header?.[2]).toBe(hex(types.Uint(2 ** 32 - 1)));
  });

  it.each([
    ['no times', undefined],
    ['a time of its end alone', [...nulls, types.Timestamp(253_402_300_799_999)]],
  ])('is none where the header cannot say it and there are no two times that do: %s', (_what, properties) => {
    const header = [types.Null(), types.Null(), types.Uint(2 ** 32 - 1)];
    const sent = replayed({ header, ...(properties && { properties }) });
    expect(sent.header?.[2]).toBe('40');
  });

  it('never goes beyond the last time that .NET can read', () => {
    const forever = 253_402_300_799_999;
    const sent = replayed({ properties: times(forever, 1_700_000_000_000) });
    expect(sent.properties?.[8]).toBe(hex(types.Timestamp(forever)));
  });

  it('goes into the header when only the times told it', () => {
    const sent = replayed({ properties: times(90_000, 30_000) });
    expect(sent.header).toEqual(['40', '40', hex(types.Uint(60_000))]);
    expect(sent.properties?.slice(8)).toEqual(['40', '40']);
  });

  it('is not made up from times that make no sense', () => {
    const sent = replayed({ properties: times(30_000, 90_000) });
    expect(sent.header).toBeUndefined();
    expect(sent.properties?.slice(8)).toEqual(['40', '40']);
  });
});
