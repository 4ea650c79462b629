import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { unavailable } from '../../shared/brokers/serviceBus/errors.ts';
import {
  ERRORS,
  type ErrorCode,
  errorText,
  isMistake,
  isOfficeError,
  mistakeText,
  OfficeError,
} from '../../shared/errors.ts';
import { badRequest, problem, problemSchema } from '../../shared/http/problem.ts';

const silent = () => {};
const CODES = Object.entries(ERRORS) as [ErrorCode, { status: number; title: string; action: string }][];

describe('the error table', () => {
  it.each(CODES)('%s has a stable form, a status, a title and an action', (code, { status, title, action }) => {
    expect(code).toMatch(/^DLO_[A-Z]+(_[A-Z]+)*$/);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(title).toMatch(/^[A-Z].*[^.]$/);
    expect(action).toMatch(/^[A-Z].*\.$/s);
  });

  test('only what is not the caller’s doing is a server error', () => {
    const server = CODES.filter(([, { status }]) => status >= 500).map(([code]) => code);
    expect(server).toEqual([
      'DLO_BROKER_UNAVAILABLE',
      'DLO_STORE_UNAVAILABLE',
      'DLO_ROW_REFUSED',
      'DLO_CATALOG_INVALID',
      'DLO_SETTINGS_INVALID',
      'DLO_NODE_TOO_OLD',
      'DLO_PACKAGE_INCOMPLETE',
      'DLO_INTERNAL',
    ]);
  });
});

describe('problem details', () => {
  it.each(CODES)('%s becomes the answer that its entry describes', (code, { status, title, action }) => {
    const answer = problem(new OfficeError(code, 'what happened'), 'request-1', silent);
    expect(answer.status).toBe(status);
    const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
    expect(answer.headers).toEqual({ 'content-type': 'application/problem+json', ...challenge });
    expect(answer.body).toEqual({
      type: `urn:dead-letter-office:error:${code}`,
      title,
      status,
      code,
      detail: 'what happened',
      action,
      requestId: 'request-1',
    });
    expect(problemSchema.safeParse(answer.body).success).toBe(true);
  });

  test('facts stand beside the message and cannot change what kind of error it is', () => {
    const data = { letters: 3, status: 200, code: 'DLO_OK', type: 'x' };
    const { body } = problem(new OfficeError('DLO_CONFIRM_MISMATCH', 'm', { data }), 'r', silent);
    expect(body).toMatchObject({ letters: 3, status: 409, code: 'DLO_CONFIRM_MISMATCH' });
  });

  it.each<[string, unknown]>([
    ['an error', new Error('the key is hunter2')],
    ['an error with an inner one', new TypeError('x', { cause: new Error('hunter2') })],
    ['a text', 'hunter2'],
    ['nothing', undefined],
    ['null', null],
    ['an object', { message: 'hunter2', status: 404, code: 'DLO_BAD_REQUEST' }],
    ['an object that has no text', Object.create(null)],
  ])('%s of unknown origin is told to the log and not to the caller', (_what, thrown) => {
    const lines: string[] = [];
    const answer = problem(thrown, 'request-7', (line) => lines.push(line));
    expect(answer.status).toBe(500);
    expect(answer.body).toMatchObject({ code: 'DLO_INTERNAL', requestId: 'request-7' });
    expect(JSON.stringify(answer.body)).not.toContain('hunter2');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('request-7');
  });

  test('a known error does not fill the log', () => {
    const lines: string[] = [];
    problem(new OfficeError('DLO_PLAN_UNKNOWN', 'm'), 'r', (line) => lines.push(line));
    expect(lines).toEqual([]);
  });
});

describe('input that does not fit', () => {
  const schema = z.strictObject({ a: z.strictObject({ b: z.array(z.number()) }) });
  const told = (value: unknown) => badRequest('body', schema.safeParse(value).error as z.ZodError);

  test('is told field by field', () => {
    const error = told({ a: { b: [1, 'x'], c: 1 } });
    expect(error.code).toBe('DLO_BAD_REQUEST');
    const fields = (error.data.errors as { field: string }[]).map(({ field }) => field);
    expect(fields.sort()).toEqual(['body.a', 'body.a.b.1']);
    expect(error.message).toContain('body.a.b.1: ');
  });

  test('is told twenty times at most, and never at length', () => {
    const many = told({ a: { b: Array.from({ length: 1000 }, () => 'x') } });
    expect(many.data.errors).toHaveLength(20);
    const long = told({ [`x${'y'.repeat(100_000)}`]: 1 });
    expect(long.message.length).toBeLessThan(12_000);
  });
});

describe('the text of an error', () => {
  it.each<[unknown, string]>([
    [new Error('outer', { cause: new Error('inner') }), 'outer: inner'],
    [new Error('sending: inner', { cause: new Error('inner') }), 'sending: inner'],
    [new TypeError(''), 'TypeError'],
    [new TypeError('x is not a function'), 'TypeError: x is not a function'],
    ['text', 'text'],
    [null, 'null'],
    [undefined, ''],
    [Object.create(null), 'object'],
  ])('%#', (error, text) => {
    expect(errorText(error)).toBe(text);
  });

  test('ends, even when an error is its own cause', () => {
    const error = new Error('again');
    error.cause = error;
    expect(errorText(error)).toBe('again');
    expect(errorText(new Error('x'.repeat(5000)), 100)).toHaveLength(100);
  });
});

describe('a mistake of the program', () => {
  const missing = Object.assign(new Error("Cannot find module './work-A1.js'\nRequire stack:\n- /home/x/main.js"), {
    code: 'MODULE_NOT_FOUND',
  });

  it.each<[unknown, boolean]>([
    [new TypeError('x is not a function'), true],
    [new Error('wrapped', { cause: new RangeError('Invalid time value') }), true],
    [missing, true],
    // How fetch tells that nobody answers.
    [new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }), false],
    [new Error('connect ECONNREFUSED'), false],
    [new SyntaxError('Unexpected token < in JSON at position 0'), false],
    [new SyntaxError('Invalid or unexpected token'), true],
    [new OfficeError('DLO_STORE_UNAVAILABLE', 'm', { cause: new Error('503') }), false],
    ['text', false],
  ])('%o: %s', (error, expected) => {
    expect(isMistake(error)).toBe(expected);
  });

  test('is no trouble with store or broker', () => {
    expect(unavailable('lock letters', new TypeError('x is not a function'))).toBeInstanceOf(TypeError);
    expect(unavailable('lock letters', new Error('gone'))).toMatchObject({ code: 'DLO_BROKER_UNAVAILABLE' });
  });

  test('tells its kind, and a missing file its name without the folders of the machine', () => {
    expect(mistakeText(new Error('w', { cause: new TypeError('x is not a function') }))).toBe(
      'TypeError: x is not a function',
    );
    expect(mistakeText(missing)).toBe('the package lacks the file "work-A1.js"');
  });
});

test('an error of the office is known by its code', () => {
  const error = new OfficeError('DLO_PLAN_STATE', 'm');
  expect(isOfficeError(error)).toBe(true);
  expect(isOfficeError(error, 'DLO_PLAN_STATE', 'DLO_CONTENDED')).toBe(true);
  expect(isOfficeError(error, 'DLO_CONTENDED')).toBe(false);
  expect(isOfficeError({ code: 'DLO_PLAN_STATE' })).toBe(false);
});
