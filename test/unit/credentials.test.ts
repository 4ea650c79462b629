import { describe, expect, it } from 'vitest';
import { readEndpoint } from '../../shared/serviceBus/credentials.ts';

const HOST = 'orders.servicebus.windows.net';
const withKey = `Endpoint=sb://${HOST}/;SharedAccessKeyName=office;SharedAccessKey=c2VjcmV0`;

describe('the connection of a namespace', () => {
  it('is made by key, with tokens for one entity that are renewed in time', async () => {
    const endpoint = readEndpoint('Bus', { Bus: withKey });
    expect(endpoint.config).toMatchObject({ endpoint: `sb://${HOST}/`, host: HOST, useDevelopmentEmulator: false });
    const token = await endpoint.tokenFor(`sb://${HOST}/orders`);
    expect(token.type).toBe('servicebus.windows.net:sastoken');
    expect(token.token).toContain(`sr=${encodeURIComponent(`sb://${HOST}/orders`)}`);
    const expiry = Number(/se=(\d+)/.exec(token.token)?.[1]) * 1000;
    expect(token.renewAt).toBeLessThan(expiry);
  });

  it('is made by a ready signature', async () => {
    const signature = 'SharedAccessSignature sr=x&sig=y&se=1&skn=office';
    const endpoint = readEndpoint('Bus', { Bus: `Endpoint=sb://${HOST}/;SharedAccessSignature=${signature}` });
    expect((await endpoint.tokenFor(`sb://${HOST}/orders`)).token).toBe(signature);
  });

  it('goes over plain TCP to the port of a development emulator', () => {
    const local =
      'Endpoint=sb://localhost:5673;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true';
    expect(readEndpoint('Bus', { Bus: local }).config).toMatchObject({
      endpoint: 'sb://localhost:5673/',
      host: 'localhost',
      port: 5673,
      useDevelopmentEmulator: true,
    });
  });

  it('is made by identity when only the host is named', () => {
    const endpoint = readEndpoint('Bus', { Bus__fullyQualifiedNamespace: HOST, Bus__clientId: 'c' });
    expect(endpoint.config).toMatchObject({ endpoint: `sb://${HOST}/`, host: HOST, useDevelopmentEmulator: false });
  });

  it.each([
    ['nothing is set', {}],
    ['the text is no connection string', { Bus: 'secret-key-in-the-wrong-place' }],
    ['there is no key', { Bus: `Endpoint=sb://${HOST}/;SharedAccessKeyName=office` }],
  ])('is refused without quoting it when %s', (_, settings) => {
    const read = () => readEndpoint('Bus', settings);
    expect(read).toThrow(expect.objectContaining({ code: 'DLO_CATALOG_INVALID' }));
    expect(read).not.toThrow(/secret|windows/);
  });
});
