import { HttpRequest } from '@azure/functions';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { type Answer, problemSchema } from '../../shared/http/problem.ts';
import { answer, type Input, none, type Route, route } from '../../shared/http/route.ts';
import { top } from '../../shared/http/schemas.ts';
import type { Office } from '../../shared/office.ts';

type Seen = Input<unknown, Record<string, unknown>, unknown>;

const lines: string[] = [];
// A route sees of the office what its handler asks for; these ask for nothing but the log.
const office = { log: (line: string) => lines.push(line) } as unknown as Office;

/** A route that answers what it was given. */
function echo(changes: Partial<Route> = {}): Route {
  return route({
    name: 'echo',
    method: 'POST',
    path: 'echo',
    right: 'read',
    summary: '',
    needsOperator: false,
    params: none,
    query: z.looseObject({}),
    handle: async (_office, input) => ({ status: 200, body: input }),
    ...changes,
  });
}

interface Call {
  query?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

async function call(target: Route, { query = '', headers = {}, body }: Call = {}): Promise<Answer> {
  const request = new HttpRequest({
    method: target.method,
    url: `http://localhost/api/${target.path}${query}`,
    headers,
    ...(body !== undefined && { body: { bytes: Buffer.from(body) } }),
  });
  return answer(target, office, request, 'request-1');
}

async function seen(target: Route, given: Call): Promise<Seen> {
  const { status, body } = await call(target, given);
  expect(status).toBe(200);
  return body as Seen;
}

function codeOf({ body }: Answer): string {
  return problemSchema.parse(body).code;
}

describe('the operator', () => {
  const named = echo({ needsOperator: true });

  it.each(['ada', 'Ada Lovelace', 'ada@example.org', "O'Brien <ops>", 'a'.repeat(100), 'Zoë', '  ada  '])(
    '%j is a name',
    async (name) => {
      expect((await seen(named, { headers: { 'x-operator': name } })).operator).toBe(name.trim());
    },
  );

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['blank', '   '],
    ['too long', 'a'.repeat(101)],
    ['with a tab', 'a\tb'],
    ['with a control character', 'a\u0085b'],
    ['with a soft hyphen', 'a\u00adb'],
  ])('that is %s is asked for', async (_what, name) => {
    const refused = await call(named, { headers: name === undefined ? {} : { 'x-operator': name } });
    expect([refused.status, codeOf(refused)]).toEqual([400, 'DLO_OPERATOR_MISSING']);
  });

  test('is not looked at where nobody asks', async () => {
    expect((await seen(echo(), { headers: { 'x-operator': 'a\tb' } })).operator).toBe('');
  });
});

describe('how long a caller waits', () => {
  it.each<[string | undefined, number]>([
    [undefined, 0],
    ['', 0],
    ['wait=5', 5],
    ['wait=60', 60],
    ['wait=61', 60],
    ['wait=999999', 60],
    ['Wait=5', 5],
    ['respond-async, wait=10', 10],
    ['respond-async,wait=10', 10],
    ['wait=10; x=y', 10],
    ['wait=10, handling=lenient', 10],
    ['  wait=7  ', 7],
    ['wait', 0],
    ['wait=', 0],
    ['wait=-5', 0],
    ['wait=1.5', 0],
    ['wait=5s', 0],
    ['wait=9999999999', 0],
    ['wait=1e3', 0],
    ['nowait=5', 0],
    ['wait=NaN', 0],
    ['"wait=5"', 0],
  ])('%j: %d seconds', async (prefer, seconds) => {
    const { waitMs } = await seen(echo(), { headers: prefer === undefined ? {} : { prefer } });
    expect(waitMs).toBe(seconds * 1000);
  });
});

describe('a body', () => {
  const withBody = echo({ body: z.strictObject({ n: z.number().optional() }) });

  it.each(['{}', '', '{"n":1}', '  {"n":1}\n', '\ufeff{"n":1}'])('%j is taken', async (body) => {
    await seen(withBody, { body });
  });

  it.each<[string, string | Uint8Array, string]>([
    ['half', '{"n":', 'DLO_BAD_JSON'],
    ['no JSON', 'n=1', 'DLO_BAD_JSON'],
    ['a text', '"x"', 'DLO_BAD_REQUEST'],
    ['a number', '1', 'DLO_BAD_REQUEST'],
    ['null', 'null', 'DLO_BAD_REQUEST'],
    ['a list', '[]', 'DLO_BAD_REQUEST'],
    ['no UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'DLO_BAD_JSON'],
    ['UTF-16', Buffer.from('{"n":1}', 'utf16le'), 'DLO_BAD_JSON'],
    ['a number that is none', '{"n":NaN}', 'DLO_BAD_JSON'],
    ['a number beyond all', '{"n":1e400}', 'DLO_BAD_REQUEST'],
    ['an unknown field', '{"n":1,"m":1}', 'DLO_BAD_REQUEST'],
    ['a field that objects inherit', '{"__proto__":{"n":1}}', 'DLO_BAD_REQUEST'],
    ['a hundred thousand lists', '['.repeat(100_000) + ']'.repeat(100_000), 'DLO_BAD_REQUEST'],
    ['300 KB', JSON.stringify({ n: 'x'.repeat(300_000) }), 'DLO_BODY_TOO_LARGE'],
  ])('that is %s is refused', async (_what, body, code) => {
    const refused = await call(withBody, { body });
    expect(codeOf(refused)).toBe(code);
    expect(refused.status).toBe(code === 'DLO_BODY_TOO_LARGE' ? 413 : 400);
  });

  test('of just 256 KiB is looked at', async () => {
    const frame = '{"n":""}'.length;
    const full = `{"n":"${'x'.repeat(262_144 - frame)}"}`;
    expect(codeOf(await call(withBody, { body: full }))).toBe('DLO_BAD_REQUEST');
    expect(codeOf(await call(withBody, { body: `${full} ` }))).toBe('DLO_BODY_TOO_LARGE');
  });

  test('is not read where the route takes none', async () => {
    await seen(echo(), { body: 'n=1' });
  });
});

describe('a query', () => {
  test('given once is text, repeated a list; the host’s own parameters are not ours', async () => {
    const { query } = await seen(echo(), { query: '?a=1&b=x,y&b=z&code=KEY&clientId=default' });
    expect(query).toEqual({ a: '1', b: ['x,y', 'z'] });
  });

  it.each(['?b=1', '?a=1&a=2', '?__proto__=1', '?constructor=1', '?a', '?a=', '?A=1'])(
    '%s is refused',
    async (query) => {
      const strict = echo({ query: z.strictObject({ a: z.string().min(1).optional() }) });
      expect(codeOf(await call(strict, { query }))).toBe('DLO_BAD_REQUEST');
    },
  );

  it.each(['0', '501', '-1', '1.5', '1e2', '0x10', 'ten', ' 5', '', '9999999999999999999999', 'NaN', 'Infinity'])(
    'a page of %j is refused',
    async (size) => {
      const paged = echo({ query: z.strictObject({ top }) });
      expect(codeOf(await call(paged, { query: `?top=${encodeURIComponent(size)}` }))).toBe('DLO_BAD_REQUEST');
    },
  );
});

describe('a handler that fails', () => {
  test('is answered, and nothing of it told', async () => {
    const failing = echo({
      handle: () => {
        throw new Error('hunter2');
      },
    });
    const failed = await call(failing);
    expect([failed.status, codeOf(failed)]).toEqual([500, 'DLO_INTERNAL']);
    expect(JSON.stringify(failed.body)).not.toContain('hunter2');
    expect(lines.at(-1)).toContain('hunter2');
  });

  test('is not reached by a request that is refused', async () => {
    let reached = false;
    const guarded = echo({
      needsOperator: true,
      handle: async () => {
        reached = true;
        return { status: 200, body: {} };
      },
    });
    await call(guarded);
    expect(reached).toBe(false);
  });
});
