import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { ADVICES, CATEGORIES, type Dialect } from '../../shared/classify/evidence.ts';
import { CUT_TRACE } from '../../shared/classify/exceptions.ts';
import { classify, DIALECTS } from '../../shared/classify/index.ts';
import type { Letter, LetterProperty, PlanId, SequenceNumber } from '../../shared/letter.ts';
import { aLetter, aSight, NOW } from '../harness/values.ts';

const of = (reason: string | undefined, changes: Partial<Letter> = {}) => classify(aSight({ reason, ...changes }));

describe("the broker's own reasons", () => {
  const reasons = [
    ['MaxDeliveryCountExceeded', 'consumer-fault', 'fix-first'],
    ['TTLExpiredException', 'expired', 'investigate'],
    ['HeaderSizeExceeded', 'oversized', 'fix-first'],
    ['Session ID is null', 'topology', 'fix-first'],
    ['Session id is null.', 'topology', 'fix-first'],
    ['MaxTransferHopCountExceeded', 'topology', 'fix-first'],
  ] as const;

  it.each(reasons)('%s is %s, advice %s', (reason, category, advice) => {
    expect(of(reason)).toMatchObject({ category, advice, evidence: { reason }, dialects: ['service-bus'] });
  });

  it.each(reasons)(
    '%s is known in odd case, with blanks around it and with a dot behind it',
    (reason, category, advice) => {
      const bare = reason.replace(/\.$/, '');
      for (const odd of [bare.toUpperCase(), bare.toLowerCase(), `  ${bare}\t`, `\n${bare}`, `${bare}.`]) {
        expect(of(odd), odd).toMatchObject({ category, advice });
      }
    },
  );

  it.each(['TTLExpiredException', 'TTLExpiredEXCEPTION', 'ttlExpiredException', 'TTLExpiredException.'])(
    '%s is not taken for an exception of a consumer',
    (reason) => {
      expect(of(reason).evidence.exceptionType).toBeUndefined();
    },
  );
});

describe("an application's reason", () => {
  it.each(['UnsupportedCurrency', 'MaxDeliveryCountExceededByFar', 'no', '0', 'constructor', '__proto__', '😀'])(
    '%j says that the consumer decided, and no more',
    (reason) => {
      expect(of(reason)).toMatchObject({
        category: 'unknown',
        advice: 'investigate',
        rule: 'application-reason',
        evidence: { reason },
      });
      expect(of(reason).evidence.exceptionType).toBeUndefined();
    },
  );

  it.each([
    'System.NullReferenceException',
    'com.example.Orders$Inner.ParseError',
    'TypeError',
    'soap.Fault',
    'App\\Billing\\CurrencyException',
    'Outer+InnerException',
    '_PrivateError',
  ])('%s is read as an exception too', (reason) => {
    expect(of(reason).evidence).toMatchObject({ reason, exceptionType: reason });
  });

  it.each(['An Error', 'Error: no', 'error', 'Exceptional', '1Exception', 'Some-Error', `${'x'.repeat(300)}Error`])(
    '%j is no exception',
    (reason) => {
      expect(of(reason).evidence.exceptionType).toBeUndefined();
    },
  );
});

describe('a reason that is all there is', () => {
  it.each([
    ['Attempt 3 of 3 failed: System.TimeoutException: no answer', 'System.TimeoutException'],
    ['TypeError: order.lines is not iterable', 'TypeError'],
    ['Error: no', undefined],
  ])('%s', (reason, exceptionType) => {
    expect(of(reason, { description: undefined }).evidence.exceptionType).toBe(exceptionType);
  });

  it('is judged by its words where there are no types', () => {
    expect(of('dial tcp 10.0.0.7:5432: connect: connection refused', { description: undefined })).toMatchObject({
      category: 'transient',
      rule: 'exception:connection',
    });
  });

  it('and an exception as reason beside a trace that was cut has no line of code for its message', () => {
    const description = 'Traceback (most recent call last):\n  File "/app/a.py", line 1, in a\n    return orders[';
    expect(of('KeyError', { description }).evidence).toMatchObject({
      exceptionType: 'KeyError',
      exceptionMessage: CUT_TRACE,
      frame: 'a (a.py:1)',
    });
  });

  it('and an exception as reason has the message and cause of the one printed, with or without its namespace', () => {
    const description =
      'System.TimeoutException: no answer\n ---> System.Net.Sockets.SocketException (110): Connection timed out\n   bei A.B()';
    expect(of('TimeoutException', { description }).evidence).toMatchObject({
      exceptionMessage: 'no answer',
      causeType: 'System.Net.Sockets.SocketException',
      causeMessage: 'Connection timed out',
    });
  });
});

describe('a letter without a reason', () => {
  it.each([undefined, '', '   ', '\t\n'])('(%j) is unknown', (reason) => {
    const found = of(reason);
    expect(found).toMatchObject({ category: 'unknown', advice: 'investigate', rule: 'no-reason' });
    expect(found.evidence.reason).toBeUndefined();
  });

  test('keeps its description', () => {
    expect(of(undefined, { description: ' it broke ' }).evidence.description).toBe('it broke');
  });

  test('and without a description is recognised by no dialect', () => {
    expect(of(undefined, { description: undefined, subject: 'OrderPlaced' }).dialects).toEqual([]);
  });
});

test('the header of Wolverine tells the type, also without those of an exception', () => {
  const properties = [{ name: 'message-type', type: 'string', value: 'Shop.OrderPlaced' }];
  expect(of('x', { properties }).evidence.messageType).toBe('Shop.OrderPlaced');
  expect(of('x', { properties, subject: 'other' }).evidence.messageType).toBe('Shop.OrderPlaced');
});

test("the message's subject is its type", () => {
  expect(of('x', { subject: ' OrderPlaced ' }).evidence.messageType).toBe('OrderPlaced');
  expect(of('x', { subject: '  ' }).evidence.messageType).toBeUndefined();
});

describe('dialects', () => {
  const says = (name: string, evidence: Record<string, string> | undefined): Dialect => ({
    name,
    layer: 'framework',
    read: () => evidence,
  });
  const fails: Dialect = {
    name: 'fragile',
    layer: 'framework',
    read: () => {
      throw new Error('cannot read this', { cause: new Error('odd header') });
    },
  };

  test('the first to know a field decides it, the others add what it left out', () => {
    const found = classify(aSight(), [
      says('one', { reason: 'first' }),
      says('none', undefined),
      says('two', { reason: 'second', messageType: 'T' }),
    ]);
    expect(found.evidence).toEqual({ reason: 'first', messageType: 'T' });
    expect(found.dialects).toEqual(['one', 'two']);
  });

  test('one that throws makes the letter unknown, with the error and what was known so far', () => {
    const found = classify(aSight({ reason: 'MaxDeliveryCountExceeded' }), [says('one', { messageType: 'T' }), fails]);
    expect(found).toEqual({
      category: 'unknown',
      advice: 'investigate',
      rule: 'dialect-failed',
      evidence: { messageType: 'T' },
      dialects: ['one'],
      layers: [{ dialect: 'one', layer: 'framework', evidence: { messageType: 'T' } }],
      error: 'fragile: cannot read this: odd header',
    });
  });

  it.each([['text'], [null], [undefined], [{ a: 1 }], [Symbol('s')], [Object.create(null)]])(
    'one that throws something that is no error (%#) is no different',
    (thrown) => {
      const odd: Dialect = {
        name: 'odd',
        layer: 'framework',
        read: () => {
          throw thrown;
        },
      };
      const found = classify(aSight(), [odd, ...DIALECTS]);
      expect(found.rule).toBe('dialect-failed');
      expect(found.error).toMatch(/^odd: /);
    },
  );

  test('an endless error is cut', () => {
    const loud: Dialect = {
      name: 'loud',
      layer: 'framework',
      read: () => {
        throw new Error('x'.repeat(100_000));
      },
    };
    expect(classify(aSight(), [loud]).error?.length).toBeLessThan(600);
  });
});

test('a letter that came back is never simply sent again', () => {
  const replay = { count: 1, planId: '20261130t104512-k3f5q2xa' as PlanId, of: '3' as SequenceNumber, at: NOW };
  for (const reason of ['MaxDeliveryCountExceeded', 'TTLExpiredException', 'UnsupportedCurrency', undefined]) {
    expect(of(reason, { replay }).advice).not.toBe('replay');
  }
});

const anyText = fc.option(fc.oneof(fc.string({ unit: 'binary' }), fc.constant('__proto__')), { nil: undefined });
const property: fc.Arbitrary<LetterProperty> = fc.record({
  name: fc.string({ unit: 'binary' }),
  type: fc.constantFrom('string', 'int', 'null', 'uuid'),
  value: fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.boolean(), fc.constant(null)),
});
const anyLetter: fc.Arbitrary<Letter> = fc
  .record({
    reason: anyText,
    description: anyText,
    subject: anyText,
    messageId: anyText,
    contentType: anyText,
    properties: fc.array(property),
    deliveryCount: fc.integer(),
    timeToLive: fc.option(fc.double(), { nil: undefined }),
    replay: fc.record({
      count: fc.nat(),
      planId: fc.constant(undefined),
      of: fc.constant(undefined),
      at: fc.option(fc.double(), { nil: undefined }),
    }),
  })
  .map((changes) => aLetter(changes));

test('whatever the letter, it gets a category and an advice and nothing is thrown', () => {
  fc.assert(
    fc.property(anyLetter, (letter) => {
      const found = classify(aSight(letter));
      expect(CATEGORIES).toContain(found.category);
      expect(ADVICES).toContain(found.advice);
      if (letter.replay.count > 0) expect(found.advice).not.toBe('replay');
    }),
  );
});
