/** What SQL actions make of a message, with the AMQP types that come out. */
import { describe, expect, it } from 'vitest';
import { encodeStringMap } from '../../../local/broker/encoding.ts';
import { receiveMessage } from '../../../local/broker/message.ts';
import { changed, sqlAction } from '../../../local/broker/rules/action.ts';
import { MessageProperties } from '../../../local/broker/rules/properties.ts';
import { encode, encodeSection, SECTION } from '../../../shared/brokers/serviceBus/amqp.ts';
import { dataSection } from '../harness.ts';

const PROPERTIES = {
  n: encode.int(7),
  text: encode.string('abc'),
  Flag: encode.boolean(true),
  gone: encode.string('x'),
};

function made(expression: string): MessageProperties | undefined {
  const section = encodeSection(SECTION.applicationProperties, encodeStringMap(PROPERTIES));
  const { message } = receiveMessage(Buffer.concat([section, dataSection('body')]), () => 'id-1');
  const copy = changed(message, sqlAction(expression), 'rule');
  return copy && new MessageProperties(copy);
}

describe('an action', () => {
  it.each([
    ['SET new = 1', 'new', { type: 'long', value: 1n }],
    ['SET n = 8', 'n', { type: 'int', value: 8 }],
    ["SET n = '9'", 'n', { type: 'int', value: 9 }],
    ['SET text = 5', 'text', { type: 'string', value: '5' }],
    ['SET FLAG = FALSE', 'Flag', { type: 'boolean', value: false }],
    ['SET new = 2 + 3 * -(4 - 1) % 5', 'new', { type: 'long', value: -2n }],
    ['SET new = n / 2.0', 'new', { type: 'double', value: 3.5 }],
    ["SET new = text + '''!'", 'new', { type: 'string', value: "abc'!" }],
    ["SET new = property('te' + 'xt')", 'new', { type: 'string', value: 'abc' }],
    ['SET new = nowhere + 1', 'new', { type: 'null', value: null }],
    ['SET new = newid()', 'new', { type: 'uuid' }],
    ['SET new = sys.MessageId', 'new', { type: 'string', value: 'id-1' }],
    ["SET a = 'x' SET b = a", 'b', { type: 'string', value: 'x' }],
    ['SET n = 1', 'RuleName', { type: 'string', value: 'rule' }],
  ])('%s', (expression, name, value) => {
    expect(made(expression)?.user(name)).toMatchObject(value);
  });

  it('takes properties away, and sets those of the system', () => {
    expect(made('REMOVE Gone; REMOVE nowhere')?.user('gone')).toBeUndefined();
    expect(made("SET sys.Label = 'l' + n")).toBeUndefined();
    const properties = made("SET sys.Label = 'l'; SET sys.SessionId = n; REMOVE sys.To");
    expect(properties?.system('Label')).toEqual({ type: 'string', value: 'l' });
    expect(properties?.system('SessionId')).toEqual({ type: 'string', value: '7' });
    expect(properties?.system('To')).toBeUndefined();
    expect(properties?.system('MessageId')).toEqual({ type: 'string', value: 'id-1' });
  });

  it.each([
    ["SET n = 'many'"],
    ['SET n = 1 / 0'],
    ['SET n = 9223372036854775807 + 1'],
    ["SET n = text - 'a'"],
    ['SET n = property(5)'],
  ])('that cannot be done lets no copy in: %s', (expression) => {
    expect(made(expression)).toBeUndefined();
  });

  it.each([
    ['', 'it ends where SET or REMOVE is needed'],
    ['SET a = 1 b', "'b' stands where SET or REMOVE is needed (character 11)"],
    ['SET sys.Nothing = 1', "'sys.Nothing' does not exist"],
    ['REMOVE sys.MessageId', "'sys.MessageId' cannot be changed in this way"],
    ['SET a = now()', "there is no function 'now'"],
    ['SET a = @x', "parameters ('@') are not supported"],
    [`SET a = ${'('.repeat(200)}1`, 'nested more than 100 times'],
    ['SET a = 1;'.repeat(33), 'it makes 33 changes, 32 are allowed'],
    [`SET a = '${'x'.repeat(1100)}'`, '1024 are allowed'],
  ])('that is none is refused: %s', (expression, reason) => {
    expect(() => sqlAction(expression)).toThrow(reason);
  });
});
