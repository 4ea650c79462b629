/**
 * Rules in the form of `$management` requests and answers (Service Bus documentation, "AMQP request/response-based
 * operations: rule operations"; descriptors as the clients read them).
 */
import {
  encode,
  encodeList,
  encodeMap,
  keyText,
  mapEntries,
  readValue,
} from '../../../shared/brokers/serviceBus/amqp.ts';
import { encodeUlong } from '../encoding.ts';
import { propertiesOf } from '../outcome.ts';
import { malformed, text } from '../request.ts';
import { type Action, sqlAction } from './action.ts';
import { CORRELATION_FIELDS, type CorrelationField, correlationFilter, type Filter, sqlFilter } from './filter.ts';
import type { Rule } from './rule-set.ts';

const DESCRIPTOR = {
  rule: 0x0000_0137_0000_0004n,
  emptyAction: 0x0000_0137_0000_0005n,
  sqlAction: 0x0000_0137_0000_0006n,
  sqlFilter: 0x0000_0013_7000_0006n,
  trueFilter: 0x0000_0013_7000_0007n,
  falseFilter: 0x0000_0013_7000_0008n,
  correlationFilter: 0x0000_0013_7000_0009n,
} as const;
/** The version of the filter language that the clients expect to read. */
const COMPATIBILITY_LEVEL = 20;

const FIELD_KEYS: Record<string, CorrelationField> = {
  'correlation-id': 'CorrelationId',
  'message-id': 'MessageId',
  to: 'To',
  'reply-to': 'ReplyTo',
  label: 'Label',
  'session-id': 'SessionId',
  'reply-to-session-id': 'ReplyToSessionId',
  'content-type': 'ContentType',
};

/** Filter and action of an add-rule request's `rule-description`, an encoded map. Throws a `BrokerError`. */
export function readRuleDescription(map: Buffer): Pick<Rule, 'filter' | 'action'> {
  const parts = mapOf(map, 'rule-description');
  const action = parts.get('sql-rule-action');
  return {
    filter: readFilter(parts),
    ...(action && { action: sqlAction(expressionOf(action, 'sql-rule-action')) }),
  };
}

function readFilter(parts: ReadonlyMap<string, Buffer>): Filter {
  const sql = parts.get('sql-filter');
  if (sql) {
    const expression = expressionOf(sql, 'sql-filter');
    return simplified(expression) ?? sqlFilter(expression);
  }
  const correlation = parts.get('correlation-filter');
  if (correlation) return readCorrelationFilter(mapOf(correlation, 'correlation-filter'));
  if (parts.has('true-filter')) return { kind: 'true' };
  if (parts.has('false-filter')) return { kind: 'false' };
  throw malformed("'rule-description' needs a sql-filter or a correlation-filter.");
}

function expressionOf(map: Buffer, name: string): string {
  const expression = mapOf(map, name).get('expression');
  const value = expression && text(readValue(expression));
  if (value === undefined) throw malformed(`'${name}' needs an expression.`);
  return value;
}

/** The expressions in which clients write the two filters that have no expression. */
export function simplified(expression: string): Filter | undefined {
  const plain = expression.replace(/\s+/g, '');
  return plain === '1=1' ? { kind: 'true' } : plain === '1=0' ? { kind: 'false' } : undefined;
}

function readCorrelationFilter(parts: ReadonlyMap<string, Buffer>): Filter {
  const fields: Partial<Record<CorrelationField, string>> = {};
  for (const [key, raw] of parts) {
    const field = FIELD_KEYS[key];
    if (!field) continue;
    const value = readValue(raw);
    if (typeof value.value === 'object') throw malformed(`'${key}' of a correlation filter must be a string.`);
    fields[field] = String(value.value);
  }
  return correlationFilter(fields, propertiesOf(parts.get('properties')));
}

/** The entries of an encoded map that are not null. */
function mapOf(bytes: Buffer, name: string): Map<string, Buffer> {
  if (bytes[0] !== 0xc1 && bytes[0] !== 0xd1) throw malformed(`'${name}' must be a map.`);
  const entries = mapEntries(bytes, 0).filter(({ value }) => value[0] !== 0x40);
  return new Map(entries.map(({ key, value }) => [keyText(key) ?? '', value]));
}

/** A rule as an enumerate-rules answer holds it. */
export function encodeRule({ name, filter, action, createdAt }: Rule): Buffer {
  const fields = [encodeFilter(filter), encodeAction(action), encode.string(name), encode.timestamp(createdAt)];
  return described(DESCRIPTOR.rule, fields);
}

function encodeAction(action: Action | undefined): Buffer {
  if (!action) return described(DESCRIPTOR.emptyAction, []);
  return described(DESCRIPTOR.sqlAction, [encode.string(action.expression), encode.int(COMPATIBILITY_LEVEL)]);
}

function encodeFilter(filter: Filter): Buffer {
  switch (filter.kind) {
    case 'true':
      return described(DESCRIPTOR.trueFilter, []);
    case 'false':
      return described(DESCRIPTOR.falseFilter, []);
    case 'sql':
      return described(DESCRIPTOR.sqlFilter, [encode.string(filter.expression), encode.int(COMPATIBILITY_LEVEL)]);
    case 'correlation': {
      const properties = filter.properties.map(({ name, value }) => Buffer.concat([encode.string(name), value]));
      const fields = CORRELATION_FIELDS.map((field) => {
        const value = filter.fields[field];
        return value === undefined ? encode.null() : encode.string(value);
      });
      return described(DESCRIPTOR.correlationFilter, [...fields, encodeMap(properties)]);
    }
  }
}

function described(descriptor: bigint, items: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0x00]), encodeUlong(descriptor), encodeList(items)]);
}
