import { afterAll, afterEach, beforeAll, describe, expect, it, test } from 'vitest';
import type { z } from 'zod';
import { openapi } from '../../functions/http/openapi.ts';
import { ROUTES } from '../../functions/register.ts';
import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { problemSchema } from '../../shared/http/problem.ts';
import { RIGHTS, type Route } from '../../shared/http/route.ts';
import type { Answer } from '../harness/host.ts';
import { type LetterJson, openTestOffice, PLAIN, type PlanJson, type TestOffice } from '../harness/office.ts';

const routes = [...ROUTES, openapi(ROUTES)];
const NO_PLAN = '20200101t000000-aaaaaaaa';
const NO_GROUP = 'f1-aaaaaaaaaaaaaaaaaaaaaa';

let office: TestOffice;
let letters: LetterJson[];

beforeAll(async () => {
  office = await openTestOffice({
    sources: [
      { name: 'orders' },
      { name: 'watched', mode: 'observe' },
      { name: 'unstated', entity: {} },
      { name: 'moved', entity: PLAIN },
    ],
  });
  letters = await office.deadLetters(3);
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-5000));
});
afterAll(() => office?.close());

/** The answer says no in the documented form, with this code. */
function expectProblem(answer: Answer, code: ErrorCode, what = ''): void {
  expect(answer.headers.get('content-type'), `${what} ${answer.text.slice(0, 300)}`).toContain(
    'application/problem+json',
  );
  const told = problemSchema.parse(answer.json);
  expect(told.code, `${what} ${told.detail}`).toBe(code);
  expect([answer.status, told.status], what).toEqual([ERRORS[code].status, ERRORS[code].status]);
  expect(told.title).toBe(ERRORS[code].title);
  expect(answer.text).not.toMatch(/\n\s+at /);
}

/** The answer is a good one, or says no in the documented form; never that something broke. */
function expectAnswered(answer: Answer, what: string): void {
  expect(answer.status, `${what}: ${answer.text.slice(0, 300)}`).toBeLessThan(500);
  if (answer.status < 400 || answer.text === '') return; // without a text it is the host that refuses
  const told = problemSchema.parse(answer.json);
  expect(answer.status, what).toBe(ERRORS[told.code].status);
}

const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  office.call('replay', 'POST', path, body, headers);
const read = (path: string) => office.call('read', 'GET', path);

test('the catalog of errors is what answers: unknown source, letter and plan', async () => {
  for (const name of ['nowhere', 'Orders', 'ORDERS', 'orders%20', "o'rders", '%F0%9F%98%80', '%2e%2e%2forders']) {
    expectProblem(await read(`sources/${name}`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await read(`sources/${name}/letters`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await read(`sources/${name}/letters/1`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await read(`sources/${name}/expiry`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await office.call('read', 'POST', `sources/${name}/collect`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await office.call('body', 'GET', `sources/${name}/letters/1/body`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await post(`sources/${name}/plans`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await read(`summary?by=reason&source=${name}`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await read(`plans?source=${name}`), 'DLO_SOURCE_UNKNOWN', name);
    expectProblem(await read(`audit?source=${name}`), 'DLO_SOURCE_UNKNOWN', name);
  }
  for (const number of ['0', '999999', '9007199254740993', '9223372036854775807']) {
    expectProblem(await read(`sources/orders/letters/${number}`), 'DLO_LETTER_UNKNOWN', number);
    expectProblem(await office.call('body', 'GET', `sources/orders/letters/${number}/body`), 'DLO_BODY_GONE', number);
  }
  for (const path of ['', '/letters']) expectProblem(await read(`plans/${NO_PLAN}${path}`), 'DLO_PLAN_UNKNOWN');
  for (const act of ['pause', 'resume', 'cancel']) {
    expectProblem(await post(`plans/${NO_PLAN}/${act}`), 'DLO_PLAN_UNKNOWN', act);
  }
  expectProblem(await post(`plans/${NO_PLAN}/run`, { confirm: 0 }), 'DLO_PLAN_UNKNOWN');
  expectProblem(await office.call('discard', 'POST', `plans/${NO_PLAN}/discard`, { confirm: 0 }), 'DLO_PLAN_UNKNOWN');
});

describe('a number in a path that is no sequence number', () => {
  it.each([
    '-1',
    '01',
    '1.5',
    '1e400',
    'NaN',
    'Infinity',
    '9223372036854775808',
    '9999999999999999999999',
    '0x1',
    '%20',
    '%00',
    "1'",
  ])('%s is refused', async (number) => {
    expectProblem(await read(`sources/orders/letters/${number}`), 'DLO_BAD_REQUEST');
    expectProblem(await office.call('body', 'GET', `sources/orders/letters/${number}/body`), 'DLO_BAD_REQUEST');
  });
});

describe('a plan id that is none', () => {
  it.each(['x', NO_PLAN.toUpperCase(), `${NO_PLAN}%00`, `${NO_PLAN}'`, 'null', '%F0%9F%98%80', 'x'.repeat(2000)])(
    '%s',
    async (id) => {
      expectProblem(await read(`plans/${id}`), 'DLO_BAD_REQUEST');
      expectProblem(await post(`plans/${id}/run`, { confirm: 1 }), 'DLO_BAD_REQUEST');
      expectProblem(await read(`audit?plan=${id}`), 'DLO_BAD_REQUEST');
    },
  );
});

describe('a body', () => {
  const plans = 'sources/orders/plans';
  it.each<[string, string | Uint8Array, ErrorCode]>([
    ['that ends early', '{"action":', 'DLO_BAD_JSON'],
    ['of a form', 'action=replay', 'DLO_BAD_JSON'],
    ['of XML', '<plan/>', 'DLO_BAD_JSON'],
    ['that is no UTF-8', new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]), 'DLO_BAD_JSON'],
    ['in UTF-16', Buffer.from('\ufeff{}', 'utf16le'), 'DLO_BAD_JSON'],
    ['of zeros', new Uint8Array(100), 'DLO_BAD_JSON'],
    ['of a list', '[]', 'DLO_BAD_REQUEST'],
    ['of a text', '"replay"', 'DLO_BAD_REQUEST'],
    ['of a number', '1', 'DLO_BAD_REQUEST'],
    ['of null', 'null', 'DLO_BAD_REQUEST'],
    ['of 300 KB', JSON.stringify({ action: 'x'.repeat(300_000) }), 'DLO_BODY_TOO_LARGE'],
    ['of deep lists', `{"selection":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, 'DLO_BAD_REQUEST'],
    ['of deep objects', `${'{"selection":'.repeat(15_000)}1${'}'.repeat(15_000)}`, 'DLO_BAD_REQUEST'],
    ['with __proto__', '{"__proto__":{"action":"discard"}}', 'DLO_BAD_REQUEST'],
    ['with __proto__ inside', '{"choices":{"__proto__":{"bypass":true}}}', 'DLO_BAD_REQUEST'],
    ['with a constructor', '{"constructor":{"prototype":{"bypass":true}}}', 'DLO_BAD_REQUEST'],
    ['with an unknown field', '{"dryRun":true}', 'DLO_BAD_REQUEST'],
    ['with an unknown condition', '{"selection":{"reasons":["x"]}}', 'DLO_BAD_REQUEST'],
    ['with an unknown choice', '{"choices":{"force":true}}', 'DLO_BAD_REQUEST'],
    ['with an unknown action', '{"action":"delete"}', 'DLO_BAD_REQUEST'],
    ['with null for a selection', '{"selection":null}', 'DLO_BAD_REQUEST'],
    ['with a text for a list', '{"selection":{"reason":"x"}}', 'DLO_BAD_REQUEST'],
    ['with a number for a sequence number', '{"selection":{"sequenceNumber":[1]}}', 'DLO_BAD_REQUEST'],
    [
      'with a sequence number beyond 64 bits',
      '{"selection":{"sequenceNumber":["9223372036854775808"]}}',
      'DLO_BAD_REQUEST',
    ],
    ['with a time before all tables', '{"selection":{"seenTo":"0000-01-01T00:00:00Z"}}', 'DLO_BAD_REQUEST'],
    ['with a time after the last', '{"selection":{"seenTo":"9999-12-31T23:59:59-23:59"}}', 'DLO_BAD_REQUEST'],
    ['with a count of 1e400', '{"selection":{"minReplayCount":1e400}}', 'DLO_BAD_REQUEST'],
    ['with a count of -1', '{"selection":{"minReplayCount":-1}}', 'DLO_BAD_REQUEST'],
    ['with a choice as text', '{"choices":{"bypass":"true"}}', 'DLO_BAD_REQUEST'],
    [
      'with a selection too long to keep',
      JSON.stringify({ selection: { reason: Array.from({ length: 10 }, () => 'x'.repeat(4000)) } }),
      'DLO_BAD_REQUEST',
    ],
  ])('%s is refused', async (_what, body, code) => {
    expectProblem(await post(plans, body), code);
  });

  it.each<[string, string]>([
    ['missing', '{}'],
    ['a text', '{"confirm":"3"}'],
    ['negative', '{"confirm":-1}'],
    ['a fraction', '{"confirm":0.5}'],
    ['endless', '{"confirm":1e400}'],
    ['2^63', '{"confirm":9223372036854775808}'],
    ['null', '{"confirm":null}'],
    ['a list', '{"confirm":[3]}'],
    ['beside something unknown', '{"confirm":3,"force":true}'],
  ])('to run a plan is refused when the confirmation is %s', async (_what, body) => {
    expectProblem(await post(`plans/${NO_PLAN}/run`, body), 'DLO_BAD_REQUEST');
  });

  test('of a route that takes none of its own must be empty', async () => {
    expectProblem(await office.call('read', 'POST', 'sources/orders/collect', { all: true }), 'DLO_BAD_REQUEST');
    expectProblem(await post('stop', { plans: [] }), 'DLO_BAD_REQUEST');
    expectProblem(await post(`plans/${NO_PLAN}/pause`, '[]'), 'DLO_BAD_REQUEST');
  });

  test('says which fields are wrong', async () => {
    const { json } = await post(plans, { action: 'x', selection: { reason: [] }, choices: { bypass: 1 } });
    const { errors } = problemSchema.parse(json);
    expect(errors?.map(({ field }) => field).sort()).toEqual([
      'body.action',
      'body.choices.bypass',
      'body.selection.reason',
    ]);
  });
});

describe('a query', () => {
  it.each([
    'sources?all=1',
    'sources/orders?x=1',
    'sources/orders/letters?reasons=x',
    'sources/orders/letters?__proto__=x',
    'sources/orders/letters?reason=',
    'sources/orders/letters?top=0',
    'sources/orders/letters?top=501',
    'sources/orders/letters?top=-1',
    'sources/orders/letters?top=1e2',
    'sources/orders/letters?top=NaN',
    'sources/orders/letters?top=9223372036854775808',
    'sources/orders/letters?top=9999999999999999999999',
    'sources/orders/letters?top=',
    'sources/orders/letters?top=1&top=2',
    'sources/orders/letters?continuation=',
    "sources/orders/letters?continuation='",
    'sources/orders/letters?continuation=-1',
    'sources/orders/letters?continuation=1&continuation=2',
    'sources/orders/letters?category=bad',
    'sources/orders/letters?category=poison&category=bad',
    'sources/orders/letters?seenFrom=yesterday',
    'sources/orders/letters?seenFrom=0000-01-01T00:00:00Z',
    'sources/orders/letters?property=x',
    'sources/orders/letters?property=a:b&property=c:d',
    'sources/orders/letters?minReplayCount=1.5',
    'summary',
    'summary?by=',
    'summary?by=colour',
    'summary?by=__proto__',
    'summary?by=reason&by=category',
    'plans?state=broken',
    'plans?state=ready&state=paused',
    'plans?top=99999',
    'plans?source=',
    `plans/${NO_PLAN}/letters?top=0`,
    'audit?before=yesterday',
    'audit?before=0001-01-01T00:00:00Z',
    'audit?before=9999-12-31T23:59:59-23:59',
    'audit?operator=x',
    'health?deep=1',
  ])('%s is refused', async (path) => {
    expectProblem(await read(path), 'DLO_BAD_REQUEST');
  });

  test('may repeat what is a list, commas included', async () => {
    expect(await office.letters('orders', '&reason=nothing&reason=UnsupportedCurrency')).toHaveLength(3);
    expect(await office.letters('orders', '&reason=nothing,UnsupportedCurrency')).toHaveLength(0);
  });

  it.each(["'", "' or PartitionKey ne '", '%00', '%0d%0a', '😀', '\\', '%25', '+', '(', 'x'.repeat(4000)])(
    'may ask for anything by name: %s',
    async (text) => {
      const value = encodeURIComponent(text.startsWith('%') ? decodeURIComponent(text) : text);
      for (const name of ['reason', 'messageId', 'exceptionType', 'messageType']) {
        expect(await office.letters('orders', `&${name}=${value}`), name).toEqual([]);
      }
      expect(await office.letters('orders', `&property=x:${value}`)).toEqual([]);
    },
  );

  test('pages through everything, each letter once', async () => {
    const numbers: string[] = [];
    let next = '';
    do {
      const page = await office.get<{ letters: LetterJson[]; continuation: string | null }>(
        `sources/orders/letters?top=1${next}`,
      );
      numbers.push(...page.letters.map(({ sequenceNumber }) => sequenceNumber));
      next = page.continuation === null ? '' : `&continuation=${page.continuation}`;
    } while (next !== '');
    expect(numbers).toEqual(letters.map(({ sequenceNumber }) => sequenceNumber));
  });
});

describe('keys', () => {
  const example = (route: Route) =>
    route.path
      .replace('{source}', 'orders')
      .replace('{sequenceNumber}', '999')
      .replace('{id}', NO_PLAN)
      .replace('{fingerprint}', NO_GROUP);

  it.each(routes)('$method $path takes the key of the right $right and no other', async (route) => {
    for (const right of RIGHTS.filter((one) => one !== 'probe')) {
      const { status, text } = await office.call(
        right,
        route.method,
        example(route),
        route.method === 'POST' ? {} : undefined,
      );
      if (route.right === 'probe' || route.right === right)
        expect([200, 201, 400, 404, 410], `${right} ${text}`).toContain(status);
      else expect(status, right).toBe(401);
    }
  });

  it.each(routes.filter(({ right }) => right !== 'probe'))(
    '$method $path is shut to nobody and to a guess',
    async (route) => {
      const path = `/api/${example(route)}`;
      for (const key of [
        undefined,
        'wrong',
        'null',
        '😀'.length.toString(),
        office.keys.read.slice(0, -1),
        'x'.repeat(8000),
      ]) {
        const answer = await office.process.call(route.method, path, key === undefined ? {} : { key });
        expect([answer.status, answer.text]).toEqual([401, '']);
      }
    },
  );

  test('the routes that need none need none', async () => {
    for (const path of ['health', 'openapi.json']) {
      expect((await office.call('probe', 'GET', path)).status).toBe(200);
    }
  });

  test('the probe names no source', async () => {
    expect((await office.call('probe', 'GET', 'health')).text).not.toMatch(/orders|watched|unstated/);
  });

  test('a key may be in the query, as the platform has it', async () => {
    const { read: key } = office.keys;
    const path = '/api/sources/orders/letters?top=1';
    expect((await office.process.call('GET', `${path}&code=${key}`)).status).toBe(200);
    expect((await office.process.call('GET', `${path}&code=${key}&clientId=default`)).status).toBe(200);
    expect((await office.process.call('GET', `${path}&code=${key}x`)).status).toBe(401);
    expect((await office.process.call('GET', `${path}&code=${office.keys.body}`)).status).toBe(401);
  });

  test('the host key and the master key open every door, as in Azure', async () => {
    for (const key of [office.process.keys.host, office.process.keys.master]) {
      expect((await office.process.call('GET', '/api/sources', { key })).status).toBe(200);
    }
  });
});

test('another method than the documented one is not found', async () => {
  for (const route of routes) {
    const path = `/api/${route.path.replace('{source}', 'orders').replace('{sequenceNumber}', '1').replace('{id}', NO_PLAN).replace('{fingerprint}', NO_GROUP)}`;
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      const { status } = await office.process.call(method, path, { key: office.process.keys.master });
      expect(status, `${method} ${path}`).toBe(404);
    }
  }
  for (const path of ['nothing', 'sources/orders/letters/1/body/x', 'plans/x/start', 'stop/now']) {
    expect((await office.process.call('GET', `/api/${path}`, { key: office.process.keys.master })).status).toBe(404);
  }
});

describe('the operator', () => {
  const asks = routes.filter(({ needsOperator }) => needsOperator);

  it.each(asks)('$method $path asks for one', async (route) => {
    const path = route.path
      .replace('{source}', 'orders')
      .replace('{sequenceNumber}', '1')
      .replace('{id}', NO_PLAN)
      .replace('{fingerprint}', NO_GROUP);
    const isRun = route.name === 'runPlan' || route.name === 'discardPlan';
    const body = isRun ? { confirm: 1 } : route.name === 'triageGroup' ? { state: 'open' } : {};
    for (const name of ['', '   ', 'a\tb', 'a'.repeat(101), '\u0085', '\u00ad']) {
      const headers = { 'x-operator': name };
      const answer = await office.call(
        route.right,
        route.method,
        path,
        route.method === 'POST' ? body : undefined,
        headers,
      );
      expectProblem(answer, 'DLO_OPERATOR_MISSING', JSON.stringify(name));
    }
    const { rights } = { rights: office.keys };
    const nameless = await office.process.call(route.method, `/api/${path}`, {
      key: rights[route.right],
      ...(route.method === 'POST' && { body }),
    });
    expectProblem(nameless, 'DLO_OPERATOR_MISSING');
  });

  test('is written down as it was given', async () => {
    const operator = `O'Brien <ops@example.org> | "x" \\ {} ; DROP`;
    const plan = (await post('sources/orders/plans', {}, { 'x-operator': operator })).json as PlanJson;
    const { entries } = await office.get<{ entries: { operator: string; operation: string; outcome: string }[] }>(
      `audit?plan=${plan.id}`,
    );
    expect(entries).toMatchObject([{ operator, operation: 'plan.create', outcome: 'ready: 3 letters, 0 skipped' }]);
    await post(`plans/${plan.id}/cancel`);
  });
});

describe('a plan in the wrong state', () => {
  const run = (id: string, confirm: number, prefer = 'wait=0') =>
    post(`plans/${id}/run`, { confirm, ramp: false }, { prefer });
  const discard = (id: string, confirm: number) => office.call('discard', 'POST', `plans/${id}/discard`, { confirm });

  test('that is ready cannot be paused or resumed, is not run with another number, and not by the other action', async () => {
    const plan = await office.plan();
    expectProblem(await post(`plans/${plan.id}/pause`), 'DLO_PLAN_STATE');
    expectProblem(await post(`plans/${plan.id}/resume`), 'DLO_PLAN_STATE');
    for (const confirm of [0, 2, 4, 100_000_000]) {
      const answer = await run(plan.id, confirm);
      expectProblem(answer, 'DLO_CONFIRM_MISMATCH', String(confirm));
      expect(answer.json).toMatchObject({ letters: 3 });
    }
    const other = await discard(plan.id, 3);
    expectProblem(other, 'DLO_WRONG_ACTION');
    expect(other.json).toMatchObject({ planAction: 'replay' });
    const removal = await office.plan({ action: 'discard' });
    expectProblem(await run(removal.id, 3), 'DLO_WRONG_ACTION');
    expect(await office.getPlan(plan.id)).toMatchObject({ state: 'ready', counts: { pending: 3 } });
    for (const { id } of [plan, removal]) {
      expect((await post(`plans/${id}/cancel`)).json).toMatchObject({
        state: 'cancelled',
        counts: { left: 3, pending: 0 },
      });
      expect((await post(`plans/${id}/cancel`)).status).toBe(200);
    }
    expectProblem(await run(plan.id, 3), 'DLO_PLAN_STATE');
    expectProblem(await discard(removal.id, 3), 'DLO_PLAN_STATE');
    expectProblem(await post(`plans/${plan.id}/pause`), 'DLO_PLAN_STATE');
    expectProblem(await post(`plans/${plan.id}/resume`), 'DLO_PLAN_STATE');
  });

  test('that has findings is blocked, and says which', async () => {
    for (const [source, codes] of [
      ['watched', ['nothing-to-send']],
      ['unstated', ['duplicate-detection-unknown', 'sessions-unknown', 'expiry-unknown', 'nothing-to-send']],
      ['moved', ['nothing-to-send']],
    ] as const) {
      const plan = await office.plan({}, source);
      expect(plan.findings.map(({ code }) => code)).toEqual(codes);
      const answer = await run(plan.id, 0);
      expectProblem(answer, 'DLO_PLAN_BLOCKED', source);
      expect((answer.json as { findings: { code: string }[] }).findings.map(({ code }) => code)).toEqual(codes);
    }
  });

  test('that has run does not run again, and cannot be paused, resumed or cancelled', async () => {
    const [first] = letters;
    const plan = await office.plan({ selection: { sequenceNumber: [first?.sequenceNumber] } });
    expect((await office.run(plan)).counts).toMatchObject({ planned: 1, done: 1 });
    for (const act of ['pause', 'resume', 'cancel'])
      expectProblem(await post(`plans/${plan.id}/${act}`), 'DLO_PLAN_STATE', act);
    for (const confirm of [0, 1]) {
      const answer = await run(plan.id, confirm);
      expectProblem(answer, 'DLO_PLAN_STATE');
      expect(answer.json).toMatchObject({ state: 'finished' });
    }
    expect(office.broker.messages('orders')).toHaveLength(1);
    expect(await office.getPlan(plan.id)).toMatchObject({ state: 'finished', counts: { done: 1 } });
  });

  test('waits as long as the caller says, whatever else the header holds', async () => {
    for (const prefer of [
      'wait',
      'wait=',
      'wait=-1',
      'wait=1e9',
      'garbage',
      '"',
      'x'.repeat(5000),
      'wait=0;;;',
      ',,,',
    ]) {
      const [, letter] = letters;
      const plan = await office.plan({ selection: { sequenceNumber: [letter?.sequenceNumber] } });
      expectProblem(await run(plan.id, 7, prefer), 'DLO_CONFIRM_MISMATCH', prefer);
    }
  });
});

test('a body is shown to the right key only, cut where asked, and its reading is audited', async () => {
  const number = letters[2]?.sequenceNumber;
  const path = `sources/orders/letters/${number}/body`;
  const whole = await office.call('body', 'GET', path);
  expect(whole.json).toMatchObject({
    sequenceNumber: number,
    kind: 'data',
    sections: [{ text: '{"order":2}' }],
    cut: false,
  });
  expect((await office.call('body', 'GET', `${path}?max=3`)).json).toMatchObject({
    sections: [{ text: '{"o' }],
    cut: true,
  });
  for (const max of ['0', '-1', '1e400', '', '1048577', 'all']) {
    expectProblem(await office.call('body', 'GET', `${path}?max=${max}`), 'DLO_BAD_REQUEST', max);
  }
  expect((await office.letter(number ?? '')).body).not.toHaveProperty('sections');
  const { entries } = await office.get<{ entries: { operation: string }[] }>('audit?source=orders&top=500');
  expect(entries.filter(({ operation }) => operation === 'body.read').length).toBeGreaterThanOrEqual(2);
});

const NASTY = [
  '',
  ' ',
  '0',
  '-1',
  '1e400',
  'NaN',
  'Infinity',
  '1.5',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '9999999999999999999999',
  'true',
  'null',
  'undefined',
  '[object Object]',
  '{}',
  '[]',
  '__proto__',
  'constructor',
  'toString',
  "'",
  "''",
  "' or '1' eq '1",
  "')/x?$filter=",
  '"',
  '\\',
  '../../etc/passwd',
  '%',
  '%00',
  '%zz',
  '\u0000',
  '\r\nx-operator: root',
  '\u202e',
  '😀',
  '\ud800',
  'ﷺ'.repeat(50),
  'x'.repeat(200),
  'x'.repeat(5000),
  '2026-11-30T00:00:00Z',
  '0000-00-00T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  NO_PLAN,
  '99999999t999999-aaaaaaaa',
  'orders',
  'name:value',
  'poison',
] as const;

/** Texts of JSON that are put where a body's field is expected. */
const NASTY_JSON = [
  ...NASTY.map((text) => JSON.stringify(text)),
  ...['null', 'true', '0', '-0', '-1', '1.5', '1e400', '-1e400', '9007199254740993', '9223372036854775808', '[]', '{}'],
  ...['[null]', '[[]]', '{"__proto__":{}}', '[1e400]', `${'['.repeat(3000)}${']'.repeat(3000)}`],
];

function encoded(text: string): string {
  return encodeURIComponent(text.isWellFormed() ? text : text.toWellFormed());
}

/** Every way in which `route` takes something in, each with each nasty thing. */
function attacks(route: Route): { path: string; body?: string }[] {
  const [number] = letters.map(({ sequenceNumber }) => sequenceNumber);
  const good: Record<string, string> = {
    source: 'orders',
    sequenceNumber: number ?? '1',
    id: NO_PLAN,
    fingerprint: NO_GROUP,
  };
  const fill = (values: Record<string, string>) => route.path.replace(/\{(\w+)\}/g, (_all, name) => values[name] ?? '');
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');
  const plain = { path: fill(good), ...(route.method === 'POST' && { body: '{}' }) };
  const queries = [...Object.keys((route.query as z.ZodObject).shape), 'unknown'];
  if (route.name === 'listSources') queries.push('code');
  const fields = route.body === undefined ? [] : Object.keys((route.body as z.ZodObject).shape);
  const inner = fields.includes('selection')
    ? ['reason', 'sequenceNumber', 'seenTo', 'property', 'minReplayCount']
    : [];
  return [
    ...NASTY.flatMap((text) => names.map((name) => ({ ...plain, path: fill({ ...good, [name]: encoded(text) }) }))),
    ...NASTY.flatMap((text) => queries.map((name) => ({ ...plain, path: `${plain.path}?${name}=${encoded(text)}` }))),
    ...['?', '?&&&', '?=', '?=x', '?%', `?${'a=1&'.repeat(500)}`].map((query) => ({
      ...plain,
      path: plain.path + query,
    })),
    ...(route.method === 'GET'
      ? []
      : NASTY_JSON.flatMap((json) => [
          { ...plain, body: json },
          ...fields.map((field) => ({ ...plain, body: `{"${field}":${json}}` })),
          ...inner.map((field) => ({ ...plain, body: `{"selection":{"${field}":${json}}}` })),
        ])),
  ];
}

describe('whatever comes in, it is answered', () => {
  it.each(routes)('$method $path', async (route) => {
    const waiting = attacks(route);
    const attack = async () => {
      for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
        const answer = await office.call(route.right, route.method, one.path, one.body);
        expectAnswered(answer, `${route.method} ${one.path.slice(0, 200)} ${one.body?.slice(0, 200)}`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, attack));
  });

  test('and the office still works', async () => {
    expect((await office.letters()).map(({ sequenceNumber }) => sequenceNumber)).toEqual(
      letters.slice(1).map(({ sequenceNumber }) => sequenceNumber),
    );
    const plan = await office.plan({ selection: { sequenceNumber: [letters[1]?.sequenceNumber] } });
    expect((await office.run(plan)).counts).toMatchObject({ planned: 1, done: 1, maybeDuplicate: 0 });
    expect(office.process.log()).not.toContain('DLO_INTERNAL');
    expect(office.process.log()).not.toContain('unexpected:');
  });
});
