import { describe, expect, test } from 'vitest';
import { LetterBody } from '../../shared/classify/body.ts';
import { serviceBus } from '../../shared/classify/dialects/serviceBus.ts';
import { classify, judgeAgain } from '../../shared/classify/index.ts';
import { NO_KNOWLEDGE } from '../../shared/classify/knowledge.ts';
import { Sight } from '../../shared/classify/sight.ts';
import { letterView } from '../../shared/http/views.ts';
import type { Letter } from '../../shared/letter.ts';
import { tellOrigin } from '../../shared/plan/origin.ts';
import type { Finding } from '../../shared/records/plan.ts';
import { fromRow, toRow } from '../../shared/store/letterRow.ts';
import { aLetter, aRecord, aSight, aSource, NOW, SUBSCRIPTION } from '../harness/values.ts';

const LIMIT = {
  reason: 'MaxDeliveryCountExceeded',
  description: 'Message could not be consumed after 10 delivery attempts.',
};
const fault = (name: string, value: string) => ({ name, type: 'string', value });
const signs = (changes: Partial<Letter>, body = '', consumedBy?: string) =>
  classify(aSight(changes, body, consumedBy)).signs;

describe('what the counts tell', () => {
  test('no exception at the delivery limit, from a framework that writes each of them: its locks ran out', () => {
    expect(signs({ ...LIMIT, contentType: 'application/vnd.masstransit+json' })).toEqual(['locks-ran-out']);
  });

  test('the same from any other consumer: locks, or a consumer that writes nothing', () => {
    expect(signs(LIMIT)).toEqual(['no-exception-told']);
    expect(signs(LIMIT, '', 'azure-functions')).toEqual(['no-exception-told']);
  });

  test('an exception that is told is no such case', () => {
    const properties = [fault('MT-Fault-ExceptionType', 'System.TimeoutException')];
    expect(signs({ ...LIMIT, properties })).toBeUndefined();
  });

  test('no reason at all: the application did it, and gave none', () => {
    expect(signs({ reason: undefined, description: undefined })).toEqual(['no-reason-told']);
    expect(signs({ reason: undefined, description: 'it broke' })).toBeUndefined();
    const properties = [fault('MT-Reason', 'fault'), fault('MT-Fault-ExceptionType', 'System.TimeoutException')];
    expect(signs({ reason: undefined, description: undefined, properties })).toBeUndefined();
  });
});

describe('a body that is said to be unreadable', () => {
  const JSON_FAULT = {
    reason: 'System.Text.Json.JsonException',
    description: 'The JSON value could not be converted.',
  };
  test.each([
    [JSON_FAULT, '{"amount":"x"}', ['body-is-json']],
    [{ reason: 'DecodeFailed', description: 'could not decode the message' }, '\ufeff{"amount":1}', ['body-is-json']],
    [{ reason: 'x', description: 'json: cannot unmarshal string' }, '"x"', ['body-is-json']],
    [JSON_FAULT, '<order amount="1"/>\r\n', ['body-is-text']],
    [JSON_FAULT, '{"amount":', ['body-is-text']],
    [JSON_FAULT, 'a\u0000b', undefined],
    [JSON_FAULT, '', undefined],
    [{ reason: 'OutOfStock', description: 'none left' }, '{"amount":1}', undefined],
  ])('%j with the body %j', (why, body, expected) => {
    expect(signs(why, body)).toEqual(expected);
  });

  test('is not looked at where nobody says so', () => {
    const letter = aLetter({ reason: 'OutOfStock', description: 'none left' });
    const body = new LetterBody(letter.body, () => {
      throw new Error('the body was asked for');
    });
    expect(classify(new Sight(letter, body), [serviceBus]).signs).toBeUndefined();
    expect(body.isUnread).toBe(false);
  });

  test('is remembered when the letter is judged again without it', () => {
    const found = classify(aSight(JSON_FAULT, '{}'));
    expect(judgeAgain(aSight(JSON_FAULT), found, NO_KNOWLEDGE).signs).toEqual(['body-is-json']);
  });
});

test('signs are shown with what they mean, and come back from the store', () => {
  const letter = aLetter(LIMIT);
  const found = classify(aSight(LIMIT));
  const row = toRow(aSource().key, 'test', letter, found, NOW);
  const stored = { ...JSON.parse(JSON.stringify(row)), enqueuedAt: new Date(0), firstSeen: new Date(0) };
  expect(fromRow({ ...stored, etag: '' }).classification.signs).toEqual(['no-exception-told']);
  expect(letterView(aSource(), aRecord(LIMIT, found)).signs).toEqual([
    { sign: 'no-exception-told', means: expect.stringContaining('nothing tells of an exception') },
  ]);
});

test('a sign of a later version is no reason not to read the row', () => {
  const row = toRow(aSource().key, 'test', aLetter(LIMIT), classify(aSight(LIMIT)), NOW);
  const found = { ...JSON.parse(String(row.found)), signs: ['of-tomorrow', 'no-exception-told'] };
  const stored = { ...JSON.parse(JSON.stringify(row)), enqueuedAt: new Date(0), firstSeen: new Date(0) };
  expect(fromRow({ ...stored, found: JSON.stringify(found), etag: '' }).classification.signs).toEqual([
    'no-exception-told',
  ]);
});

describe('where a letter died first', () => {
  const from = (deadLetterSource: string) => aRecord({ deadLetterSource }, classify(aSight({ deadLetterSource })));

  test('is in its evidence, and its suggested target', () => {
    const view = letterView(aSource(), from('work'));
    expect(view.evidence.deadLetterSource).toBe('work');
    expect(view.suggestedTarget).toBe('work');
  });

  test('is no target where it is a subscription', () => {
    expect(letterView(aSource(), from('news/Subscriptions/mail')).suggestedTarget).toBeNull();
  });

  test('else the target is what the catalog says', () => {
    expect(letterView(aSource(), aRecord()).suggestedTarget).toBe('orders');
    expect(letterView(aSource(SUBSCRIPTION), aRecord()).suggestedTarget).toBeNull();
  });

  test('comes back from the store, and a row without it is read', () => {
    const letter = aLetter({ deadLetterSource: 'work' });
    const row = toRow(aSource().key, 'test', letter, classify(aSight()), NOW);
    const stored = { ...JSON.parse(JSON.stringify(row)), enqueuedAt: new Date(0), firstSeen: new Date(0), etag: '' };
    expect(fromRow(stored).letter.deadLetterSource).toBe('work');
    const { deadLetterSource: _, ...old } = stored;
    expect(fromRow(old).letter.deadLetterSource).toBeUndefined();
  });

  test('is told by the finding that there is no target, each place once', () => {
    const finding: Finding = { code: 'no-direct-target', level: 'block', letters: 0, message: 'there is none' };
    const told = ['work', 'work', 'other', 'news/Subscriptions/mail'].reduce<readonly Finding[]>(
      (findings, deadLetterSource) => tellOrigin(findings, aLetter({ deadLetterSource })),
      [finding],
    );
    expect(told).toEqual([
      {
        ...finding,
        suggested: ['work', 'other', 'news/Subscriptions/mail'],
        message: expect.stringMatching(/^there is none; .* died first in work, other, news\/Subscriptions\/mail: /),
      },
    ]);
    const other: Finding = { ...finding, code: 'fan-out' };
    expect(tellOrigin([other], aLetter({ deadLetterSource: 'work' }))).toEqual([other]);
  });
});
