import type { ServiceBusClient } from '@azure/service-bus';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkSasToken, covers, pathOf } from '../../local/broker/sas.ts';
import { encode } from '../../shared/brokers/serviceBus/amqp.ts';
import { Bench, dataSection } from './harness.ts';
import { RawClient, signToken } from './raw-client.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start({ q: {}, other: {}, 'q/nested': {} });
});
afterAll(() => bench.close());

const resource = (path: string) => `sb://127.0.0.1:${bench.broker.port}/${path}`;

describe('a client', () => {
  it.each([
    ['a wrong key', (text: string) => text.replace(/SharedAccessKey=[^;]*/, 'SharedAccessKey=d3Jvbmc=')],
    ['an unknown key name', (text: string) => text.replace(/SharedAccessKeyName=[^;]*/, 'SharedAccessKeyName=Other')],
  ])('with %s is not let in', async (_, change) => {
    const client = bench.client(3000, change(bench.broker.connectionString));
    await expect(client.createSender('q').sendMessages({ body: 1 })).rejects.toMatchObject({
      code: 'UnauthorizedAccess',
    });
    expect(bench.broker.messages('q')).toEqual([]);
  });

  it('with the address as localhost is let in', async () => {
    const client = bench.client(3000, bench.broker.connectionString.replace('127.0.0.1', 'localhost'));
    await client.createSender('other').sendMessages({ body: 1 });
  });

  it('without any token is refused every link, whatever it asks for', async () => {
    const raw = await RawClient.connect(bench.broker, false);
    for (const open of [
      () => raw.sender('q'),
      () => raw.receiver('q', 1),
      () => raw.sender('q/$management'),
      () => raw.receiver('q/$management', 1),
      () => raw.sender('nowhere'),
    ]) {
      await expect(open()).rejects.toMatchObject({ condition: 'amqp:unauthorized-access' });
    }
    raw.close();
  });

  it('reaches what its token covers and nothing else', async () => {
    const raw = await RawClient.connect(bench.broker, false);
    expect(await raw.putToken('q', signToken(bench.broker, resource('Q')))).toMatchObject({ status: 202 });
    const sender = await raw.sender('q');
    expect(await raw.sent(sender, dataSection('x'))).toBe('accepted');
    await raw.sender('q/$management');
    await raw.receiver('q/$DeadLetterQueue', 1);
    await expect(raw.sender('other')).rejects.toMatchObject({ condition: 'amqp:unauthorized-access' });
    raw.close();
    bench.broker.recreate('q');
  });

  it('is told why a token is not taken', async () => {
    const raw = await RawClient.connect(bench.broker, false);
    const { broker } = bench;
    const refusals = [
      await raw.putToken('q', signToken(broker, resource('q'), -1)),
      await raw.putToken('q', signToken(broker, resource('q'), 60, 'wrong')),
      await raw.putToken('q', signToken(broker, resource('other'))),
      await raw.putToken('q', 'SharedAccessSignature nonsense'),
      await raw.putToken('q', 'nonsense'),
      await raw.putToken('q', signToken(broker, resource('q')), 'jwt'),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401]);
    expect(refusals.map(({ condition }) => condition)).toEqual(Array(6).fill('amqp:unauthorized-access'));
    expect(refusals.map(({ description }) => description)).toEqual([
      'The token is expired.',
      'The token has an invalid signature.',
      expect.stringContaining('does not cover'),
      'The token lacks a valid sr, sig, se or skn.',
      'The token is not a shared access signature.',
      expect.stringContaining("'jwt'"),
    ]);
    const other = await raw.request('$cbs', {
      application: { operation: encode.string('delete-token') },
      body: encode.null(),
    });
    expect(other.status).toBe(501);
    await expect(raw.sender('q')).rejects.toMatchObject({ condition: 'amqp:unauthorized-access' });
    raw.close();
  });

  it("keeps its access when the broker's clock moves: tokens follow the real time", async () => {
    bench.broker.clock.advance(24 * 3_600_000);
    const client: ServiceBusClient = bench.client();
    await client.createSender('q').sendMessages({ body: 1 });
    bench.broker.recreate('q');
  });
});

describe('a shared access signature', () => {
  const key = { name: 'key', key: 'secret' };

  it('is found wrong whichever of its parts is changed', () => {
    // Signed once by hand: HMAC-SHA256('secret', 'sb%3A%2F%2Fhost%2Fq\n2000000000').
    const token = (part: (text: string) => string = (text) => text) =>
      part(`SharedAccessSignature sr=sb%3A%2F%2Fhost%2Fq&sig=${encodeURIComponent(SIGNATURE)}&se=2000000000&skn=key`);
    expect(checkSasToken(token(), key, 0)).toEqual({ scope: 'q', expiresAt: 2_000_000_000_000 });
    expect(checkSasToken(token(), key, 2_000_000_000_000)).toEqual({ refusal: 'The token is expired.' });
    for (const [from, to] of [
      ['%2Fq&', '%2Fr&'],
      ['se=2', 'se=3'],
      ['skn=key', 'skn=kez'],
      ['sig=', 'sig=A'],
    ] as const) {
      expect(
        checkSasToken(
          token((text) => text.replace(from, to)),
          key,
          0,
        ),
      ).toHaveProperty('refusal');
    }
    expect(
      checkSasToken(
        token((text) => text.replace('sig=', 'sig=%ZZ')),
        key,
        0,
      ),
    ).toHaveProperty('refusal');
  });

  it('covers its path and what lies below it', () => {
    expect(pathOf('sb://host:5672/Team/Orders/')).toBe('team/orders');
    expect(pathOf('sb://host')).toBe('');
    expect([
      covers('', 'q'),
      covers('q', 'q'),
      covers('q', 'q/$management'),
      covers('q', 'queue'),
      covers('q/a', 'q'),
    ]).toEqual([true, true, true, false, false]);
  });
});

const SIGNATURE = 'f2KGwYVizX+eQzo5o6g8f0Kwzrakm+NAuhJtSYaRZlc=';
