import { describe, expect, it } from 'vitest';
import { receiveMessage } from '../../../local/broker/message.ts';
import { MessageProperties } from '../../../local/broker/rules/properties.ts';
import { evaluate, FilterError, matchesPattern } from '../../../local/broker/rules/sql-evaluate.ts';
import { parseSql } from '../../../local/broker/rules/sql-parser.ts';
import { encode, encodeList, encodeSection, SECTION } from '../../../shared/brokers/serviceBus/amqp.ts';
import { dataSection, EVERY_TYPE, mapSection } from '../harness.ts';

const none = encode.null();
const items = [
  encode.string('id-1'),
  none,
  encode.string('there'),
  encode.string("it's"),
  none,
  encode.string('c'),
  encode.symbol('text/plain'),
];
const message = new MessageProperties(
  receiveMessage(
    Buffer.concat([
      mapSection(SECTION.messageAnnotations, { 'x-opt-partition-key': encode.string('p') }),
      encodeSection(SECTION.properties, encodeList(items)),
      mapSection(SECTION.applicationProperties, {
        ...EVERY_TYPE,
        color: encode.string('blue'),
        Path: encode.string('a/b%c'),
        'with space': encode.int(-7),
        AND: encode.int(1),
        half: Buffer.from('823fe0000000000000', 'hex'),
        beyond: Buffer.from('810020000000000001', 'hex'),
      }),
      dataSection('x'),
    ]),
    () => 'unused',
  ).message,
);

function truth(expression: string): boolean | undefined | 'error' {
  try {
    return evaluate(parseSql(expression), message);
  } catch (caught) {
    if (caught instanceof FilterError) return 'error';
    throw caught;
  }
}

describe('a SQL filter', () => {
  it.each([
    // Comparisons and types.
    ['1=1', true],
    ['1=0', false],
    ["color = 'blue'", true],
    ["COLOR = 'blue'", true],
    ["user.color <> 'blue'", false],
    ["color != 'red'", true],
    ["color = 'Blue'", false],
    ["color > 'blu' AND color < 'blux' AND color >= 'blue' AND color <= 'blue'", true],
    ['int = 5', true],
    ['5 = int', true],
    ['int = 5.0', true],
    ['int < 5.5', true],
    ['int = 6', false],
    ['half = 0.5', true],
    ['half = 5E-1', true],
    ['half < 1', true],
    ['float >= 1.5', true],
    ['ubyte = 255', true],
    ['ulongBeyondDouble = 9007199254740993', true],
    ['ulongBeyondDouble = 9007199254740992', false],
    ['beyond > 9007199254740992', true],
    ['beyond > 9007199254740992.0', true],
    ['[with space] = -7', true],
    ['"with space" = - 7', true],
    ['[AND] = +1', true],
    ['long <> 5', false],
    ['true = TRUE', true],
    ['[true] = TRUE', true],
    ['[false] = true', false],
    ['floatNaN = 1', false],
    ['floatNaN <> 1', true],
    ['floatNaN < 1', false],
    ['longNegative = -9223372036854775808', true],
    ['string = int', 'error'],
    ['color = 5', 'error'],
    ["int = '5'", 'error'],
    ['[true] > FALSE', 'error'],
    ["uuid = '00112233-4455-6677-8899-aabbccddeeff'", 'error'],
    ['uuid = uuid', true],
    ['timestamp = timestamp', true],
    ['binary = binary', 'error'],
    ['decimal128 = 1', 'error'],
    // System properties.
    ["sys.MessageId = 'id-1'", true],
    ["SYS.messageid = 'id-1'", true],
    ["sys.Label = 'it''s'", true],
    ["sys.Subject = 'it''s'", true],
    ["sys.To = 'there' AND sys.CorrelationId = 'c' AND sys.PartitionKey = 'p'", true],
    ["sys.ContentType LIKE 'text/%'", true],
    ["sys.ReplyTo = 'x'", undefined],
    ['sys.ReplyTo IS NULL AND sys.SessionId IS NULL AND NOT EXISTS(sys.ReplyToSessionId)', true],
    // Three-valued logic.
    ["nothing = 'x'", undefined],
    ["NOT nothing = 'x'", undefined],
    ["nothing <> 'x'", undefined],
    ["nothing = 'x' OR int = 5", true],
    ["nothing = 'x' OR int = 6", undefined],
    ["nothing = 'x' AND int = 5", undefined],
    ["nothing = 'x' AND int = 6", false],
    ['null = 1', undefined],
    ['[null] = 1', undefined],
    ['int = NULL', undefined],
    ['[null] IS NULL', true],
    ['EXISTS([null])', true],
    ['nothing IS NULL', true],
    ['nothing IS NOT NULL', false],
    ['int IS NOT NULL', true],
    ['exists(int)', true],
    ['EXISTS(user.nothing)', false],
    ['NOT EXISTS(nothing)', true],
    // Lists.
    ["color IN ('red', 'blue')", true],
    ["color NOT IN ('red', 'blue')", false],
    ["color IN ('red')", false],
    ['int IN (1, 5.0)', true],
    ['nothing IN (1)', undefined],
    ['nothing NOT IN (1)', undefined],
    ['int IN (1, nothing)', undefined],
    ['int NOT IN (5, nothing)', false],
    ["int IN ('5')", 'error'],
    // Patterns.
    ["color LIKE 'b%'", true],
    ["color LIKE '_lue'", true],
    ["color LIKE 'B%'", false],
    ["color NOT LIKE '%e'", false],
    ["Path LIKE 'a/b!%c' ESCAPE '!'", true],
    ["Path LIKE 'a/!b%' ESCAPE '!'", true],
    ["color LIKE 'bl!%e' ESCAPE '!'", false],
    ["color LIKE 'b%!' ESCAPE '!'", 'error'],
    ["color LIKE 'b%' ESCAPE '!!'", 'error'],
    ["nothing LIKE '%'", undefined],
    ["nothing NOT LIKE '%'", undefined],
    ["int LIKE '%'", 'error'],
    // Precedence, parentheses, case of keywords.
    ['int = 6 AND int = 6 OR int = 5', true],
    ['int = 6 AND (int = 6 OR int = 5)', false],
    ['NOT int = 6 AND int = 5', true],
    ['NOT (int = 5 OR int = 6)', false],
    ['not not (((int) = (5)))', true],
    ["int=5and color in('blue')", true],
    // The rest is not asked once the answer is known.
    ["int = 5 OR int = 'x'", true],
    ["int = 6 AND int = 'x'", false],
    ["int = 'x' OR int = 5", 'error'],
  ] as const)('finds %s %s', (expression, expected) => {
    expect(truth(expression)).toBe(expected);
  });

  it.each([
    ['', 'ends too early'],
    ['   ', 'ends too early'],
    ['color', 'where a condition is needed'],
    ['TRUE', 'where a condition is needed'],
    ['color =', 'ends too early'],
    ['= 5', "'='"],
    ["color = 'blue' extra", "'extra' is not expected"],
    ["color = 'blue", 'does not end'],
    ['[color = 1', 'does not end'],
    ['[] = 1', 'does not end'],
    ['(color = 1', 'ends too early'],
    ['color = 1)', "')'"],
    ['color IN ()', "')'"],
    ["color IN 'blue'", "'blue'"],
    ['color NOT = 1', "'='"],
    ['color IS 1', "'1'"],
    ['1 IS NULL', 'needs a property'],
    ['EXISTS(1)', 'needs a property'],
    ['(a = 1) = TRUE', 'not expected'],
    ['a = (b = 1)', 'where a value is needed'],
    ['a AND b = 1', 'where a condition is needed'],
    ['a + 1 = 2', 'arithmetic'],
    ['a = 2 * 1', 'arithmetic'],
    ['a = -b', 'arithmetic'],
    ['a = @p', 'parameters'],
    ["property('a') = 1", "the function 'property'"],
    ['newid() = 1', "the function 'newid'"],
    ['sys.Weather = 1', "'sys.Weather' does not exist"],
    ['other.a = 1', "the scope 'other'"],
    ['a = 9223372036854775808', '64 bits'],
    ['a = 99999999999999999999', '64 bits'],
    ['a = 1 ; b', "';'"],
    ['OR = 1', "'OR'"],
    ['a = 1 OR', 'ends too early'],
    ['x'.repeat(1025), '1024'],
  ])('that is not one is refused with a reason: %s', (expression, reason) => {
    expect(() => parseSql(expression)).toThrow(reason);
  });

  it('is refused or read whatever it is, and never takes long', () => {
    const deep = [
      '('.repeat(1000),
      `${'('.repeat(90)}a=1${')'.repeat(90)}`,
      `${'('.repeat(500)}a=1${')'.repeat(500)}`,
      `${'NOT '.repeat(250)}a=1`,
      `a${'=1 AND a'.repeat(120)}=1`,
    ];
    for (const expression of deep) {
      try {
        evaluate(parseSql(expression), message);
      } catch (caught) {
        expect((caught as Error).name).toMatch(/SqlSyntaxError|FilterError/);
      }
    }
    const before = performance.now();
    expect(matchesPattern('a'.repeat(30_000), `${'%a'.repeat(500)}b`, undefined)).toBe(false);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});
