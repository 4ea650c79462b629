/** Whatever an expression and a message are made of, a filter says yes or no. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BrokerError } from '../../../local/broker/errors.ts';
import { receiveMessage } from '../../../local/broker/message.ts';
import { type Filter, Judge, sqlFilter } from '../../../local/broker/rules/filter.ts';
import { encode, encodeList, encodeSection, SECTION } from '../../../shared/brokers/serviceBus/amqp.ts';
import { dataSection, EVERY_TYPE, mapSection } from '../harness.ts';

const NAMES = Object.keys(EVERY_TYPE).map((name) => `[${name}]`);
const WORDS = [
  ...['AND', 'OR', 'NOT', 'IN', 'IS', 'NULL', 'LIKE', 'ESCAPE', 'EXISTS', 'TRUE', 'FALSE', '(', ')', ',', '.', '@p'],
  ...['=', '<>', '!=', '<', '>', '<=', '>=', '+', '-', '*', "'text'", "'%'", "'a_%'", "''''", '1', '0', '1.5', '1e400'],
  ...['sys.MessageId', 'sys.Label', 'sys.SessionId', 'sys.PartitionKey', 'sys.Nothing', 'user.absent', 'absent', '"q"'],
];
const operand = fc.constantFrom(
  ...NAMES,
  'absent',
  'sys.MessageId',
  'sys.Label',
  "'text'",
  '5',
  '-1',
  '1.5',
  'NULL',
  'TRUE',
);
const comparison = fc.constantFrom('=', '<>', '!=', '<', '>', '<=', '>=', 'LIKE', 'NOT LIKE');
const { condition } = fc.letrec((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4 },
    fc.tuple(operand, comparison, operand).map((parts) => parts.join(' ')),
    fc
      .tuple(operand, fc.array(operand, { minLength: 1, maxLength: 3 }))
      .map(([a, list]) => `${a} IN (${list.join(',')})`),
    fc.constantFrom(...NAMES, 'absent').map((name) => `${name} IS NOT NULL`),
    fc.constantFrom(...NAMES, 'absent').map((name) => `EXISTS(${name})`),
    tie('condition').map((part) => `NOT (${part})`),
    fc
      .tuple(tie('condition'), fc.constantFrom('AND', 'OR'), tie('condition'))
      .map(([a, op, b]) => `(${a}) ${op} (${b})`),
  ),
}));

const messages = [
  dataSection('bare'),
  Buffer.concat([
    mapSection(SECTION.messageAnnotations, { 'x-opt-partition-key': Buffer.from('45', 'hex') }),
    encodeSection(SECTION.properties, encodeList([Buffer.from('5307', 'hex'), ...Array(11).fill(encode.null())])),
    mapSection(SECTION.applicationProperties, EVERY_TYPE),
    dataSection('full'),
  ]),
].map((bytes) => receiveMessage(bytes, () => 'id').message);

function judgeAll(filter: Filter): boolean[] {
  return messages.map((message) => new Judge(message).accepts(filter));
}

describe('a SQL filter', () => {
  it('that is well-formed gives an answer for every message', () => {
    fc.assert(
      fc.property(condition as fc.Arbitrary<string>, (expression) => {
        if (expression.length > 1024) return;
        for (const answer of judgeAll(sqlFilter(expression))) expect(typeof answer).toBe('boolean');
      }),
      { numRuns: 2000 },
    );
  });

  it('of any words is refused with a reason, or gives an answer', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...WORDS, ...NAMES), { maxLength: 12 }), (words) => {
        try {
          judgeAll(sqlFilter(words.join(' ')));
        } catch (caught) {
          expect(caught).toBeInstanceOf(BrokerError);
        }
      }),
      { numRuns: 3000 },
    );
  });

  it('of any characters is refused with a reason, or gives an answer', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        try {
          judgeAll(sqlFilter(text));
        } catch (caught) {
          expect(caught).toBeInstanceOf(BrokerError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
