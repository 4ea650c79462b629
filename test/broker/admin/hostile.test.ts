/** What nobody well-meaning sends: the administration side answers in words, and goes on. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseXml, XmlError } from '../../../local/broker/admin/xml.ts';
import { Bench } from '../harness.ts';

let bench: Bench;
beforeAll(async () => {
  bench = await Bench.start({ q: {} });
});
afterAll(() => bench.close());

const url = (path: string) => `http://127.0.0.1:${bench.broker.adminPort}/${path}`;
const bearer = { authorization: 'Bearer x' };

async function put(path: string, body: string, headers: Record<string, string> = {}) {
  const response = await fetch(url(path), { method: 'PUT', headers: { ...bearer, ...headers }, body });
  return { status: response.status, text: await response.text() };
}

function entry(content: string): string {
  return `<?xml version="1.0"?><entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">${content}</content></entry>`;
}

describe('XML', () => {
  it('is read with its names, attributes and text', () => {
    const root = parseXml(
      '<?xml version="1.0"?><!-- c --><a:r xmlns:a="u" i:type=\'x &amp; y\'>one<b/><![CDATA[<two>]]>&lt;&#65;&#x42;<!-- c --><c>t</c></a:r>\n',
    );
    expect(root.name).toBe('r');
    expect(root.attributes.get('type')).toBe('x & y');
    expect(root.text).toBe('one<two><AB');
    expect(root.children.map(({ name, text }) => [name, text])).toEqual([
      ['b', ''],
      ['c', 't'],
    ]);
  });

  it.each([
    ['<!DOCTYPE r [<!ENTITY e "x">]><r>&e;</r>', 'declarations'],
    ['<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>', 'declarations'],
    ['<r>&e;</r>', "'&e;' is no entity"],
    ['<r>&amp</r>', 'no entity'],
    ['<r>&#0;</r>', 'no entity'],
    ['<r>&#xd800;</r>', 'no entity'],
    ['<r>&toString;</r>', 'no entity'],
    ['<r a="&e;"/>', 'no entity'],
    ['<r>', 'not well-formed'],
    ['<r></s>', 'not well-formed'],
    ['<r/><s/>', 'not well-formed'],
    ['<r/>text', 'not well-formed'],
    ['text', 'not well-formed'],
    ['', 'not well-formed'],
    ['</r>', 'not well-formed'],
    ['<r a=b/>', 'not well-formed'],
    ['<r a="<"/>', 'not well-formed'],
    ['<r <!-- -->', 'not well-formed'],
    ['<!-- never closed', 'not well-formed'],
    ['<![CDATA[ never closed', 'not well-formed'],
    ['<a>'.repeat(40) + '</a>'.repeat(40), 'nested'],
    [`<r>${'<a/>'.repeat(5001)}</r>`, 'at most 5000 elements'],
    [`<r>${'x'.repeat(262_144)}</r>`, 'characters'],
  ])('that is not to be trusted is refused (%#)', (document, reason) => {
    expect(() => parseXml(document)).toThrow(XmlError);
    expect(() => parseXml(document)).toThrow(reason);
  });

  it('takes time in proportion to its length, whatever it is made of', () => {
    const before = performance.now();
    for (const piece of ['<', '<a ', '&', '<!--', '<a b="', ' ', '<a x="1" ', '</', '<?', ']]>']) {
      try {
        parseXml(`<r ${piece.repeat(Math.floor(250_000 / piece.length))}`);
      } catch (caught) {
        expect(caught).toBeInstanceOf(XmlError);
      }
    }
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe('administration', () => {
  it.each([
    ['<r/>', 'must be an ATOM entry with a QueueDescription'],
    ['', 'not well-formed'],
    ['<!DOCTYPE a><entry/>', 'declarations'],
    [entry('<Other/>'), 'must be an ATOM entry with a QueueDescription'],
    [entry('<QueueDescription><LockDuration>soon</LockDuration></QueueDescription>'), 'LockDuration'],
    [entry('<QueueDescription><RequiresSession>maybe</RequiresSession></QueueDescription>'), 'RequiresSession'],
    [entry('<QueueDescription><MaxDeliveryCount>-1</MaxDeliveryCount></QueueDescription>'), 'MaxDeliveryCount'],
    [entry('<QueueDescription><Status>Asleep</Status></QueueDescription>'), 'Status'],
    [
      entry('<QueueDescription><AuthorizationRules><a/></AuthorizationRules></QueueDescription>'),
      'Authorization rules',
    ],
    [entry('<QueueDescription><EnableExpress>true</EnableExpress></QueueDescription>'), 'Express'],
    ['x'.repeat(300_000), 'at most 262144 bytes'],
    ['x'.repeat(3_000_000), 'at most 262144 bytes'],
  ])('refuses a description that is none, and creates nothing (%#)', async (body, reason) => {
    const { status, text } = await put('other', body);
    expect(status).toBe(400);
    expect(text).toContain(reason);
    expect((await fetch(url('other'), { headers: bearer })).status).toBe(404);
  });

  it('refuses names that lead elsewhere', async () => {
    const body = entry('<QueueDescription/>');
    for (const path of [
      '$weird',
      'a%2F..%2F%24x',
      'q/$DeadLetterQueue',
      '%ZZ',
      'a%00b',
      'x'.repeat(300),
      '__proto__',
    ]) {
      expect((await put(path, body)).status).toBeGreaterThanOrEqual(400);
    }
    for (const path of ['', '/', '$Resources/Other', 'q/Subscriptions', 'q/$DeadLetterQueue', 'constructor']) {
      expect((await fetch(url(path), { headers: bearer })).status).toBe(404);
    }
    expect((await fetch(url('$Resources/Queues?$skip=-1'), { headers: bearer })).status).toBe(400);
    expect((await fetch(url('$Resources/Queues?$skip=99999'), { headers: bearer })).status).toBe(200);
    expect((await fetch(url('q'), { method: 'POST', headers: bearer, body: 'x' })).status).toBe(400);
    expect((await fetch(url('$Resources/Queues'), { method: 'DELETE', headers: bearer })).status).toBe(400);
  });

  it('answers 401 without a token, and gives no host of the client back that is none', async () => {
    expect((await fetch(url('q'))).status).toBe(401);
    expect((await fetch(url('q'), { headers: { authorization: 'Basic eDp5' } })).status).toBe(401);
    const socket = connect(bench.broker.adminPort, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.write('GET /q HTTP/1.1\r\nHost: "><script>\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n');
    await once(socket, 'close');
    expect(text).not.toContain('<script');
    expect(text).toContain(`<id>https://127.0.0.1:${bench.broker.adminPort}/q</id>`);
  });

  it('survives what is not HTTP', async () => {
    for (const bytes of [
      '\0\0\0\0',
      'GET\r\n\r\n',
      `GET / HTTP/1.1\r\nA: ${'x'.repeat(40_000)}\r\n\r\n`,
      'AMQP\0\x01\0\0',
    ]) {
      const socket = connect(bench.broker.adminPort, '127.0.0.1');
      socket.on('error', () => {}).resume();
      socket.end(bytes);
      await once(socket, 'close');
    }
    expect((await fetch(url('q'), { headers: bearer })).status).toBe(200);
  });
});
