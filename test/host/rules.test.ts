import { describe, expect, it } from 'vitest';
import { settingsOf } from '../../cli/settings.ts';
import { isDisabled, resolveBinding } from '../../local/host/bindingSettings.ts';
import { parseTimeSpan } from '../../local/host/hostJson.ts';
import { matchRoute, parseRoute, splitPath } from '../../local/host/routes.ts';
import { parseSchedule } from '../../local/host/timers.ts';
import { overlayBody, toDateTime } from '../../local/host/triggerMetadata.ts';

describe('a schedule', () => {
  const next = (expression: string, after: string) => parseSchedule(expression).next(new Date(after))?.toISOString();

  it.each([
    ['0 */5 * * * *', '2026-03-01T10:02:00Z', '2026-03-01T10:05:00.000Z'],
    ['*/5 * * * *', '2026-03-01T10:02:00Z', '2026-03-01T10:05:00.000Z'],
    ['30 0 2 * * *', '2026-03-28T23:00:00Z', '2026-03-29T02:00:30.000Z'],
    ['0 0 9 * JAN Mon-fri', '2026-01-02T10:00:00Z', '2026-01-05T09:00:00.000Z'],
    // Day of month and day of week must both match: the next Friday the 13th, not the next 13th or Friday.
    ['0 0 0 13 * FRI', '2026-03-14T00:00:00Z', '2026-11-13T00:00:00.000Z'],
  ])('%s after %s is due at %s', (expression, after, due) => {
    expect(next(expression, after)).toBe(due);
  });

  it.each([
    '',
    '* * *',
    '* * * * * * *',
    '60 * * * * *',
    '0 0 0 L * *',
    '0 0 0 * * 7',
    '0 0 0 * * 5L',
    '@daily',
    '00:05:00',
  ])('%j is refused', (expression) => {
    expect(() => parseSchedule(expression)).toThrow(/schedule/);
  });
});

describe('a route', () => {
  it.each([
    ['a/{id:guid}', 'a/0f8fad5b-d9cb-469f-a165-70867728950e', { id: '0f8fad5b-d9cb-469f-a165-70867728950e' }],
    ['a/{id:guid}', 'a/7', undefined],
    ['a/{id:int:min(5)}', 'a/4', undefined],
    ['a/{id:int:min(5)}', 'a/5', { id: '5' }],
    ['a/{id:long}', 'a/9223372036854775807', { id: '9223372036854775807' }],
    ['a/{id:long}', 'a/9223372036854775808', undefined],
    ['a/{id:alpha:maxlength(3)}', 'a/abcd', undefined],
    ['a/{size:range(1,9)=5}', 'a', { size: '5' }],
    ['{**rest}', 'x/y', { rest: 'x/y' }],
    ['a/{id}', 'a', undefined],
    ['a', 'a/b', undefined],
    ['', '', {}],
  ])('%s and the path %s', (template, path, params) => {
    expect(matchRoute(parseRoute(template), splitPath(`/${path}`) ?? [])).toEqual(params);
  });

  it.each(['a/{id', 'a/{id}-{part}', '{*rest}/a', '{id?}/a', '{id}/{ID}', '{id:regex(a+)}'])(
    '%s is refused',
    (template) => {
      expect(() => parseRoute(template)).toThrow(/^Route/);
    },
  );
});

describe('settings', () => {
  const settings = settingsOf({
    Queue: 'orders',
    My__Nested: 'deep',
    Empty: '',
    'AzureWebJobs.Reader.disabled': 'True',
  });

  it('are found without regard to case, and __ is the same as a colon', () => {
    expect([settings.get('QUEUE'), settings.get('my:nested'), settings.get('Empty')]).toEqual([
      'orders',
      'deep',
      undefined,
    ]);
  });

  it('replace %NAME% in bindings', () => {
    const binding = { type: 'queueTrigger', direction: 'in' as const, queueName: '%queue%-%My__Nested%', batch: 1 };
    expect(resolveBinding('f', binding, settings)).toEqual({ ...binding, queueName: 'orders-deep' });
  });

  it('switch functions off', () => {
    expect([isDisabled('reader', settings), isDisabled('other', settings)]).toEqual([true, false]);
  });
});

describe('time', () => {
  it.each([
    ['00:05:00', 300_000],
    ['1.00:00:00', 86_400_000],
    ['00:00:00.5', 500],
    ['5', undefined],
    ['00:61:00', undefined],
  ])('the time span %s is %s ms', (text, milliseconds) => {
    expect(parseTimeSpan(text)).toBe(milliseconds);
  });

  it.each([
    ['2026-01-02T03:04:05.120Z', '2026-01-02T03:04:05.12Z'],
    ['2026-01-02T03:04:00.000Z', '2026-01-02T03:04:00Z'],
  ])('%s is written as %s', (moment, text) => {
    expect(toDateTime(new Date(moment), 'Z')).toBe(text);
  });
});

describe('metadata', () => {
  it('is hidden by properties of a JSON body, whatever their case', () => {
    const metadata = { MessageId: { string: 'real' }, To: { string: 'x' } };
    const body = '{"messageId":123,"flag":false,"none":null,"list":[1],"part":{"A":1}}';
    expect(overlayBody(metadata, body)).toEqual({
      MessageId: { string: '123' },
      To: { string: 'x' },
      flag: { string: 'False' },
      part: { json: '{"A":1}' },
    });
  });

  it.each(['plain', '[1]', '{broken}', '"text"', ''])('stays as it is for the body %j', (body) => {
    expect(overlayBody({ To: { string: 'x' } }, body)).toEqual({ To: { string: 'x' } });
  });
});
