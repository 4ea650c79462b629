import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCatalog } from '../../shared/catalog.ts';
import type { Evidence } from '../../shared/classify/evidence.ts';
import { classify, DIALECTS } from '../../shared/classify/index.ts';
import { parseJsonPath, valueAt } from '../../shared/classify/jsonPath.ts';
import { compileKnowledge } from '../../shared/classify/knowledge.ts';
import { compilePattern, fits, foldText, MAX_COMPARED } from '../../shared/classify/pattern.ts';
import { compileRule, firstVerdict, type Rule, ruleSchema } from '../../shared/classify/rules.ts';
import type { Letter } from '../../shared/letter.ts';
import { aCatalog, anEntry, aSight, SETTINGS } from '../harness/values.ts';

type Json = Record<string, unknown>;

const aRule = (when: Json, changes: Json = {}): Rule =>
  ruleSchema.parse({ name: 'mine', when, category: 'poison', advice: 'fix-first', ...changes });

describe('a pattern', () => {
  const isFit = (pattern: string, text: string) => fits(compilePattern(pattern), foldText(text));

  test.each([
    ['abc', 'abc'],
    ['ABC', 'abC'],
    ['a*', 'abc'],
    ['*c', 'abc'],
    ['*b*', 'abc'],
    ['a*c', 'ac'],
    ['*', ''],
    ['**', 'x'],
    ['a*b*c', 'a-b-b-c'],
    ['App\\*\\GatewayTimeout', 'App\\Exceptions\\GatewayTimeout'],
    ['(a+)+$.?', '(a+)+$.?'],
  ])('%s fits %s', (pattern, text) => {
    expect(isFit(pattern, text)).toBe(true);
  });

  test.each([
    ['abc', 'abcd'],
    ['a*', 'ba'],
    ['*c', 'cb'],
    ['ab*ba', 'aba'],
    ['a*b*c', 'acb'],
    ['a?c', 'abc'],
    ['.*', 'abc'],
  ])('%s does not fit %s', (pattern, text) => {
    expect(isFit(pattern, text)).toBe(false);
  });

  test('fits as a regular expression of the same meaning does', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 12 });
    fc.assert(
      fc.property(letters, fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 }), (pattern, text) => {
        expect(isFit(pattern, text)).toBe(new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's').test(text));
      }),
    );
  });

  test('compares no more of a text than its beginning', () => {
    expect(isFit('*end', `${'x'.repeat(MAX_COMPARED)}end`)).toBe(false);
    expect(foldText('x'.repeat(100_000)).length).toBe(MAX_COMPARED);
  });
});

describe('a path', () => {
  const json = { order: { lines: [{ sku: 'a' }, { sku: 'b' }], 'odd name': 1 }, a: null };
  test.each([
    ['order.lines[1].sku', 'b'],
    ['$.order.lines[0].sku', 'a'],
    ['order["odd name"]', 1],
    ['order.lines[2].sku', undefined],
    ['order.lines.length', undefined],
    ['order[0]', undefined],
    ['a.b', undefined],
    ['constructor', undefined],
    ['__proto__', undefined],
  ])('%s', (path, expected) => {
    expect(valueAt(json, parseJsonPath(path) ?? [])).toEqual(expected);
  });

  test.each(['', '$', 'a..b', 'a[*]', 'a[-1]', '..a', 'a.', 'a[', 'a b', '*', 'x'.repeat(300), `${'a.'.repeat(40)}a`])(
    '%s is none',
    (path) => {
      expect(parseJsonPath(path)).toBeUndefined();
    },
  );
});

describe('a condition', () => {
  const evidence: Evidence = {
    reason: 'PaymentFailed',
    description: 'vendor 17 refused card',
    exceptionType: 'System.AggregateException',
    exceptionMessage: 'One or more errors',
    causeType: 'Vendor.CardRefused',
    causeMessage: 'do not honour',
    messageType: 'Shop.Order',
  };
  const properties: Letter['properties'] = [
    { name: 'tenant', type: 'string', value: 'Acme' },
    { name: 'attempt', type: 'int', value: 3 },
    { name: 'test', type: 'boolean', value: true },
  ];
  const sight = () => aSight({ properties }, '{"order":{"kind":"test","lines":[{"price":1.5}]}}');
  const speaks = (when: Json) => firstVerdict([compileRule(aRule(when), 'own')], sight(), evidence) !== undefined;

  test.each([
    { reason: 'paymentfailed' },
    { description: 'vendor * refused *' },
    { exceptionType: 'Vendor.*' },
    { exceptionType: ['nothing', '*.AggregateException'] },
    { exceptionMessage: '*honour' },
    { messageType: 'Shop.*' },
    { property: { name: 'tenant', equals: 'Acme' } },
    { property: { name: 'tenant', matches: 'ac*' } },
    { property: { name: 'attempt', equals: '3' } },
    { property: { name: 'test', equals: 'true' } },
    { bodyPath: { path: 'order.kind', equals: 'test' } },
    { bodyPath: { path: '$.order.lines[0].price', equals: '1.5' } },
    { bodyPath: { path: 'order.kind', matches: ['no', 'TE*'] } },
    { reason: 'Payment*', description: '*refused*', property: { name: 'tenant', equals: 'Acme' } },
  ])('%j holds', (when) => {
    expect(speaks(when)).toBe(true);
  });

  test.each([
    { reason: 'Payment' },
    { property: { name: 'tenant', equals: 'acme' } },
    { property: { name: 'Tenant', equals: 'Acme' } },
    { property: { name: 'none', matches: '*' } },
    { bodyPath: { path: 'order', matches: '*' } },
    { bodyPath: { path: 'order.none', matches: '*' } },
    { reason: 'Payment*', description: 'nothing' },
  ])('%j does not', (when) => {
    expect(speaks(when)).toBe(false);
  });

  test('on a field that the letter does not have never holds', () => {
    expect(firstVerdict([compileRule(aRule({ exceptionType: '*' }), 'own')], aSight(), {})).toBeUndefined();
  });

  test('on the body does not hold where the body is no JSON, too large or not at hand', () => {
    const rule = compileRule(aRule({ bodyPath: { path: 'a', matches: '*' } }), 'own');
    for (const one of [aSight({}, 'no'), aSight({}, `{"a":1,"b":"${'x'.repeat(70_000)}"}`)]) {
      expect(firstVerdict([rule], one, {})).toBeUndefined();
    }
  });
});

describe('own rules', () => {
  const knowing = (own: Rule[], all: Rule[] = []) => compileKnowledge({ rules: own, payloads: {} }, all);

  test("the first to fit speaks, a source's own before those for all, and before everything else", () => {
    const sight = () => aSight({ reason: 'TTLExpiredException' });
    const one = aRule({ reason: 'TTL*' }, { name: 'one', label: 'Old news', runbook: 'https://example.org/old' });
    const two = aRule({ reason: '*' }, { name: 'two', category: 'transient', advice: 'replay' });
    expect(classify(sight(), DIALECTS, knowing([one], [two]))).toMatchObject({
      category: 'poison',
      advice: 'fix-first',
      rule: 'own:one',
      label: 'Old news',
      runbook: 'https://example.org/old',
    });
    expect(classify(sight(), DIALECTS, knowing([], [two, one])).rule).toBe('catalog:two');
    expect(classify(aSight({ reason: undefined, description: undefined }), DIALECTS, knowing([one], [two])).rule).toBe(
      'no-reason',
    );
  });

  test('cannot have a letter that came back simply sent again', () => {
    const rule = aRule({ reason: '*' }, { category: 'transient', advice: 'replay' });
    const replay = { count: 1, planId: undefined, of: undefined, at: undefined };
    expect(classify(aSight({ replay }), DIALECTS, knowing([rule]))).toMatchObject({
      category: 'transient',
      advice: 'investigate',
      rule: 'own:mine+returned',
    });
  });

  test('do not judge a letter of which a dialect could not make sense', () => {
    const fails = {
      name: 'fails',
      layer: 'framework' as const,
      read: () => {
        throw new Error('no');
      },
    };
    expect(classify(aSight(), [fails, ...DIALECTS], knowing([aRule({ reason: '*' })])).rule).toBe('dialect-failed');
  });
});

describe('the catalog refuses', () => {
  const problem = (rules: unknown, changes: Json = {}) => {
    try {
      parseCatalog(aCatalog({ sources: [anEntry({ rules })], ...changes }), SETTINGS);
      return 'nothing';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const rule = { name: 'mine', when: { reason: 'x' }, category: 'poison', advice: 'fix-first' };

  test.each([
    [{ ...rule, when: {} }, 'sources.0.rules.0.when: needs at least one condition'],
    [{ ...rule, when: { reason: '' } }, 'sources.0.rules.0.when.reason'],
    [{ ...rule, when: { reason: 'x'.repeat(501) } }, 'sources.0.rules.0.when.reason'],
    [{ ...rule, when: { raeson: 'x' } }, 'sources.0.rules.0.when: Unrecognized key'],
    [{ ...rule, when: { property: { name: 'a' } } }, 'needs either `equals` or `matches`'],
    [{ ...rule, when: { property: { name: 'a', equals: 'x', matches: 'y' } } }, 'needs either `equals` or `matches`'],
    [
      { ...rule, when: { bodyPath: { path: 'a..b', equals: 'x' } } },
      'sources.0.rules.0.when.bodyPath.path: must be a path',
    ],
    [{ ...rule, category: 'bad' }, 'sources.0.rules.0.category'],
    [{ ...rule, advice: 'ignore' }, 'sources.0.rules.0.advice'],
    [{ ...rule, runbook: 'not a url' }, 'sources.0.rules.0.runbook'],
    [{ ...rule, name: 'Not A Label' }, 'sources.0.rules.0.name: must be lower-case'],
  ])('%j', (bad, expected) => {
    expect(problem([bad])).toContain(expected);
  });

  test('two rules of one name', () => {
    expect(problem([rule, rule])).toContain('sources.0.rules.1.name: is used twice');
    expect(problem([rule], { rules: [rule] })).toBe('nothing');
  });

  test('more patterns than one letter can be compared with', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => ({
        ...rule,
        name: `r-${i}`,
        when: { reason: Array.from({ length: 20 }, (_, j) => `${j}`) },
      }));
    expect(problem(many(50))).toBe('nothing');
    expect(problem(many(30), { rules: many(21) })).toContain('sources.0.rules: has 1020 patterns');
  });
});
