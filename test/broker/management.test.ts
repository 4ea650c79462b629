import { once } from 'node:events';
import Long from 'long';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeStringMap, swapGuid } from '../../local/broker/encoding.ts';
import { encode, encodeList, encodeSection, readValue, SECTION } from '../../shared/brokers/serviceBus/amqp.ts';
import {
  Bench,
  dataSection,
  EVERY_TYPE,
  manual,
  mapSection,
  peekAll,
  rawEntries,
  sectionBytes,
  take,
} from './harness.ts';
import { opened, RawClient } from './raw-client.ts';

let bench: Bench;
let raw: RawClient;

beforeAll(async () => {
  bench = await Bench.start({ q: { MaxDeliveryCount: 5 } }, { t: ['s'] });
  raw = await RawClient.connect(bench.broker);
});
afterAll(async () => {
  raw.close();
  await bench.close();
});

const uuids = (tokens: string[]) =>
  encodeList(
    tokens.map((token) => Buffer.concat([Buffer.from([0x98]), Buffer.from(token.replaceAll('-', ''), 'hex')])),
  );
const longs = (...numbers: number[]) => encodeList(numbers.map((number) => encode.long(BigInt(number))));
const peekArgs = (from: Buffer, count: Buffer) => ({ 'from-sequence-number': from, 'message-count': count });
const states = (path = 'q') =>
  bench.broker.messages(path).map(({ state, locked }) => (locked ? `${state} locked` : state));

async function locked(count: number): Promise<string[]> {
  bench.broker.recreate('q');
  await bench
    .client()
    .createSender('q')
    .sendMessages(Array.from({ length: count }, () => ({ body: 'x' })));
  const messages = await take(bench.client().createReceiver('q', manual), count);
  return messages.map(({ lockToken }) => lockToken as string);
}

describe('update-disposition', () => {
  it.each([
    ['completed', []],
    ['abandoned', ['active', 'active', 'active']],
    ['defered', ['deferred', 'deferred', 'deferred']],
    ['suspended', []],
  ])('settles many lock tokens in one request: %s', async (status, left) => {
    const tokens = await locked(3);
    const answer = await raw.manage('q', 'update-disposition', {
      'lock-tokens': uuids(tokens),
      'disposition-status': encode.string(status),
    });
    expect(answer.status).toBe(200);
    expect(states()).toEqual(left);
    expect(states('q/$DeadLetterQueue')).toHaveLength(status === 'suspended' ? 3 : 0);
  });

  it('changes nothing when one of the tokens holds no lock', async () => {
    const tokens = await locked(2);
    const bad = '00112233-4455-6677-8899-aabbccddeeff';
    for (const list of [
      [...tokens, bad],
      [tokens[0] as string, tokens[0] as string],
    ]) {
      const answer = await raw.manage('q', 'update-disposition', {
        'lock-tokens': uuids(list),
        'disposition-status': encode.string('completed'),
      });
      expect(answer).toMatchObject({ status: 410, condition: 'com.microsoft:message-lock-lost' });
    }
    expect(states()).toEqual(['active locked', 'active locked']);
  });

  it('adds properties with the very types the client sent', async () => {
    const [token] = await locked(1);
    const answer = await raw.manage('q', 'update-disposition', {
      'lock-tokens': uuids([token as string]),
      'disposition-status': encode.string('suspended'),
      'deadletter-reason': encode.string('why'),
      'deadletter-description': encode.string('because'),
      'properties-to-modify': encodeStringMap(EVERY_TYPE),
    });
    expect(answer.status).toBe(200);
    const [message] = bench.broker.messages('q/$DeadLetterQueue');
    expect(rawEntries(message?.raw as Buffer, SECTION.applicationProperties)).toEqual({
      ...EVERY_TYPE,
      DeadLetterReason: encode.string('why'),
      DeadLetterErrorDescription: encode.string('because'),
    });
  });
});

describe('receive-by-sequence-number', () => {
  it('answers the message with a lock token that settles it', async () => {
    const tokens = await locked(2);
    await raw.manage('q', 'update-disposition', {
      'lock-tokens': uuids(tokens),
      'disposition-status': encode.string('defered'),
    });
    const answer = await raw.manage('q', 'receive-by-sequence-number', {
      'sequence-numbers': longs(2, 1),
      'receiver-settle-mode': encode.uint(1),
    });
    expect(answer.status).toBe(200);
    expect(states()).toEqual(['deferred locked', 'deferred locked']);
    const [, messages] = (answer.body?.type === 'map' && answer.body.value[0]) || [];
    const [first] = messages?.type === 'list' ? messages.value : [];
    const fields = Object.fromEntries(
      first?.type === 'map' ? first.value.map(([key, value]) => [key.value, value]) : [],
    );
    const annotations = rawEntries(fields.message.value, SECTION.messageAnnotations);
    expect(readValue(annotations['x-opt-sequence-number'] as Buffer)).toEqual({ type: 'long', value: 2n });
    expect(readValue(annotations['x-opt-locked-until'] as Buffer).type).toBe('timestamp');
    const settled = await raw.manage('q', 'update-disposition', {
      'lock-tokens': uuids([fields['lock-token'].value]),
      'disposition-status': encode.string('completed'),
    });
    expect(settled.status).toBe(200);
    expect(bench.broker.messages('q').map(({ sequenceNumber }) => sequenceNumber)).toEqual([1n]);
  });

  it('removes in settle mode 0', async () => {
    const tokens = await locked(1);
    await raw.manage('q', 'update-disposition', {
      'lock-tokens': uuids(tokens),
      'disposition-status': encode.string('defered'),
    });
    const args = { 'sequence-numbers': longs(1), 'receiver-settle-mode': encode.uint(0) };
    expect(await raw.manage('q', 'receive-by-sequence-number', args)).toMatchObject({ status: 200 });
    expect(states()).toEqual([]);
    expect(await raw.manage('q', 'receive-by-sequence-number', args)).toMatchObject({
      status: 404,
      condition: 'com.microsoft:message-not-found',
    });
  });
});

describe('peek-message', () => {
  it('omits the body when asked to, and says 204 when there is nothing', async () => {
    bench.broker.recreate('q');
    const args = {
      'from-sequence-number': encode.long(1n),
      'message-count': encode.int(9),
      'omit-message-body': encode.boolean(true),
    };
    expect(await raw.manage('q', 'peek-message', args)).toMatchObject({ status: 204, condition: undefined });
    await bench.client().createSender('q').sendMessages({ body: 'x', subject: 'kept' });
    const answer = await raw.manage('q', 'peek-message', args);
    const [, messages] = (answer.body?.type === 'map' && answer.body.value[0]) || [];
    const [first] = messages?.type === 'list' ? messages.value : [];
    const message = first?.type === 'map' ? (first.value[0]?.[1].value as Buffer) : Buffer.alloc(0);
    expect(sectionBytes(message, SECTION.properties)).toHaveLength(1);
    expect(sectionBytes(message, SECTION.data)).toEqual([]);
    expect(sectionBytes(bench.broker.messages('q')[0]?.raw as Buffer, SECTION.data)).toEqual([dataSection('"x"')]);
  });
});

describe('a page of a peek', () => {
  it('ends where it would weigh more than a megabyte, and the next goes on', async () => {
    bench.broker.recreate('q');
    const sender = bench.client().createSender('q');
    for (let i = 0; i < 12; i++) await sender.sendMessages({ body: Buffer.alloc(100_000), subject: String(i) });
    const receiver = bench.client().createReceiver('q');
    const first = await peekAll(receiver);
    expect(first.map(({ subject }) => subject)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    const fromSequenceNumber = first.at(-1)?.sequenceNumber?.add(1) ?? Long.ZERO;
    const second = await receiver.peekMessages(250, { fromSequenceNumber });
    expect(second.map(({ subject }) => subject)).toEqual(['10', '11']);
    bench.broker.recreate('q');
  });
});

describe('links for requests', () => {
  const ask = (replyTo: string, filler = 0) =>
    Buffer.concat([
      encodeSection(
        SECTION.properties,
        encodeList([encode.string('id'), encode.null(), encode.null(), encode.null(), encode.string(replyTo)]),
      ),
      mapSection(SECTION.applicationProperties, { operation: encode.string('com.microsoft:peek-message') }),
      encodeSection(SECTION.value, encodeStringMap({ filler: encode.binary(Buffer.alloc(filler)) })),
    ]);

  it('are ended by a request that is larger than a message of the entity may be', async () => {
    const sender = await raw.sender('q/$management');
    expect(sender.max_message_size).toBe(262_144);
    const ended = once(sender, 'sender_error');
    expect(await raw.sent(sender, ask('nobody', 300_000))).toBe('amqp:link:message-size-exceeded');
    await ended;
    expect(sender.error).toMatchObject({ condition: 'amqp:link:message-size-exceeded' });
  });

  it('refuse a request that names no link for its answer', async () => {
    const sender = await raw.sender('q/$management');
    expect(await raw.sent(sender, ask('nobody'))).toBe('amqp:not-found');
    const settled = raw.connection.open_sender({ target: 'q/$management', snd_settle_mode: 1 });
    await opened(settled);
    const ended = once(settled, 'sender_error');
    raw.sendBytes(settled, ask('nobody'));
    await ended;
    expect(settled.error).toMatchObject({
      condition: 'amqp:not-found',
      description: expect.stringContaining("'nobody'"),
    });
  });

  it('of one address for answers are not two', async () => {
    const open = (name: string) => raw.connection.open_receiver({ name, source: 'q/$management', target: 'answers' });
    const first = open('a');
    await opened(first);
    await expect(opened(open('b'))).rejects.toMatchObject({ condition: 'amqp:not-allowed' });
    const closed = once(first, 'receiver_close');
    first.close();
    await closed;
    await opened(open('c'));
  });
});

describe('a request', () => {
  it.each([
    ['an unknown operation', 'q', 'no-such-thing', {}, 501, 'amqp:not-implemented'],
    ['an operation named like an object method', 'q', 'toString', {}, 501, 'amqp:not-implemented'],
    [
      'a peek without a count',
      'q',
      'peek-message',
      { 'from-sequence-number': encode.long(1n) },
      400,
      'com.microsoft:argument-error',
    ],
    [
      'a peek of nothing',
      'q',
      'peek-message',
      { 'from-sequence-number': encode.long(1n), 'message-count': encode.int(0) },
      400,
      'com.microsoft:argument-out-of-range',
    ],
    [
      'a peek by an int',
      'q',
      'peek-message',
      peekArgs(encode.int(1), encode.int(1)),
      400,
      'com.microsoft:argument-error',
    ],
    [
      'a peek by a text',
      'q',
      'peek-message',
      peekArgs(encode.string('1'), encode.int(1)),
      400,
      'com.microsoft:argument-error',
    ],
    [
      'a peek of a long',
      'q',
      'peek-message',
      peekArgs(encode.long(1n), encode.long(1n)),
      400,
      'com.microsoft:argument-error',
    ],
    [
      'a peek of a uint',
      'q',
      'peek-message',
      peekArgs(encode.long(1n), encode.uint(1)),
      400,
      'com.microsoft:argument-error',
    ],
    [
      'numbers that are ints',
      'q',
      'receive-by-sequence-number',
      { 'sequence-numbers': encodeList([encode.int(1)]), 'receiver-settle-mode': encode.uint(1) },
      400,
      'com.microsoft:argument-error',
    ],
    [
      'rules by longs',
      't/Subscriptions/s',
      'enumerate-rules',
      { skip: encode.long(0n), top: encode.int(1) },
      400,
      'com.microsoft:argument-error',
    ],
    ['a renewal without tokens', 'q', 'renew-lock', {}, 400, 'com.microsoft:argument-error'],
    ['a renewal of numbers', 'q', 'renew-lock', { 'lock-tokens': longs(1) }, 400, 'com.microsoft:argument-error'],
    [
      'a renewal of no lock',
      'q',
      'renew-lock',
      { 'lock-tokens': uuids(['00112233-4455-6677-8899-aabbccddeeff']) },
      410,
      'com.microsoft:message-lock-lost',
    ],
    [
      'numbers that are text',
      'q',
      'receive-by-sequence-number',
      { 'sequence-numbers': encode.string('1') },
      400,
      'com.microsoft:argument-error',
    ],
    [
      'an unknown status',
      'q',
      'update-disposition',
      { 'disposition-status': encode.string('lost') },
      400,
      'com.microsoft:argument-error',
    ],
    ['a session', 'q', 'peek-message', { 'session-id': encode.string('s') }, 501, 'amqp:not-implemented'],
  ])('is answered clearly: %s', async (_, entity, operation, args, status, condition) => {
    expect(await raw.manage(entity, operation, args as Record<string, Buffer>)).toMatchObject({ status, condition });
  });

  it('with a body that is no map is answered with 400', async () => {
    const application = { operation: encode.string('com.microsoft:peek-message') };
    const answer = await raw.request('q/$management', { application, body: encode.string('text') });
    expect(answer.status).toBe(400);
  });

  it('that cannot be answered is rejected', async () => {
    const sender = await raw.sender('q/$management');
    expect(await raw.sent(sender, dataSection('x'))).toBe('amqp:invalid-field');
    expect(await raw.sent(sender, Buffer.from('garbage'))).toBe('amqp:decode-error');
  });

  it('to an unknown entity finds no node, and from a topic it gets no messages', async () => {
    await expect(raw.sender('nowhere/$management')).rejects.toMatchObject({ condition: 'amqp:not-found' });
    const args = { 'from-sequence-number': encode.long(1n), 'message-count': encode.int(1) };
    expect(await raw.manage('t', 'peek-message', args)).toMatchObject({ status: 400, condition: 'amqp:not-allowed' });
    await expect(raw.receiver('nowhere/$management', 1)).rejects.toMatchObject({ condition: 'amqp:not-found' });
  });
});

describe('a lock token', () => {
  it('is a delivery tag in another byte order', () => {
    const guid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
    expect(swapGuid(guid).toString('hex')).toBe('33221100554477668899aabbccddeeff');
    expect(swapGuid(swapGuid(guid))).toEqual(guid);
  });
});
