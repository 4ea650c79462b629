/** The actions of topic rules, and what they make of a message. */
import { randomUUID } from 'node:crypto';
import { type AmqpValue, encode } from '../../../shared/brokers/serviceBus/amqp.ts';
import { encodeDouble } from '../encoding.ts';
import { BrokerError } from '../errors.ts';
import { type StoredMessage, withoutProperty, withProperties, withPropertyText } from '../message.ts';
import { MessageProperties, systemPlace } from './properties.ts';
import { type Arithmetic, type Change, type Expression, parseSqlAction } from './sql-action.ts';
import { FilterError, nameOf, read } from './sql-evaluate.ts';
import { type Comparable, comparable } from './values.ts';

/** What a rule does to the copy it lets in. */
export interface Action {
  readonly expression: string;
  readonly changes: readonly Change[];
}

/** The property by which a copy tells the rule whose action made it (documentation, "Topic filters and actions"). */
const RULE_NAME = 'RuleName';

/** An action for a SQL expression. Throws a {@link BrokerError} that says what is wrong with it. */
export function sqlAction(expression: string): Action {
  try {
    return { expression, changes: parseSqlAction(expression) };
  } catch (caught) {
    const text = caught instanceof Error ? caught.message : String(caught);
    throw new BrokerError('com.microsoft:argument-error', `The SQL action '${expression.slice(0, 100)}': ${text}.`);
  }
}

/** The copy that the rule `ruleName` makes of a message; `undefined` when a change is not possible. */
export function changed(message: StoredMessage, action: Action, ruleName: string): StoredMessage | undefined {
  try {
    const copy = action.changes.reduce(apply, message);
    return withProperties(copy, [{ name: RULE_NAME, value: encode.string(ruleName) }]);
  } catch (caught) {
    if (caught instanceof FilterError) return undefined;
    throw caught;
  }
}

function apply(message: StoredMessage, change: Change): StoredMessage {
  const { property } = change;
  const properties = new MessageProperties(message);
  const value = change.kind === 'set' ? resultOf(change.to, properties) : undefined;
  if (property.kind === 'system') {
    if (property.name === 'PartitionKey') throw new FilterError('the partition key cannot be changed');
    const text = value === undefined ? undefined : textOf(value);
    return withPropertyText(message, systemPlace(property.name), text);
  }
  const name = properties.userName(property.name) ?? property.name;
  if (change.kind === 'remove') return withoutProperty(message, name);
  const before = properties.user(name);
  return withProperties(message, [{ name, value: before ? converted(value, before) : encoded(value) }]);
}

function resultOf(expression: Expression, message: MessageProperties): Comparable | undefined {
  switch (expression.kind) {
    case 'new-id':
      return { kind: 'uuid', value: randomUUID() };
    case 'named': {
      const name = resultOf(expression.name, message);
      if (name?.kind !== 'string') throw new FilterError('property() needs the name of a property');
      const value = message.user(name.value);
      return value && comparable(value);
    }
    case 'minus': {
      const value = resultOf(expression.of, message);
      return value && calculated('-', { kind: 'integer', value: 0n }, value);
    }
    case 'arithmetic': {
      const left = resultOf(expression.left, message);
      const right = resultOf(expression.right, message);
      return left && right && calculated(expression.sign, left, right);
    }
    default:
      return read(expression, message);
  }
}

/** Whole numbers stay whole and are 64 bits; with a double among them all are. A plus joins texts. */
function calculated(sign: Arithmetic, left: Comparable, right: Comparable): Comparable {
  if (left.kind === 'string' && right.kind === 'string' && sign === '+') {
    return { kind: 'string', value: left.value + right.value };
  }
  if (left.kind === 'integer' && right.kind === 'integer') {
    if (right.value === 0n && (sign === '/' || sign === '%'))
      throw new FilterError('a whole number is divided by zero');
    const value = whole(sign, left.value, right.value);
    if (BigInt.asIntN(64, value) !== value) throw new FilterError(`${value} does not fit 64 bits`);
    return { kind: 'integer', value };
  }
  const isNumber = ({ kind }: Comparable) => kind === 'integer' || kind === 'double';
  if (!isNumber(left) || !isNumber(right)) {
    throw new FilterError(`'${sign}' does not work on ${nameOf(left)} and ${nameOf(right)}`);
  }
  return { kind: 'double', value: broken(sign, Number(textOf(left)), Number(textOf(right))) };
}

function whole(sign: Arithmetic, left: bigint, right: bigint): bigint {
  switch (sign) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    case '%':
      return left % right;
  }
}

function broken(sign: Arithmetic, left: number, right: number): number {
  switch (sign) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    case '%':
      return left % right;
  }
}

function textOf(value: Comparable): string {
  if (value.kind === 'opaque') throw new FilterError(`a ${value.type} cannot become a text`);
  if (value.kind === 'timestamp') return new Date(Number(value.value)).toISOString();
  return String(value.value);
}

/** A value in the type a new property gets. */
function encoded(value: Comparable | undefined): Buffer {
  switch (value?.kind) {
    case undefined:
      return encode.null();
    case 'string':
      return encode.string(value.value);
    case 'integer':
      return encode.long(value.value);
    case 'double':
      return encodeDouble(value.value);
    case 'boolean':
      return encode.boolean(value.value);
    case 'timestamp':
      return encode.timestamp(Number(value.value));
    case 'uuid':
      return Buffer.concat([Buffer.from([0x98]), Buffer.from(value.value.replaceAll('-', ''), 'hex')]);
    case 'opaque':
      throw new FilterError(`a ${value.type} cannot be set`);
  }
}

/** A value in the type the property had before, where it can be; setting fails where not (documentation, considerations). */
function converted(value: Comparable | undefined, before: AmqpValue): Buffer {
  const wanted = comparable(before)?.kind;
  if (value === undefined || wanted === undefined || value.kind === wanted) return sameType(value, before);
  if (wanted === 'string') return encode.string(textOf(value));
  if (wanted === 'double' && value.kind === 'integer') return encodeDouble(Number(value.value));
  if (wanted === 'integer' && value.kind === 'string' && /^[+-]?\d{1,19}$/.test(value.value)) {
    return sameType({ kind: 'integer', value: BigInt(value.value) }, before);
  }
  if (
    wanted === 'double' &&
    value.kind === 'string' &&
    value.value.trim() !== '' &&
    !Number.isNaN(Number(value.value))
  ) {
    return encodeDouble(Number(value.value));
  }
  throw new FilterError(`${nameOf(value)} cannot become ${wanted}`);
}

/** A 32 bit number stays one where the value fits; all other whole numbers become long. */
function sameType(value: Comparable | undefined, before: AmqpValue): Buffer {
  if (value?.kind === 'integer' && before.type === 'int' && BigInt.asIntN(32, value.value) === value.value) {
    return encode.int(Number(value.value));
  }
  return encoded(value);
}
