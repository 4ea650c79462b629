import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { sourceKey } from '../../shared/catalog.ts';
import type { Evidence } from '../../shared/classify/evidence.ts';
import { causeOf, MAX_CAUSE, parseFingerprint } from '../../shared/classify/fingerprint.ts';
import { formerFingerprint } from '../../shared/classify/former/fingerprint.ts';
import { frameOf } from '../../shared/classify/frame.ts';
import { templateOf } from '../../shared/classify/template.ts';
import { PRIVATE, TOLD } from '../fixtures/causeTexts.ts';
import { CAUSES, manyDeaths, pairwise } from '../harness/causes.ts';

const WHERE = sourceKey('host', 'orders');

/**
 * Fingerprints as they are kept in tables and named in runbooks. One that changes here tears every group in two: then it is a new
 * version, beside this one. The second one is what version 1 made: by it is found what people said of a cause then.
 *
 * Version 2 came because version 1 put causes together that have nothing in common: letters of any source and type that tell
 * nothing, and texts that differ in a quoted status, a column, a table, or in JSON.
 */
const GOLDEN: readonly (readonly [now: string, formerly: string, words: string, Evidence])[] = [
  ['f2-N5bc0lGkJgFQVsQHiJUSnr', 'f1-Em64n7F0qPnVf_khsfbCJo', 'No reason told (orders)', {}],
  [
    'f2-6dYB-wobXHG2_6IAWnjUqp',
    'f1-3wWwgmi75eptwf9J_1dCjG',
    'Delivery limit reached, no exception told (orders)',
    { reason: 'MaxDeliveryCountExceeded', description: 'Message could not be consumed after 10 delivery attempts.' },
  ],
  [
    'f2-qzFUocBLdFLcwI0nsJ43XZ',
    'f1-ekkc78b2W5jCkW1b23Vc6A',
    'Time to live ended (orders)',
    { reason: 'TTLExpiredException' },
  ],
  [
    'f2-oqtocK1S4DriRXAaGXTH6W',
    'f1-7kggwi7FrtdIS80FUtmAEQ',
    'Header too large (orders)',
    { reason: 'HeaderSizeExceeded' },
  ],
  [
    'f2-FEjgoPIdNduj-fKNPpa5pl',
    'f1-oo10SzFJwfa2rufZgHl0xw',
    'Session id missing (orders)',
    { reason: 'Session ID is null.' },
  ],
  [
    'f2-H50l1kY9FqgRENDvWMhVjK',
    'f1-DNSzIUX52Map6prcBqjH-n',
    'Forwarded too often (orders)',
    { reason: 'MaxTransferHopCountExceeded' },
  ],
  [
    'f2-wE79ok802m3IcWmq8AiWiA',
    'f1-wE79ok802m3IcWmq8AiWiA',
    'UnsupportedCurrency: no such currency',
    { reason: 'UnsupportedCurrency', description: 'no such currency' },
  ],
  [
    'f2-snZQMz1NnTiWmBIzMTQe_s',
    'f1-snZQMz1NnTiWmBIzMTQe_s',
    'order <number> of <time> failed',
    { description: 'order 4711 of 2026-04-20T16:30:00Z failed' },
  ],
  [
    'f2-44js72IS4oopGa0Eb5t72K',
    'f1-44js72IS4oopGa0Eb5t72K',
    'TimeoutException: The payment API did not answer within <time>',
    {
      exceptionType: 'System.TimeoutException',
      exceptionMessage: 'The payment API did not answer within 00:00:30',
      frame: 'at Shop.Pay.Charge()',
    },
  ],
  [
    'f2-3xazqeVgYjRkxT6hiwYR24',
    'f1-3xazqeVgYjRkxT6hiwYR24',
    'NullReferenceException: Object reference not set to an instance of an object. (in Shop.Orders.Handler.Handle)',
    {
      exceptionType: 'MassTransit.ConsumerException',
      causeType: 'System.NullReferenceException',
      causeMessage: 'Object reference not set to an instance of an object.',
      frame: 'at Shop.Orders.Handler.<Handle>d__5.MoveNext() in /src/Handler.cs:line 42',
    },
  ],
  [
    'f2-HQ0dVDkrTW_HiEObu6m5qi',
    'f1-HQ0dVDkrTW_HiEObu6m5qi',
    'IllegalArgumentException: Amount <number> EUR exceeds the limit of account <number> (in com.shop.Check.apply)',
    {
      exceptionType: 'java.lang.IllegalArgumentException',
      exceptionMessage: 'Amount 12.50 EUR exceeds the limit of account 7',
      frame: 'at com.shop.Check.apply(Check.java:42)',
    },
  ],
  [
    'f2-n6GIOGwMZqPSmX_gsz8lEB',
    'f1-n6GIOGwMZqPSmX_gsz8lEB',
    'AxiosError: Request failed with status code 503',
    {
      exceptionType: 'AxiosError',
      exceptionMessage: 'Request failed with status code 503',
      frame: 'at charge (/app/pay.js:1:2)',
    },
  ],
  [
    'f2-ijA1vU0r482gUjsN1O-xEP',
    'f1-HGKLVIbulnSWXoPEhd9DRh',
    'KeyError: vat (in tax.py rate_of)',
    { exceptionType: 'KeyError', exceptionMessage: "'vat'", frame: 'File "/app/tax.py", line 12, in rate_of' },
  ],
  [
    'f2-9NIYxZ7ZuOM-vvSMfXG4ue',
    'f1-9NIYxZ7ZuOM-vvSMfXG4ue',
    'OrderClosed: Order <value> is closed (in App\\Orders->handle)',
    {
      exceptionType: 'App\\Exceptions\\OrderClosed',
      exceptionMessage: 'Order {"id":7} is closed',
      frame: '#0 /var/www/src/Orders.php(12): App\\Orders->handle()',
    },
  ],
];

describe('a fingerprint never changes', () => {
  it.each(GOLDEN)('%s, once %s: %s', (fingerprint, formerly, words, evidence) => {
    expect(causeOf(evidence, WHERE)).toEqual({ fingerprint, words });
    expect(formerFingerprint(evidence)).toBe(formerly);
  });
});

describe('where nothing is known', () => {
  const other = sourceKey('host', 'billing');
  it.each<[string, Evidence]>([
    [
      'delivery limit',
      { reason: 'MaxDeliveryCountExceeded', description: 'Message could not be consumed after 10 delivery attempts.' },
    ],
    ['time to live', { reason: 'TTLExpiredException' }],
    ['hops', { reason: 'MaxTransferHopCountExceeded' }],
    ['sessions', { reason: 'Session ID is null.' }],
    ['header', { reason: 'HeaderSizeExceeded' }],
    ['skipped', { reason: 'dead-letter', mechanism: 'skipped' }],
    ['skipped without a word', { mechanism: 'skipped' }],
    ['no reason', {}],
    ['values only', { reason: '4711', description: '{"id":"7a0f3c1e"}' }],
    ['a type that any program throws', { exceptionType: 'System.Exception' }],
  ])('source and message type are part of the cause: %s', (_what, evidence) => {
    const of = (messageType: string | undefined, source = WHERE) =>
      causeOf({ ...evidence, ...(messageType !== undefined && { messageType }) }, source);
    const groups = [of('OrderPlaced'), of('OrderPaid'), of(undefined), of('OrderPlaced', other), of(undefined, other)];
    expect(new Set(groups.map(({ fingerprint }) => fingerprint)).size).toBe(groups.length);
    expect(of('OrderPlaced').words).toMatch(/ \(OrderPlaced in orders\)$/);
    expect(of(undefined, other).words).toMatch(/ \(billing\)$/);
    // A subject that is a text with values is no type for each letter.
    expect(of('Order 4711 of ada@example.org')).toEqual(of('Order 12 of li@example.org'));
    expect(of('Order 4711 of ada@example.org').words).not.toContain('ada');
  });

  it.each<[string, Evidence]>([
    ['an exception', { reason: 'MaxDeliveryCountExceeded', exceptionType: 'E', exceptionMessage: 'boom' }],
    ['words of the application', { reason: 'Declined' }],
    ['a type of its own', { exceptionType: 'Shop.OrderClosedException' }],
    ['where it was thrown', { exceptionType: 'Exception', frame: 'at Shop.Run()' }],
  ])('but with %s a cause is one wherever it strikes', (_what, evidence) => {
    expect(causeOf({ ...evidence, messageType: 'A' }, WHERE)).toEqual(
      causeOf({ ...evidence, messageType: 'B' }, other),
    );
  });
});

describe('what texts mean', () => {
  const group = (told: string | Evidence) =>
    causeOf(typeof told === 'string' ? { reason: 'Failed', description: told } : told, WHERE);

  it.each(TOLD)('one cause, whatever its values: %s', (_cause, ...texts) => {
    expect(new Set(texts.map((told) => group(told).fingerprint)).size).toBe(1);
  });

  test('each is a cause of its own', () => {
    const groups = new Map<string, string>();
    for (const [cause, first = ''] of TOLD) {
      const { fingerprint, words } = group(first);
      expect(groups.get(fingerprint), `${cause}: ${words}`).toBeUndefined();
      groups.set(fingerprint, cause);
    }
  });

  it.each(PRIVATE)('nobody is named in a cause: %s', (text, secret) => {
    for (const evidence of [{ description: text }, { exceptionType: 'E', exceptionMessage: text }]) {
      expect(causeOf(evidence, WHERE).words.toLowerCase()).not.toContain(secret.toLowerCase());
    }
    expect(templateOf(text).key).not.toContain(secret.toLowerCase());
  });

  test('an error told as JSON is read in any order of its fields, with anything beside them', () => {
    const fields = { name: 'PaymentError', message: 'card 4711 was declined', code: 'card_declined', status: 402 };
    const told = group(JSON.stringify(fields)).fingerprint;
    const name = fc.stringMatching(/^x[a-z]{3,8}$/);
    const beside = fc.dictionary(name, fc.oneof(fc.string(), fc.integer(), fc.boolean()), { maxKeys: 5 });
    const shuffled = fc.shuffledSubarray(Object.entries(fields), { minLength: 4 });
    fc.assert(
      fc.property(beside, shuffled, fc.nat(), (more, entries, number) => {
        const one = { ...more, ...Object.fromEntries(entries), message: `card ${number} was declined` };
        expect(group(JSON.stringify(one)).fingerprint).toBe(told);
        expect(group(JSON.stringify(JSON.stringify(one))).fingerprint).toBe(told);
      }),
      { numRuns: 100 },
    );
  });

  const VALUES = fc.oneof(
    fc.uuid(),
    fc.nat().map((n) => String(n)),
    fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((date) => date.toISOString()),
    fc.ipV4(),
    fc.stringMatching(/^[0-9a-f]{24}$/).filter((hex) => /\d/.test(hex)),
    fc.nat(99_999).map((cents) => `${(cents / 100).toFixed(2)} EUR`),
    fc.nat(999).map((n) => `ada.${n}@example.org`),
  );
  const SENTENCES = [
    (value: string) => `Status(StatusCode="NotFound", Detail="order ${value} was not found")`,
    (value: string) => `rpc error: code = Aborted desc = order ${value} is closed`,
    (value: string) =>
      JSON.stringify({ title: 'Bad Request', status: 400, detail: `order ${value} is closed`, traceId: value }),
    (value: string) => `relation "orders" has no row "${value}"`,
    (value: string) => `Invalid object name 'dbo.Orders' (${value})`,
    (value: string) => `"order ${value} is closed already"`,
  ];

  it.each(SENTENCES.map((say) => [say('…'), say] as const))('any value is the same cause: %s', (_text, say) => {
    const told = templateOf(say('4711')).key;
    fc.assert(
      fc.property(VALUES, (value) => {
        expect(templateOf(say(value)).key).toBe(told);
      }),
      { numRuns: 200 },
    );
  });

  test('names of what the program knows are causes apart, wherever a program writes them', () => {
    const word = fc.stringMatching(/^[a-z]{3,8}(?:_[a-z]{3,8}){0,2}$/).filter((one) => !/^[a-f_]*$/.test(one));
    const says = [
      "Invalid object name 'dbo.@'.",
      'column "@" does not exist',
      "No module named '@'",
      'code = @ desc = no',
      '{"code":"@"}',
      "'@'",
    ];
    fc.assert(
      fc.property(word, word, fc.constantFrom(...says), (a, b, say) => {
        fc.pre(a !== b);
        expect(templateOf(say.replace('@', a)).key).not.toBe(templateOf(say.replace('@', b)).key);
      }),
      { numRuns: 300 },
    );
  });
});

describe('grouping is measured', () => {
  it.each([1, 2, 3])('40 causes in 5,000 letters: nearly every pair is where it belongs (seed %i)', (seed) => {
    const letters = manyDeaths(5000, seed).map(({ cause, evidence }) => ({
      cause,
      group: causeOf(evidence, WHERE).fingerprint,
    }));
    const { precision, recall } = pairwise(letters);
    console.log(`seed ${seed}: precision ${precision.toFixed(4)}, recall ${recall.toFixed(4)}`);
    expect(CAUSES).toHaveLength(40);
    expect(precision).toBeGreaterThanOrEqual(0.98);
    expect(recall).toBeGreaterThanOrEqual(0.98);
  });

  test('the measure itself: all in one group has no precision, each alone no recall', () => {
    const letters = Array.from({ length: 100 }, (_, i) => ({ cause: i % 10, group: 'one' }));
    expect(pairwise(letters)).toEqual({ precision: 450 / 4950, recall: 1 });
    expect(pairwise(letters.map(({ cause }, i) => ({ cause, group: String(i - (i % 2)) })))).toMatchObject({
      recall: 0,
    });
  });
});

describe('one cause', () => {
  const group = (evidence: Evidence) => causeOf(evidence, WHERE).fingerprint;
  const timeout: Evidence = { exceptionType: 'System.TimeoutException', exceptionMessage: 'no answer after 30 s' };

  it.each<[string, Evidence]>([
    ['in another source, of another message type', { ...timeout, messageType: 'InvoicePaid', consumer: 'invoices' }],
    ['told with the name of its class only', { ...timeout, exceptionType: 'TimeoutException' }],
    [
      'told with its type before its text',
      { ...timeout, exceptionMessage: 'System.TimeoutException: no answer after 5 s' },
    ],
    [
      'under a wrapper',
      {
        exceptionType: 'ConsumerException',
        causeType: 'System.TimeoutException',
        causeMessage: 'no answer after 1 second',
      },
    ],
    [
      'after as many attempts as the broker allows',
      {
        ...timeout,
        reason: 'MaxDeliveryCountExceeded',
        description: 'Message could not be consumed after 10 delivery attempts.',
      },
    ],
    ['thrown elsewhere: what failed is not the code that waited', { ...timeout, frame: 'at Shop.Other.Run()' }],
    [
      'with other ids, times and names beside it',
      { ...timeout, failedAt: 7, attempts: 3, correlationId: 'c', traceId: 't' },
    ],
  ])('is one group %s', (_what, evidence) => {
    expect(group(evidence)).toBe(group(timeout));
  });

  it.each<[string, Evidence]>([
    ['another exception', { ...timeout, exceptionType: 'System.OperationCanceledException' }],
    ['another text', { ...timeout, exceptionMessage: 'no connection after 30 s' }],
    ['no text', { exceptionType: 'System.TimeoutException' }],
    ['a reason only', { reason: 'TimeoutException', description: 'no answer after 30 s' }],
  ])('is not %s', (_what, evidence) => {
    expect(group(evidence)).not.toBe(group(timeout));
  });

  test('a fault of the program itself is told apart by where it was thrown', () => {
    const fault: Evidence = { exceptionType: 'TypeError', exceptionMessage: 'x is not a function' };
    const at = (frame: string) => group({ ...fault, frame });
    expect(at('at price (/app/a.js:12:5)')).toBe(at('at price (/srv/b.js:90:1)'));
    expect(at('at price (/app/a.js:12:5)')).not.toBe(at('at ship (/app/a.js:12:5)'));
  });

  test('where the exception has no text, the description tells, else the own reason', () => {
    const bare = { exceptionType: 'Shop.Rejected' };
    const own = { ...bare, reason: 'Declined' };
    expect(group({ ...own, description: 'card 4711 expired' })).toBe(group({ ...own, description: 'card 12 expired' }));
    expect(group({ ...own, description: 'card expired' })).not.toBe(group({ ...own, description: 'card stolen' }));
    expect(group(own)).not.toBe(group({ ...bare, reason: 'Unknown' }));
    expect(group({ ...bare, reason: 'MaxDeliveryCountExceeded' })).toBe(group(bare));
  });

  test('blanks and nothing are no evidence', () => {
    expect(group({ reason: ' ', description: '\n', exceptionType: '' })).toBe(group({}));
  });
});

describe('what varies becomes a placeholder', () => {
  it.each([
    ['order 4711 not found', 'order <number> not found'],
    ['order 7a0f3c1e-1111-4222-8333-444455556666 not found', 'order <id> not found'],
    ['order 01ARZ3NDEKTSV4RRFFQ69G5FAV not found', 'order <id> not found'],
    ['order deadbeef not found', 'order <id> not found'],
    ['no customer "Ada Lovelace" here', 'no customer <value> here'],
    ["no customer 'Seán O'Brien' here", 'no customer <value> here'],
    ["the consumer can't read it, so it won't", "the consumer can't read it, so it won't"],
    ['mail to ada.lovelace+shop@mail.example.co.uk bounced', 'mail to <address> bounced'],
    ['at 2026-04-20T16:30:00.123+02:00 it failed', 'at <time> it failed'],
    ['at 2014-11-11 02:26:58:000462 Z it failed', 'at <time> it failed'],
    ['on Mon, 20 Apr 2026 16:30:00 GMT it failed', 'on <time> GMT it failed'],
    ['within 00:00:30.5 or PT30S', 'within <time> or <time>'],
    ['GET https://user:pw@shop.example.com:8443/a/b?token=xyz failed', 'GET <url> failed'],
    ['no route to 10.0.0.17:5671', 'no route to <host>:<number>'],
    ['no route to fd00::1:2', 'no route to <host>'],
    ['no route to db-1.prod.svc.cluster.local', 'no route to <host>'],
    ['cannot write /var/lib/shop/ada.txt', 'cannot write <path>'],
    ['cannot write C:\\Users\\Ada\\order.txt', 'cannot write <path>'],
    ['Order{id=7, name=Ada} is closed', 'Order<value> is closed'],
    ['payload {"name": "Ada", "items": [1, 2]} refused', 'payload <value> refused'],
    ['payload {"name": "Ada', 'payload <value>'],
    ['userId=ada, tenant: blue', 'userId=<value>, tenant: <value>'],
    ['ids 1, 2, 3 and 4', 'ids <number> and <number>'],
    ['status code 404', 'status code 404'],
    [
      'Response status code does not indicate success: 503 (Service Unavailable)',
      'Response status code does not indicate success: 503 (Service Unavailable)',
    ],
    ['HTTP/1.1 429 for order 429', 'HTTP/1.1 429 for order <number>'],
    ['[Errno 111] refused, ORA-00060, SQLSTATE[40P01]', '[Errno 111] refused, ORA-00060, SQLSTATE[40P01]'],
    ['no cast from System.Int32 to Shop.V2.Money in UTF-8', 'no cast from System.Int32 to Shop.V2.Money in UTF-8'],
    ['no handler for com.shop.OrderPlaced', 'no handler for com.shop.OrderPlaced'],
    ['', ''],
  ])('%s', (text, words) => {
    expect(templateOf(text).words).toBe(words);
  });

  it.each([
    ['after 1 second', 'after 30 seconds'],
    ['after 30s of waiting', 'after 1.5 minutes of waiting'],
    ['1 item missing', '12 items missing'],
    ['ids 1, 2 and 3 are gone', 'ids 7 are gone'],
    ['12.50 EUR exceed it', 'USD 1,200.00 exceed it'],
    ['Order 5 Is Closed.', 'order 6 is closed'],
    ['no answer\n   at Shop.A()\n   at Shop.B()', 'no answer\r\n   at Shop.C()'],
    [
      'Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 5',
      'Traceback (most recent call last):\n  File "b.py", line 9, in f\nKeyError: 77',
    ],
  ])('is alike: %j, %j', (a, b) => {
    expect(templateOf(a).key).toBe(templateOf(b).key);
  });

  it.each([
    ['order 5 is paid', 'order 5 is closed'],
    ['status code 404', 'status code 503'],
    ['ORA-00060', 'ORA-00001'],
    ['cannot read Int32', 'cannot read DateTime'],
  ])('is not alike: %j, %j', (a, b) => {
    expect(templateOf(a).key).not.toBe(templateOf(b).key);
  });

  test('no value of a message gets into the words of its group', () => {
    const secrets = [
      'Lovelace',
      'ada@example.org',
      '4111111111111111',
      '+49-170-1234567',
      'DE89370400440532013000',
      'sk_live_51H8abc',
    ];
    for (const secret of secrets) {
      const told = `customer "Ada ${secret}" with ${secret === 'Lovelace' ? 'it' : secret} and name=${secret} failed`;
      expect(causeOf({ exceptionType: 'E', exceptionMessage: told }, WHERE).words).not.toContain(secret);
      expect(causeOf({ reason: 'Refused', description: told }, WHERE).words).not.toContain(secret);
    }
  });
});

describe('the frame', () => {
  it.each([
    ['at Shop.Orders.Handler.<Handle>d__5.MoveNext() in /src/Handler.cs:line 42', 'Shop.Orders.Handler.Handle'],
    ['at Shop.Orders.Handler.<>c__DisplayClass1_0.<Handle>b__0(Order o)', 'Shop.Orders.Handler.Handle'],
    ['Shop.Orders.Handler`1.Handle[T](T order)', 'Shop.Orders.Handler.Handle'],
    ['at com.shop.Order.handle(Order.java:42)', 'com.shop.Order.handle'],
    ['com.shop.Order.lambda$handle$3(Order.java:9)', 'com.shop.Order.handle'],
    ['at async OrderHandler.handle (/app/dist/order.js:12:5)', 'OrderHandler.handle'],
    ['at /app/dist/order.js:12:5', 'order.js'],
    ['File "/app/orders.py", line 12, in handle', 'orders.py handle'],
    ['#0 /var/www/src/Orders.php(12): App\\Orders->handle()', 'App\\Orders->handle'],
    ['', ''],
  ])('%s', (text, name) => {
    expect(frameOf(text)).toBe(name);
  });
});

describe('whatever a sender writes', () => {
  const HOSTILE: readonly (readonly [string, string])[] = [
    ['quotes', "'".repeat(65_536)],
    ['open quotes', ' "a'.repeat(20_000)],
    ['brackets', '{['.repeat(30_000)],
    ['braces closed late', `${'{:'.repeat(900)}${'}'.repeat(900)}`],
    ['at signs', 'a@a.'.repeat(16_000)],
    ['colons', ':a'.repeat(30_000)],
    ['dots', '1.'.repeat(30_000)],
    ['slashes', '/\\'.repeat(30_000)],
    ['equals', 'a='.repeat(30_000)],
    ['dashes', '-'.repeat(65_536)],
    ['letters', 'a'.repeat(65_536)],
    ['placeholders of ours', '\uE000\uE001\uE010 \uE007'.repeat(1000)],
    ['lone surrogates', '\uD800 \uDFFF'.repeat(1000)],
    ['a stack of 64 KiB', `boom\n${'   at Shop.Orders.Handle() in /src/a.cs:line 1\n'.repeat(1400)}`],
    ['prototype words', '__proto__ constructor toString'],
  ];

  it.each(HOSTILE)('%s: there is a fingerprint, and a short cause', (_what, text) => {
    for (const evidence of [
      { exceptionType: text, exceptionMessage: text, frame: text, reason: text, description: text },
      { reason: text, description: text },
      { causeType: 'E', description: text, frame: text },
    ]) {
      const { fingerprint, words } = causeOf(evidence, WHERE);
      expect(parseFingerprint(fingerprint)).toBe(fingerprint);
      expect(words.length).toBeGreaterThan(0);
      expect(words.length).toBeLessThanOrEqual(MAX_CAUSE);
    }
  });

  test('what a sender takes for our placeholders is no word of the cause', () => {
    expect(templateOf('a \uE000 b \uE015')).toEqual({ key: 'a b', words: 'a b' });
  });

  test('any text at all, twice the same', () => {
    const text = fc.option(fc.string({ maxLength: 3000, unit: 'binary' }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.record({ reason: text, description: text, exceptionType: text, exceptionMessage: text, frame: text }),
        (made) => {
          const evidence = Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined));
          const found = causeOf(evidence, WHERE);
          expect(parseFingerprint(found.fingerprint)).toBe(found.fingerprint);
          expect(causeOf(evidence, WHERE)).toEqual(found);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test.each([
  '',
  'f1-',
  'f0-abcdefghijklmnopqrstuv',
  'f1-abcdefghijklmnopqrstu',
  'f1-abcdefghijklmnopqrstuvw',
  'f1-abcdefghijklmnopqrstu/',
  'x1-abcdefghijklmnopqrstuv',
  'f1234-abcdefghijklmnopqrstuv',
])('%j is no fingerprint', (text) => {
  expect(parseFingerprint(text)).toBeUndefined();
});
