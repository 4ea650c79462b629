import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import rhea from 'rhea';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { encode, encodeList } from '../../shared/brokers/serviceBus/amqp.ts';
import { Bench, dataSection, peekAll } from './harness.ts';
import { RawClient } from './raw-client.ts';

let bench: Bench;
const log: string[] = [];

beforeAll(async () => {
  bench = await Bench.start({ q: {} }, {}, { log: (line) => log.push(line) });
});
afterEach(async () => {
  // Whatever a peer did: everybody else is served as before.
  await bench.client().createSender('q').sendMessages({ body: 1 });
  expect(await peekAll(bench.client().createReceiver('q'))).toHaveLength(1);
  bench.broker.recreate('q');
});
afterAll(() => bench.close());

const SASL_HEADER = Buffer.from('414d515003010000', 'hex');
const AMQP_HEADER = Buffer.from('414d515000010000', 'hex');

function frame(body: Buffer, type = 0, channel = 0): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.writeUInt8(2, 4);
  head.writeUInt8(type, 5);
  head.writeUInt16BE(channel, 6);
  return Buffer.concat([head, body]);
}

function performative(code: number, fields: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0x00, 0x53, code]), encodeList(fields)]);
}

const saslInit = frame(performative(0x41, [encode.symbol('ANONYMOUS')]), 1);
const open = (maxFrameSize = 65_536) =>
  frame(performative(0x10, [encode.string('peer'), encode.null(), encode.uint(maxFrameSize)]));
const begin = frame(performative(0x11, [encode.null(), encode.uint(0), encode.uint(100), encode.uint(100)]));

async function dial(): Promise<Socket> {
  const socket = connect(bench.broker.port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Connects through SASL, as far as `open`. */
async function dialAmqp(): Promise<Socket> {
  const socket = await dial();
  socket.write(Buffer.concat([SASL_HEADER, saslInit]));
  // The outcome frame follows the mechanisms: sixteen bytes that end in its code.
  let seen = Buffer.alloc(0);
  while (!seen.includes(Buffer.from('005344', 'hex'))) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    seen = Buffer.concat([seen, chunk]);
  }
  socket.write(AMQP_HEADER);
  return socket;
}

async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await once(socket, 'close');
}

describe('a peer', () => {
  it.each([
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\nHost: broker\r\n\r\n')],
    ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919 + 13) % 256))],
    ['no SASL', Buffer.concat([AMQP_HEADER, open()])],
    ['a SASL frame of two gigabytes', Buffer.concat([SASL_HEADER, Buffer.from('7fffffff02010000', 'hex')])],
    ['a frame of no bytes', Buffer.concat([SASL_HEADER, Buffer.alloc(16)])],
  ])('that speaks %s is cut off', async (_, bytes) => {
    const socket = await dial();
    socket.write(bytes);
    await closed(socket);
  });

  it.each([
    ['a frame beyond the agreed size', Buffer.from('0002000002000000', 'hex')],
    [
      'an array of four billion nulls',
      frame(Buffer.concat([Buffer.from('005310', 'hex'), encodeList([Buffer.from('f000000005ffffffff40', 'hex')])])),
    ],
    ['a list with more items than bytes', frame(Buffer.from('005310d000000004ffffffff', 'hex'))],
    ['an unknown performative', frame(performative(0x7f, []))],
    ['a transfer before any session', Buffer.concat([open(), frame(performative(0x14, [encode.uint(0)]))])],
    [
      'a transfer on no link',
      Buffer.concat([open(), begin, frame(performative(0x14, [encode.uint(7), encode.uint(0)]))]),
    ],
    ['two opens', Buffer.concat([open(), open()])],
    ['frames of ten bytes at most, which rhea would split messages into for ever', open(10)],
    ['a truncated performative', frame(Buffer.from('005310c0ff', 'hex'))],
  ])('that sends %s is cut off', async (_, bytes) => {
    const socket = await dialAmqp();
    socket.write(bytes);
    await closed(socket);
  });

  it('that settles four billion deliveries costs nothing', async () => {
    const socket = await dialAmqp();
    const all = [encode.boolean(true), encode.uint(0), encode.uint(0xffff_ffff), encode.boolean(true)];
    socket.write(Buffer.concat([open(), begin, frame(performative(0x15, all))]));
    await peekAll(bench.client().createReceiver('q'));
    socket.destroy();
  });

  it('that sends half a frame and leaves is forgotten', async () => {
    const socket = await dialAmqp();
    socket.write(open().subarray(0, 10));
    socket.destroy();
    await closed(socket);
  });

  it('sending damaged frames at random never harms the others', async () => {
    const good = Buffer.concat([
      open(),
      begin,
      frame(performative(0x12, [encode.string('l'), encode.uint(0), encode.boolean(false)])),
    ]);
    let seed = 7;
    const random = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * limit);
    };
    const sockets = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = await dialAmqp();
        const damaged = Buffer.from(good);
        for (let i = 0; i < 3; i++) damaged[random(damaged.length)] = random(256);
        socket.write(damaged);
        return socket;
      }),
    );
    await peekAll(bench.client().createReceiver('q'));
    for (const socket of sockets) socket.destroy();
  });
});

describe('an authorised client', () => {
  it('that asks for a transaction, a dynamic node or no node is refused the link only', async () => {
    const raw = await RawClient.connect(bench.broker);
    const connection = raw.connection;
    const refused = connection.open_sender({ target: { dynamic: true, address: '' } } as never);
    const [context] = await once(refused, 'sender_error');
    expect(context.sender.error.condition).toBe('amqp:not-implemented');
    expect(await raw.sent(await raw.sender('q'), dataSection('x'))).toBe('accepted');
    bench.broker.recreate('q');
    raw.close();
  });

  it('that asks for a filter is refused: an unfiltered stream would be a lie', async () => {
    const raw = await RawClient.connect(bench.broker);
    const filter = rhea.filter.selector("colour = 'red'");
    const receiver = raw.connection.open_receiver({ source: { address: 'q', filter } });
    const [context] = await once(receiver, 'receiver_error');
    expect(context.receiver.error).toMatchObject({
      condition: 'amqp:not-implemented',
      description: expect.stringContaining('filter'),
    });
    raw.close();
  });

  it('that sends messages in many frames far beyond the limit is refused, and can go on', async () => {
    const raw = await RawClient.connect(bench.broker);
    const sender = await raw.sender('q');
    expect(await raw.sent(sender, dataSection(Buffer.alloc(3_000_000)))).toBe('amqp:link:message-size-exceeded');
    expect(await raw.sent(sender, dataSection('x'))).toBe('accepted');
    bench.broker.recreate('q');
    raw.close();
  });

  it('leaves a line in the log when its connection ends in an error', () => {
    expect(log.length).toBeGreaterThan(10);
    expect(log.every((line) => line.startsWith('connection closed: '))).toBe(true);
  });
});
