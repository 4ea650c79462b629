import { describe, expect, test } from 'vitest';
import { parseCatalog } from '../../shared/catalog.ts';
import { classify, DIALECTS } from '../../shared/classify/index.ts';
import { compileKnowledge } from '../../shared/classify/knowledge.ts';
import { compilePayload } from '../../shared/classify/payload.ts';
import { patternProblem } from '../../shared/classify/schemaLimits.ts';
import { aCatalog, anEntry, aSight, SETTINGS } from '../harness/values.ts';

type Json = Record<string, unknown>;

const ORDER: Json = {
  type: 'object',
  required: ['orderId', 'lines'],
  properties: {
    orderId: { type: 'integer', minimum: 1 },
    currency: { type: 'string', pattern: '^[A-Z]{3}$' },
    lines: { type: 'array', minItems: 1, items: { $ref: '#/$defs/line' } },
  },
  $defs: { line: { type: 'object', required: ['sku'], properties: { sku: { type: 'string' } } } },
};

describe('a body beside its schema', () => {
  const check = compilePayload(ORDER);
  const line = { sku: 'a' };

  test.each([
    [{ orderId: 1, lines: [line] }, []],
    [{ orderId: 9007199254740992, lines: [line], more: {} }, []],
    [{ lines: [line] }, ['orderId required']],
    [{ orderId: 'x', lines: [] }, ['orderId type', 'lines minItems']],
    [{ orderId: 1, lines: [line, { sku: 7 }, {}] }, ['lines[1].sku type', 'lines[2].sku required']],
    [{ orderId: 1, lines: [line], currency: 'euro' }, ['currency pattern']],
    [[], ['$ type']],
    [null, ['$ type']],
  ])('%j', (body, expected) => {
    expect(check(body).map(({ path, problem }) => `${path} ${problem}`)).toEqual(expected);
  });

  test('is told where it does not fit, never with what it holds', () => {
    const byCustomer = compilePayload({
      type: 'object',
      additionalProperties: { type: 'object', required: ['age'], properties: { age: { type: 'integer' } } },
    });
    const text = JSON.stringify(byCustomer({ 'ada@example.org': { age: 'secret' } }));
    expect(JSON.parse(text)).toEqual([{ path: '*.age', problem: 'type' }]);
  });

  test('with a thousand mistakes is told the first ones only', () => {
    const lines = Array.from({ length: 1000 }, () => ({}));
    expect(check({ orderId: 1, lines })).toEqual([{ path: 'lines[0].sku', problem: 'required' }]);
    expect(check({ orderId: 1, lines: lines.slice(0, 50) })).toHaveLength(5);
  });

  test('is checked as draft-07 says where the schema is of that kind', () => {
    const draft7 = compilePayload({ $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }] });
    expect(draft7([1])).toEqual([{ path: '[0]', problem: 'type' }]);
  });
});

describe('the catalog refuses a schema', () => {
  const problem = (schema: Json) => {
    try {
      parseCatalog(aCatalog({ sources: [anEntry({ payloads: { 'Shop.Order': schema } })] }), SETTINGS);
      return 'nothing';
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each<[string, Json, string]>([
    ['of an unknown type', { type: 'orders' }, 'type must be'],
    ['with a typing error', { type: 'object', requierd: ['a'] }, 'unknown keyword: "requierd"'],
    ['of an unknown version', { $schema: 'http://json-schema.org/draft-04/schema#' }, '$schema must be'],
    ['that refers outside', { $ref: 'https://example.org/order.json' }, '$ref must refer into the same schema'],
    ['that refers to itself', { properties: { child: { $ref: '#' } } }, 'properties.child.$ref refers to itself'],
    [
      'that refers to itself by a detour',
      { $ref: '#/$defs/a', $defs: { a: { items: { $ref: '#/$defs/b' } }, b: { anyOf: [{ $ref: '#/$defs/a' }] } } },
      'recursive schemas are not supported',
    ],
    [
      'that compares all items',
      { properties: { a: { uniqueItems: true } } },
      'properties.a.uniqueItems is not supported',
    ],
    ['with a pattern that can hang', { properties: { a: { pattern: '^(a+)+$' } } }, 'properties.a.pattern could hang'],
    ['with a property name that can hang', { patternProperties: { '^(a|a)*$': {} } }, 'patternProperties could hang'],
    [
      'with a property of a keyword’s name',
      { properties: { default: { pattern: '(a+)+' } } },
      'properties.default.pattern could',
    ],
    [
      'that unfolds into very many',
      {
        $ref: '#/$defs/a',
        $defs: Object.fromEntries(
          ['a', 'b', 'c', 'd', 'e'].map((name, i, all) => [
            name,
            { allOf: Array.from({ length: 9 }, () => (i < 4 ? { $ref: `#/$defs/${all[i + 1]}` } : {})) },
          ]),
        ),
      },
      'is too large',
    ],
  ])('%s', (_name, schema, expected) => {
    expect(problem(schema)).toContain(`sources.0.payloads.Shop.Order: `);
    expect(problem(schema)).toContain(expected);
  });

  test('but takes two of one $id, formats, and patterns that cannot hang', () => {
    const schema = {
      $id: 'https://example.org/order',
      properties: { a: { type: 'string', format: 'email', pattern: '^\\d+$' } },
    };
    const payloads = { a: schema, b: schema };
    expect(() => parseCatalog(aCatalog({ sources: [anEntry({ payloads })] }), SETTINGS)).not.toThrow();
    // Formats are notes, not conditions.
    expect(compilePayload(schema)({ a: '17' })).toEqual([]);
  });
});

test.each(['^[A-Z]{3}$', '\\d{4}-\\d{2}', '^ORD-\\d+$', '^[^@]*@', '^a{2,5}b$', '^\\p{Lu}+$', '\\$$', '[\\]]'])(
  'the pattern %s is taken',
  (pattern) => {
    expect(patternProblem(pattern)).toBeUndefined();
  },
);

test.each(['(a+)+', '^a+b+$', 'a+', '^a?a?$', '^(foo|bar)$', '^(?=a)', '(', '^\\1$', 'a{70}', '^a{1,5}b{1,5}$'])(
  'the pattern %s is not',
  (pattern) => {
    expect(patternProblem(pattern)).toBeDefined();
  },
);

describe('classification', () => {
  const knowledge = compileKnowledge({ rules: [], payloads: { 'Shop.Order': ORDER } }, []);
  const of = (body: string, changes = {}) =>
    classify(
      aSight({ subject: 'Shop.Order', reason: 'System.TimeoutException', ...changes }, body),
      DIALECTS,
      knowledge,
    );

  test('calls a body that does not fit poison, whatever the exception was', () => {
    expect(of('{"orderId":0,"lines":[]}')).toMatchObject({
      category: 'poison',
      advice: 'fix-first',
      rule: 'payload:Shop.Order',
      violations: [
        { path: 'orderId', problem: 'minimum' },
        { path: 'lines', problem: 'minItems' },
      ],
    });
    expect(of('{"orderId":1,"lines":[{"sku":"a"}]}')).toMatchObject({
      category: 'transient',
      rule: 'exception:timeout',
    });
  });

  test('calls a body that is no JSON poison too', () => {
    for (const body of ['', 'order 17', '{"orderId":', '\ufffd\u0000']) {
      expect(of(body)).toMatchObject({ rule: 'payload:Shop.Order', violations: [{ path: '$', problem: 'json' }] });
    }
  });

  test('looks at no body of another type, and at none that it cannot read: that it says', () => {
    expect(of('no', { subject: 'Shop.Other' }).violations).toBeUndefined();
    expect(of(`{"a":"${'x'.repeat(70_000)}"}`)).toMatchObject({ rule: 'exception:timeout', unread: ['body'] });
    const value = of('no', { body: { kind: 'value', bytes: 2, hash: 'h' } });
    expect(value).toMatchObject({ rule: 'exception:timeout', unread: ['body'] });
  });

  test('looks into the envelope of a framework', () => {
    const contentType = 'application/vnd.masstransit+json';
    const envelope = (message: unknown) => JSON.stringify({ messageType: ['urn:message:Shop:Order'], message });
    expect(
      of(envelope({ orderId: 1, lines: [{ sku: 'a' }] }), { contentType, subject: undefined }).violations,
    ).toBeUndefined();
    expect(of(envelope({ lines: [{ sku: 'a' }] }), { contentType, subject: undefined })).toMatchObject({
      rule: 'payload:Shop.Order',
      violations: [{ path: 'orderId', problem: 'required' }],
    });
  });

  test('takes a body of any depth', () => {
    const deep = `${'['.repeat(15_000)}${']'.repeat(15_000)}`;
    expect(of(deep)).toMatchObject({ rule: 'payload:Shop.Order', violations: [{ path: '$', problem: 'type' }] });
    expect(of(`{"orderId":1,"lines":[{"sku":"a","x":${deep}}]}`).violations).toBeUndefined();
  });
});
