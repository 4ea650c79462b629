/** `Rules` of a subscription in the emulator's `Config.json`. */
import { z } from 'zod';
import { encode } from '../../../shared/brokers/serviceBus/amqp.ts';
import { encodeDouble } from '../encoding.ts';
import { BrokerError } from '../errors.ts';
import type { AddedProperty } from '../message.ts';
import { type Action, sqlAction } from './action.ts';
import { type CorrelationField, correlationFilter, type Filter, sqlFilter } from './filter.ts';

/** A rule as a configuration states it. */
export interface RuleConfig {
  readonly name: string;
  readonly filter: Filter;
  readonly action?: Action | undefined;
}

const text = z.string().optional();
const correlation = z.strictObject({
  CorrelationId: text,
  MessageId: text,
  To: text,
  ReplyTo: text,
  Label: text,
  SessionId: text,
  ReplyToSessionId: text,
  ContentType: text,
  Properties: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});
const sqlShape = { RequiresPreprocessing: z.boolean().nullish(), CompatibilityLevel: z.number().nullish() };
const sql = z.strictObject({ SqlExpression: z.string().min(1), ...sqlShape });
const action = z.strictObject({ SqlExpression: z.string().nullish(), ...sqlShape });

/** The schema of one rule. Says with its path what is wrong. */
export const ruleSchema = z
  .strictObject({
    Name: z.string().min(1).max(50),
    Properties: z.strictObject({
      FilterType: z.enum(['Sql', 'SqlFilter', 'Correlation', 'CorrelationFilter', 'True', 'False']),
      SqlFilter: sql.nullish(),
      CorrelationFilter: correlation.nullish(),
      Action: action.nullish(),
    }),
  })
  .transform(({ Name, Properties }, context): RuleConfig => {
    const fail = (path: string[], message: string): RuleConfig => {
      context.issues.push({ code: 'custom', message, input: Properties, path: ['Properties', ...path] });
      return z.NEVER;
    };
    const { FilterType, SqlFilter, CorrelationFilter, Action } = Properties;
    try {
      const rule = { name: Name, ...(Action?.SqlExpression && { action: sqlAction(Action.SqlExpression) }) };
      if (FilterType === 'True' || FilterType === 'False') {
        return { ...rule, filter: { kind: FilterType === 'True' ? 'true' : 'false' } };
      }
      if (FilterType === 'Sql' || FilterType === 'SqlFilter') {
        if (!SqlFilter) return fail(['SqlFilter'], `is needed for the filter type ${FilterType}`);
        return { ...rule, filter: sqlFilter(SqlFilter.SqlExpression) };
      }
      if (!CorrelationFilter) return fail(['CorrelationFilter'], `is needed for the filter type ${FilterType}`);
      return { ...rule, filter: correlationOf(CorrelationFilter) };
    } catch (caught) {
      if (!(caught instanceof BrokerError)) throw caught;
      return fail([], caught.message);
    }
  });

function correlationOf({ Properties = {}, ...fields }: z.output<typeof correlation>): Filter {
  const named = Object.entries(fields).filter((entry): entry is [CorrelationField, string] => Boolean(entry[1]));
  return correlationFilter(Object.fromEntries(named), Object.entries(Properties).map(propertyOf));
}

/** A JSON number that is whole is an integer; filters compare numbers by value. */
function propertyOf([name, value]: [string, string | number | boolean]): AddedProperty {
  if (typeof value === 'string') return { name, value: encode.string(value) };
  if (typeof value === 'boolean') return { name, value: encode.boolean(value) };
  return { name, value: Number.isSafeInteger(value) ? encode.long(BigInt(value)) : encodeDouble(value) };
}
