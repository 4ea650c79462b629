import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OfficeProcess, startOfficeProcess } from '../harness/host.ts';

const keys = { master: 'the-master', host: 'the-host', functions: { forFunction: 'its-own' } };
let host: OfficeProcess;

beforeAll(async () => {
  host = await startOfficeProcess({
    root: 'test/host/fixtures/http',
    entry: 'index.ts',
    keys,
    settings: {
      FIXTURE_VALUE: 'given',
      'AzureWebJobs.switchedOff.Disabled': 'true',
      FUNCTIONS_REQUEST_BODY_SIZE_LIMIT: '1000',
    },
  });
});
afterAll(() => host.stop());

describe('routes', () => {
  it.each([
    ['/api/items/newest', 'literal', {}],
    ['/api/ITEMS/Newest', 'literal', {}],
    ['/api/items/42', 'constrained', { id: '42' }],
    ['/api/items/99999999999', 'parameter', { id: '99999999999' }],
    ['/api/items/a%20b%2Fc', 'parameter', { id: 'a b%2Fc' }],
    ['/api/items/a/b', 'catchAll', { rest: 'a/b' }],
    ['/api/items', 'catchAll', {}],
    ['/api/pages', 'optional', {}],
    ['/api/pages/3/', 'optional', { number: '3' }],
  ])('GET %s reaches %s', async (path, name, params) => {
    const { status, json } = await host.call('GET', path);
    expect({ status, json }).toMatchObject({ status: 200, json: { name, params } });
  });

  it('take the function name when none is given', async () => {
    expect((await host.call('POST', '/api/unrouted', { body: 'x' })).json).toMatchObject({
      name: 'unrouted',
      body: 'x',
    });
  });

  it('share a path between functions of different methods', async () => {
    expect((await host.call('GET', '/api/split/1')).json).toMatchObject({ name: 'readItem' });
    expect((await host.call('DELETE', '/api/split/1')).json).toMatchObject({ name: 'removeItem' });
  });

  it('answer 404, not 405, to another method, and HEAD only where it is registered', async () => {
    expect((await host.call('PUT', '/api/split/1')).status).toBe(404);
    expect((await host.call('HEAD', '/api/split/1')).status).toBe(404);
    expect(await host.call('HEAD', '/api/headed')).toMatchObject({ status: 200, text: '' });
  });

  it.each(['/', '/api', '/api/unknown', '/items/1', '/admin', '/api/pages/1/2'])('do not know %s', async (path) => {
    expect((await host.call('GET', path)).status).toBe(path === '/admin' ? 401 : 404);
  });

  it('are listed with prefix, methods and level', () => {
    expect(host.functions).toContainEqual({
      name: 'forAdmin',
      type: 'httpTrigger',
      route: 'api/forAdmin',
      methods: ['GET'],
      authLevel: 'admin',
    });
  });
});

describe('a request', () => {
  it('reaches the function whole', async () => {
    const answer = await host.call('POST', '/api/unrouted?a=1&a=2&b=%C3%A9&empty=', {
      body: { text: 'ä' },
      headers: { traceparent: '00-11111111111111111111111111111111-2222222222222222-01' },
    });
    expect(answer.json).toEqual({
      name: 'unrouted',
      method: 'POST',
      url: `${host.url}/api/unrouted?a=1&a=2&b=%C3%A9&empty=`,
      query: { a: '1,2', b: 'é', empty: '' },
      params: {},
      contentType: 'application/json',
      body: '{"text":"ä"}',
      traceParent: '00-11111111111111111111111111111111-2222222222222222-01',
    });
  });

  it('is refused when its body is over the limit', async () => {
    expect((await host.call('POST', '/api/unrouted', { body: 'x'.repeat(1000) })).status).toBe(200);
    expect((await host.call('POST', '/api/unrouted', { body: 'x'.repeat(1001) })).status).toBe(413);
  });

  it.each([
    'nonsense\r\n\r\n',
    'GET /api/items/%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    'GET http:// HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    'GET /api/items/1 HTTP/1.1\r\nhost: [\r\nconnection: close\r\n\r\n',
  ])('that is garbage is answered with 400: %j', async (request) => {
    const { hostname, port } = new URL(host.url);
    const socket = connect(Number(port), hostname);
    socket.write(request);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('a response', () => {
  it('keeps bytes and content type', async () => {
    const answer = await fetch(`${host.url}/api/binary`);
    expect(answer.headers.get('content-type')).toBe('image/x-test');
    expect([...new Uint8Array(await answer.arrayBuffer())]).toEqual([0, 255, 128, 10]);
  });

  it('may be a stream', async () => {
    const answer = await host.call('GET', '/api/streamed');
    expect([answer.text, answer.headers.get('x-kind')]).toEqual(['one two', 'stream']);
  });

  it('carries status, JSON, headers and cookies', async () => {
    const answer = await host.call('GET', '/api/created');
    expect(answer).toMatchObject({ status: 201, json: { id: 7 } });
    expect(answer.headers.get('location')).toBe('/api/items/7');
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.getSetCookie()).toEqual(['seen=a%20b; Max-Age=60; HttpOnly; SameSite=Strict']);
  });

  it.each(['/api/nothing', '/api/gone'])('without content is 204: %s', async (path) => {
    expect(await host.call('GET', path)).toMatchObject({ status: 204, text: '' });
  });

  it('of a function that throws is an empty 500, and the log has the reason', async () => {
    expect(await host.call('GET', '/api/throws')).toMatchObject({ status: 500, text: '' });
    await expect.poll(() => host.log()).toMatch(/error \[throws\] failed: secret reason/);
  });
});

describe('keys', () => {
  const noOwn = {
    forFunction: [401, 200, 200, 401],
    alsoForFunction: [401, 200, 200, 401],
    forAdmin: [401, 401, 200, 401],
  };
  it.each(Object.entries(noOwn))('of %s: none, host, master and a wrong one', async (name, expected) => {
    const given = [undefined, keys.host, keys.master, 'wrong'];
    const answers = given.map((key) => host.call('GET', `/api/${name}`, key ? { key } : {}));
    expect((await Promise.all(answers)).map((answer) => answer.status)).toEqual(expected);
  });

  it('of one function open no other', async () => {
    expect((await host.call('GET', '/api/forFunction', { key: 'its-own' })).status).toBe(200);
    expect((await host.call('GET', '/api/alsoForFunction', { key: 'its-own' })).status).toBe(401);
    expect((await host.call('GET', '/api/forAdmin', { key: 'its-own' })).status).toBe(401);
  });

  it('may come as the query parameter code, and the header wins', async () => {
    expect((await host.call('GET', '/api/forFunction?code=the-host')).status).toBe(200);
    expect((await host.call('GET', '/api/forFunction?code=the-host', { key: 'wrong' })).status).toBe(401);
  });

  it('that are wrong do not close an anonymous function', async () => {
    expect((await host.call('GET', '/api/items/1', { key: 'wrong' })).status).toBe(200);
  });

  it('are made up for functions that were given none', () => {
    expect(host.keys).toMatchObject(keys);
    expect(host.keys.functions.alsoForFunction).toMatch(/^[\w-]{50,}$/);
  });

  it('but the master do not reach a function that is switched off', async () => {
    expect((await host.call('GET', '/api/switchedOff')).status).toBe(404);
    expect((await host.call('GET', '/api/switchedOff', { key: keys.host })).status).toBe(404);
    expect((await host.call('GET', '/api/switchedOff', { key: keys.master })).status).toBe(200);
  });
});

describe('the process', () => {
  it('gives the app its settings and makes its folder the current one', async () => {
    const { json } = await host.call('GET', '/api/setting');
    expect(json).toEqual({ value: 'given', cwd: expect.stringMatching(/test\/host\/fixtures\/http$/) });
  });

  it('answers the requests under way before it stops', async () => {
    const other = await startOfficeProcess({ root: 'test/host/fixtures/http', entry: 'index.ts' });
    const answer = other.call('GET', '/api/slowly');
    await expect.poll(() => other.log()).toContain('slowly began');
    expect(await other.stop()).toBe(0);
    expect(await answer).toMatchObject({ status: 200, text: 'done' });
  });

  it('sends what the app prints to the log', async () => {
    await host.call('GET', '/api/prints');
    await expect.poll(() => host.log()).toContain('printed by the app');
  });
});
