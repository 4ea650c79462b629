import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResendChange } from '../../../shared/brokers/broker.ts';
import { openEnvelope, sealEnvelope } from '../../../shared/brokers/rabbitmq/envelope.ts';
import { encodeField, fieldsOf, type RawField, readField } from '../../../shared/brokers/rabbitmq/fieldTable.ts';
import {
  encodeHeaders,
  encodeShortText,
  headersOf,
  readProperties,
  shortText,
  writeProperties,
} from '../../../shared/brokers/rabbitmq/properties.ts';
import { readLetter } from '../../../shared/brokers/rabbitmq/readLetter.ts';
import { reset } from '../../../shared/brokers/rabbitmq/reset.ts';
import { randomHeaders } from '../../harness/randomFields.ts';
import { NOW, NUMBER, PLAN_ID } from '../../harness/values.ts';

const CHANGE: ResendChange = { replayCount: 1, replayedAt: NOW, planId: PLAN_ID, replayOf: NUMBER, bypass: false };
const PUBLISHER = { user: 'office' };

const field = (type: string, body: Buffer) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(body.length);
  return Buffer.concat([Buffer.from(type), size, body]);
};
const named = (name: string, value: Buffer) => Buffer.concat([Buffer.of(name.length), Buffer.from(name), value]);
const time = (seconds: bigint) => {
  const bytes = Buffer.from('T........');
  bytes.writeBigUInt64BE(seconds, 1);
  return bytes;
};

/** The header of deaths, newest first. */
function deaths(...entries: Buffer[][]): Buffer {
  return named('x-death', field('A', Buffer.concat(entries.map((entry) => field('F', Buffer.concat(entry))))));
}

function message(
  headers: readonly Buffer[],
  more: readonly (readonly ['messageId' | 'userId' | 'expiration', string])[] = [],
) {
  const properties = new Map<Parameters<typeof shortText>[1], Buffer>([['headers', encodeHeaders(headers)]]);
  for (const [name, text] of more) properties.set(name, encodeShortText(text));
  return sealEnvelope({
    exchange: Buffer.from('dlx'),
    routingKey: Buffer.from('orders'),
    properties: writeProperties(properties),
    body: Buffer.from('{}'),
  });
}

const headersAfter = (bytes: Buffer): RawField[] => headersOf(readProperties(bytes));
const namesAfter = (bytes: Buffer) => headersAfter(bytes).map(({ name }) => name);

describe('what a replay changes on a message of RabbitMQ', () => {
  it('is headers of deaths and deliveries, and copies to elsewhere', () => {
    const gone = [
      'x-death',
      'x-first-death-queue',
      'x-last-death-reason',
      'x-delivery-count',
      'x-acquired-count',
      'CC',
      'BCC',
    ];
    const kept = ['x-tenant', 'xdeath', 'x-match', 'x-retries', 'cc'];
    const { properties } = reset(message([...gone, ...kept].map((name) => encodeField(name, 'v'))), CHANGE, PUBLISHER);
    expect(namesAfter(properties)).toEqual([
      ...kept,
      'dlq-replay-count',
      'dlq-replayed-at',
      'dlq-replay-id',
      'dlq-replay-of',
    ]);
  });

  it('leaves every other header its bytes, whatever type it has', () => {
    fc.assert(
      fc.property(randomHeaders, (headers) => {
        const { properties } = reset(message([headers]), CHANGE, PUBLISHER);
        const after = headersAfter(properties).map(({ bytes }) => bytes);
        expect(Buffer.concat(after.slice(0, -4)).equals(headers)).toBe(true);
      }),
    );
  });

  it('counts in one header, however often it was sent back before and by whom', () => {
    const before = message([
      encodeField('dlq-replay-count', 2),
      encodeField('x-replay-count', 4),
      encodeField('dlq-replay-id', 'a'),
    ]);
    expect(readLetter(before, NUMBER, NOW).replay.count).toBe(4);
    const { properties, body } = reset(before, { ...CHANGE, replayCount: 5 }, PUBLISHER);
    const after = sealEnvelope({ exchange: Buffer.alloc(0), routingKey: Buffer.from('orders'), properties, body });
    expect(readLetter(after, NUMBER, NOW).replay).toEqual({
      count: 5,
      planId: PLAN_ID,
      of: NUMBER,
      at: Math.floor(NOW / 1000) * 1000,
    });
    expect(namesAfter(properties).filter((name) => name.includes('count'))).toEqual(['dlq-replay-count']);
  });

  it('gives back the time to live that the broker took off at its first death, or the one that was chosen', () => {
    const expired = message([
      deaths(
        [named('queue', field('S', Buffer.from('retry')))],
        [named('original-expiration', field('S', Buffer.from('60000'))), named('time', time(1_700_000_000n))],
      ),
    ]);
    const ttl = (timeToLive?: number | 'drop') =>
      shortText(
        readProperties(reset(expired, { ...CHANGE, ...(timeToLive && { timeToLive }) }, PUBLISHER).properties),
        'expiration',
      )?.toString();
    expect([ttl(), ttl(5000), ttl('drop')]).toEqual(['60000', '5000', undefined]);
    expect(readLetter(expired, NUMBER, NOW)).toMatchObject({ timeToLive: 60_000, enqueuedAt: 1_700_000_000_000 });
  });

  it('keeps a user id that the office publishes with, and notes another one', () => {
    const user = (name: string) => {
      const { properties } = reset(message([], [['userId', name]]), CHANGE, PUBLISHER);
      const noted = headersAfter(properties).find((one) => one.name === 'dlq-original-user-id');
      return [shortText(readProperties(properties), 'userId')?.toString(), noted && readField(noted.value).value];
    };
    expect(user('office')).toEqual(['office', undefined]);
    expect(user('shop')).toEqual([undefined, 'shop']);
  });

  it('keeps the first id beside a new one', () => {
    const once = reset(message([], [['messageId', 'm-1']]), { ...CHANGE, newMessageId: 'n-1' }, PUBLISHER);
    const again = sealEnvelope({ exchange: Buffer.alloc(0), routingKey: Buffer.from('q'), ...once });
    const { properties } = reset(again, { ...CHANGE, newMessageId: 'n-2' }, PUBLISHER);
    expect(shortText(readProperties(properties), 'messageId')?.toString()).toBe('n-2');
    const noted = headersAfter(properties).filter(({ name }) => name === 'dlq-original-message-id');
    expect(noted.map(({ value }) => readField(value).value)).toEqual(['m-1']);
  });
});

describe('reading a letter of RabbitMQ', () => {
  it('never throws, and refuses to send back what cannot be taken apart', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const broken = sealEnvelope({
          exchange: Buffer.alloc(0),
          routingKey: Buffer.from('q'),
          properties: Buffer.from(bytes),
          body: Buffer.from('x'),
        });
        const letter = readLetter(broken, NUMBER, NOW);
        expect(letter.body.bytes).toBe(1);
        expect(openEnvelope(broken).properties.equals(bytes)).toBe(true);
      }),
    );
    expect(() =>
      reset(
        sealEnvelope({
          exchange: Buffer.alloc(0),
          routingKey: Buffer.alloc(0),
          properties: Buffer.from('ffff', 'hex'),
          body: Buffer.alloc(0),
        }),
        CHANGE,
        PUBLISHER,
      ),
    ).toThrow(expect.objectContaining({ code: 'DLO_NOT_RESENDABLE' }));
  });

  it('shows every header as JSON can carry it', () => {
    const wide = encodeField('wide', 2n ** 62n + 1n);
    const odd = named('odd', field('S', Buffer.from('ff00', 'hex')));
    const { properties } = readLetter(
      message([wide, odd, deaths([named('reason', field('S', Buffer.from('rejected')))])]),
      NUMBER,
      NOW,
    );
    expect(properties).toEqual([
      { name: 'wide', type: 'long', value: '4611686018427387905' },
      { name: 'odd', type: 'binary', value: '/wA=' },
      { name: 'x-death', type: 'array', value: '[{"reason":"rejected"}]' },
    ]);
    expect(fieldsOf(wide)).toHaveLength(1);
  });
});
