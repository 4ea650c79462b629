/** Messages sent exactly as they are encoded, and what arrives. */

import type { ServiceBusMessage } from '@azure/service-bus';
import type { EncodedMessage } from '../../../shared/brokers/broker.ts';
import { readLetter } from '../../../shared/brokers/serviceBus/readLetter.ts';
import { BODIES, CODE, data, messageOf, PROPERTY_VALUES, types } from '../../harness/typedMessage.ts';
import { type Belief, see, seeThat } from '../belief.ts';
import type { Context } from '../context.ts';
import { deadLetterNext, lettersOf, next, note, notes, receiveOne, START, withSender } from '../mail.ts';
import { applicationOf, decoded, differences, kept, propertiesOf } from '../wire.ts';

const PLAIN = { entities: ['plain'] } as const;
const MESSAGE_ID = 0;
/** The types that .NET and Java write of their own accord; decimal32, decimal64 and others no client of Microsoft's has. */
const RARE = ['null', 'decimal32', 'decimal64', 'decimal128', 'symbol', 'symbolLong'];
const ARRIVES = 'Microsoft, "AMQP 1.0 in Azure Service Bus and Event Hubs protocol guide"';

export const sending: readonly Belief[] = [
  {
    id: 'B40',
    belief:
      'A message sent raw arrives byte for byte: properties, application properties, body, footer, foreign annotations.',
    source: ARRIVES,
    needs: PLAIN,
    async check(context) {
      const now = Date.now();
      const original = messageOf({
        header: [types.True(), types.Ubyte(7), types.Uint(3_000_000)],
        messageAnnotations: [
          ['x-opt-partition-key', types.Str8('session')],
          ['x-opt-jms-msg-type', types.Byte(5)],
          ['x-strange', types.Ulong(7)],
        ],
        properties: [
          types.Str8(context.id('a')),
          types.Vbin8(Buffer.from([0, 255])),
          types.Str8('to'),
          types.Str8('subject'),
          types.Str8('reply'),
          types.Str8('correlation'),
          types.Sym8('application/octet-stream'),
          types.Sym8('gzip'),
          types.Timestamp(now + 3_000_000),
          types.Timestamp(now),
          types.Str8('session'),
          types.SmallUint(4),
          types.Str8('reply-session'),
        ],
        applicationProperties: [['n', types.Int(5)]],
        body: [data(Buffer.from([0, 255, 128]))],
        footer: [['x-foot', types.Int(1)]],
      });
      await seeArriving(context, [original]);
    },
  },
  {
    id: 'B41',
    belief:
      'A raw batch of exact messages is accepted in one transfer, and each arrives byte for byte, in the order given.',
    source: 'seen on the wire of the client (message format 0x80013700)',
    needs: PLAIN,
    async check(context) {
      const originals = notes(context, 3, { properties: [['n', types.Int(5)]] });
      see('the send', await context.trySend(context.path('plain'), originals), { kind: 'accepted' });
      await seeArrived(context, originals);
    },
  },
  {
    id: 'B42',
    belief:
      'Every type that .NET and Java give an application property is the same type when it arrives, also after dying.',
    source: 'Microsoft, "Service Bus messages, payloads, and serialization"',
    needs: PLAIN,
    async check(context) {
      const common = Object.entries(PROPERTY_VALUES).filter(([name]) => !RARE.includes(name));
      await seeArriving(context, [note(context.id('a'), { properties: common })]);
    },
  },
  {
    id: 'B43',
    belief: 'So do null, symbols and decimals.',
    source: 'OASIS AMQP 1.0, part 3, application-properties; not documented by Microsoft',
    needs: PLAIN,
    async check(context) {
      const rare = Object.entries(PROPERTY_VALUES).filter(([name]) => RARE.includes(name));
      await seeArriving(context, [note(context.id('a'), { properties: rare })]);
    },
  },
  {
    id: 'B44',
    belief: 'A body arrives in the sections it was sent in: one data section, several, value, or sequences.',
    source: ARRIVES,
    needs: PLAIN,
    async check(context) {
      const all = Object.entries(BODIES);
      await seeArriving(
        context,
        all.map(([name, body]) => note(context.id(name), { body })),
      );
    },
  },
  {
    id: 'B45',
    belief: 'A message sent without an id is given one by the broker, the same at every reading and after dying.',
    source:
      'Microsoft, "Service Bus messages, payloads, and serialization"; seen with the client, which cannot do without',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      await context.send(path, messageOf({ body: [data('no id')] }));
      const [alive] = await (await context.node(path)).peek(START, 1, true);
      const id = decoded(propertiesOf(alive ?? Buffer.alloc(0))[MESSAGE_ID]);
      seeThat('id', typeof id === 'string' && id.length > 0, id);
      await deadLetterNext(context, path, 1);
      const [dead] = await lettersOf(context, path, 1);
      see('id after dying', dead?.letter.messageId, id);
    },
  },
  {
    id: 'B46',
    belief:
      'Trap: what the official JavaScript client receives and sends again has other types: an int arrives as a uint.',
    source: 'azure-sdk-for-js#13975, azure-sdk-for-js#23809, azure-service-bus#567',
    needs: { entities: ['plain', 'spare'] },
    async check(context) {
      const properties = ['int', 'long', 'doubleWhole', 'float', 'uuid'].flatMap((name) => {
        const value = PROPERTY_VALUES[name];
        return value ? [[name, value] as const] : [];
      });
      await context.send(context.path('plain'), note(context.id('a'), { properties }));
      const received = await receiveOne(context, context.receiver(context.path('plain')));
      await withSender(context, context.path('spare'), (sender) => sender.sendMessages(received as ServiceBusMessage));
      const [arrived] = await (await context.node(context.path('spare'))).peek(START, 1, true);
      const typesOf = [...applicationOf(arrived ?? Buffer.alloc(0))].map(([name, hex]) => [name, hex.slice(0, 2)]);
      // Constructor codes: 52 small uint, a0 binary, 82 double.
      const believed = { int: '52', long: 'a0', doubleWhole: '52', float: '82', uuid: 'a0' };
      see('constructors', Object.fromEntries(typesOf), believed);
    },
  },
  {
    id: 'B47',
    belief: 'A sender learns from the link how large a transfer may be.',
    source: 'seen on the wire of the client (max-message-size of the attach)',
    needs: PLAIN,
    async check(context) {
      const link = await context.senderLink(context.path('plain'));
      seeThat('max-message-size', (link.maxBytes ?? 0) >= 262_144, link.maxBytes);
    },
  },
  {
    id: 'B48',
    belief: 'A message beyond that is refused as too large, for sure and not as unknown, and nothing is stored.',
    source: 'Microsoft, "Service Bus quotas"; azure-sdk-for-net#25381',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      const link = await context.senderLink(path);
      const body = [data(Buffer.alloc((link.maxBytes ?? 262_144) + 1_000))];
      const outcome = await link.transfer(note(context.id('a'), { body }), false, 30_000);
      see('outcome', [outcome.kind, 'code' in outcome && outcome.code], ['refused-message', TOO_LARGE]);
      see('stored', (await (await context.node(path)).peek(START, 1, false)).length, 0);
    },
  },
  {
    id: 'B49',
    belief: 'A batch is stored as a whole or not at all: one beyond the limit stores none of its messages.',
    source: 'azure-service-bus#103 (an answer of the service team)',
    needs: PLAIN,
    async check(context) {
      const path = context.path('plain');
      const link = await context.senderLink(path);
      const half = Buffer.alloc(Math.ceil((link.maxBytes ?? 262_144) * 0.6));
      const batch = ['a', 'b'].map((id) => {
        const message = note(context.id(id), { body: [data(half)] });
        const head = Buffer.from([0x00, 0x53, CODE.data, 0xb0, 0, 0, 0, 0]);
        head.writeUInt32BE(message.length, 4);
        return Buffer.concat([head, message]);
      });
      const outcome = await link.transfer(Buffer.concat(batch), true, 30_000);
      see('outcome', outcome.kind, 'refused-message');
      see('stored', (await (await context.node(path)).peek(START, 10, false)).length, 0);
    },
  },
];

const TOO_LARGE = 'amqp:link:message-size-exceeded';

/** Sends each for itself, and sees that it arrives unchanged, alive and dead. */
async function seeArriving(context: Context, originals: readonly EncodedMessage[]): Promise<void> {
  const path = context.path('plain');
  await context.send(path, ...originals);
  await seeArrived(context, originals);
  await deadLetterNext(context, path, originals.length);
  const letters = await lettersOf(context, path, originals.length);
  compare(
    'after dying',
    originals,
    letters.map(({ message }) => message),
    ['DeadLetterReason', 'DeadLetterErrorDescription'],
  );
}

async function seeArrived(context: Context, originals: readonly EncodedMessage[]): Promise<void> {
  const node = await context.node(context.path('plain'));
  const arrived: Buffer[] = [];
  // One at a time: bodies may be heavy.
  for (let from = START; arrived.length < originals.length; ) {
    const [message] = await node.peek(from, 1, true);
    if (!message) break;
    arrived.push(message);
    from = next(readLetter(message).sequenceNumber);
  }
  compare('arrived', originals, arrived, []);
}

function compare(what: string, originals: readonly Buffer[], arrived: readonly Buffer[], added: readonly string[]) {
  see(`messages ${what}`, arrived.length, originals.length);
  const found = originals.flatMap((original, i) =>
    differences(kept(original), kept(arrived[i] ?? Buffer.alloc(0), added)),
  );
  see(`changed when ${what}`, found, []);
}
