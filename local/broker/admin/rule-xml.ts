/** Rules in the ATOM interface. */
import { encode, readValue } from '../../../shared/brokers/serviceBus/amqp.ts';
import { encodeDouble } from '../encoding.ts';
import type { AddedProperty } from '../message.ts';
import { type Action, sqlAction } from '../rules/action.ts';
import {
  CORRELATION_FIELDS,
  type CorrelationField,
  correlationFilter,
  type Filter,
  sqlFilter,
} from '../rules/filter.ts';
import type { Rule } from '../rules/rule-set.ts';
import { simplified } from '../rules/wire.ts';
import { rootElement } from './atom.ts';
import { invalid } from './requests.ts';
import { childOf, element, escapeXml, type XmlElement } from './xml.ts';

const SCHEMA = 'http://www.w3.org/2001/XMLSchema';
/** The version of the filter language. */
const COMPATIBILITY = element('CompatibilityLevel', '20');

/** Filter and action of a RuleDescription; without a filter everything is let in. Throws a BrokerError that says what is wrong. */
export function readRule(description: XmlElement): Pick<Rule, 'filter' | 'action'> {
  const action = childOf(description, 'Action');
  const expression = action && childOf(action, 'SqlExpression')?.text;
  if (action && childOf(action, 'Parameters')?.children.length)
    throw invalid('Parameters of SQL actions are not supported.');
  return { filter: readFilter(description), ...(expression && { action: sqlAction(expression) }) };
}

function readFilter(description: XmlElement): Filter {
  const filter = childOf(description, 'Filter');
  if (!filter) return { kind: 'true' };
  switch (typeOf(filter)) {
    case 'TrueFilter':
      return { kind: 'true' };
    case 'FalseFilter':
      return { kind: 'false' };
    case 'SqlFilter': {
      if (childOf(filter, 'Parameters')?.children.length) throw invalid('Parameters of SQL filters are not supported.');
      const expression = childOf(filter, 'SqlExpression')?.text ?? '';
      return simplified(expression) ?? sqlFilter(expression);
    }
    case 'CorrelationFilter':
      return readCorrelation(filter);
    default:
      throw invalid(`The filter type '${typeOf(filter) ?? ''}' is not known.`);
  }
}

/** The name in a description; clients that create a subscription with a rule name it only there. */
export function ruleNameOf(description: XmlElement): string | undefined {
  return childOf(description, 'Name')?.text.trim() || undefined;
}

function readCorrelation(filter: XmlElement): Filter {
  const fields: Partial<Record<CorrelationField, string>> = {};
  for (const field of CORRELATION_FIELDS) {
    const text = childOf(filter, field)?.text;
    if (text) fields[field] = text;
  }
  const properties = childOf(filter, 'Properties')?.children.map(readProperty) ?? [];
  return correlationFilter(fields, properties);
}

function readProperty(pair: XmlElement): AddedProperty {
  const name = childOf(pair, 'Key')?.text;
  const value = childOf(pair, 'Value');
  if (!name || !value) throw invalid('A property of a correlation filter needs a key and a value.');
  return { name, value: encoded(typeOf(value) ?? 'string', value.text) };
}

function encoded(type: string, text: string): Buffer {
  const isInteger = /^[+-]?\d{1,19}$/.test(text.trim());
  switch (type) {
    case 'string':
      return encode.string(text);
    case 'boolean':
      return encode.boolean(text.trim() === 'true');
    case 'int':
    case 'long': {
      const value = isInteger ? BigInt(text.trim()) : undefined;
      const bits = type === 'int' ? 32 : 64;
      if (value === undefined || BigInt.asIntN(bits, value) !== value) break;
      return type === 'int' ? encode.int(Number(value)) : encode.long(value);
    }
    case 'double': {
      const value = Number(text.trim());
      if (text.trim() !== '' && !Number.isNaN(value)) return encodeDouble(value);
      break;
    }
    case 'dateTime': {
      const time = Date.parse(text.trim());
      if (!Number.isNaN(time)) return encode.timestamp(time);
      break;
    }
    default:
      throw invalid(`Properties of the type '${type}' are not supported in filters.`);
  }
  throw invalid(`'${text.slice(0, 100)}' is no ${type}.`);
}

function typeOf({ attributes }: XmlElement): string | undefined {
  const type = attributes.get('type');
  return type?.slice(type.indexOf(':') + 1);
}

/** A RuleDescription for an answer. */
export function ruleContent({ name, filter, action, createdAt }: Rule): string {
  return rootElement(
    'RuleDescription',
    [
      filterElement(filter),
      actionElement(action),
      element('CreatedAt', new Date(createdAt).toISOString()),
      element('Name', escapeXml(name)),
    ].join(''),
  );
}

function actionElement(action: Action | undefined): string {
  if (!action) return element('Action', undefined, { 'i:type': 'EmptyRuleAction' });
  const expression = element('SqlExpression', escapeXml(action.expression));
  return element('Action', expression + COMPATIBILITY, { 'i:type': 'SqlRuleAction' });
}

function filterElement(filter: Filter): string {
  switch (filter.kind) {
    case 'true':
      return element('Filter', element('SqlExpression', '1=1') + COMPATIBILITY, { 'i:type': 'TrueFilter' });
    case 'false':
      return element('Filter', element('SqlExpression', '1=0') + COMPATIBILITY, { 'i:type': 'FalseFilter' });
    case 'sql': {
      const expression = element('SqlExpression', escapeXml(filter.expression));
      return element('Filter', expression + COMPATIBILITY, { 'i:type': 'SqlFilter' });
    }
    case 'correlation': {
      const fields = CORRELATION_FIELDS.flatMap((field) => {
        const value = filter.fields[field];
        return value === undefined ? [] : [element(field, escapeXml(value))];
      });
      const properties = filter.properties.map(propertyElement).join('');
      const list = properties && element('Properties', properties);
      return element('Filter', fields.join('') + list, { 'i:type': 'CorrelationFilter' });
    }
  }
}

function propertyElement({ name, value }: AddedProperty): string {
  const read = readValue(value);
  const [type, text] =
    read.type === 'timestamp'
      ? ['dateTime', new Date(Number(read.value)).toISOString()]
      : [XML_TYPES[read.type], String(read.value)];
  const attributes = { 'i:type': `d6p1:${type ?? 'string'}`, 'xmlns:d6p1': SCHEMA };
  // In the name space of the rule itself: the .NET client looks nowhere else.
  const pair = element('Key', escapeXml(name)) + element('Value', escapeXml(text), attributes);
  return element('KeyValueOfstringanyType', pair);
}

// Rules made over AMQP may hold types that this interface has no word for; the nearest that clients read is taken.
const XML_TYPES: Partial<Record<ReturnType<typeof readValue>['type'], string>> = {
  boolean: 'boolean',
  byte: 'int',
  ubyte: 'int',
  short: 'int',
  ushort: 'int',
  int: 'int',
  uint: 'long',
  long: 'long',
  ulong: 'long',
  float: 'double',
  double: 'double',
  string: 'string',
};
