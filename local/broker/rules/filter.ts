/** The filters of topic rules and whether they let a message through. */
import { readValue } from '../../../shared/brokers/serviceBus/amqp.ts';
import { BrokerError } from '../errors.ts';
import type { AddedProperty, StoredMessage } from '../message.ts';
import { MessageProperties, type SystemProperty } from './properties.ts';
import { evaluate } from './sql-evaluate.ts';
import { type Predicate, parseSql } from './sql-parser.ts';
import { comparable, compare } from './values.ts';

/** The system properties a correlation filter can name, in the order of its AMQP form. */
export const CORRELATION_FIELDS = [
  'CorrelationId',
  'MessageId',
  'To',
  'ReplyTo',
  'Label',
  'SessionId',
  'ReplyToSessionId',
  'ContentType',
] as const satisfies readonly SystemProperty[];

export type CorrelationField = (typeof CORRELATION_FIELDS)[number];

export type Filter =
  | { readonly kind: 'true' | 'false' }
  | { readonly kind: 'sql'; readonly expression: string; readonly predicate: Predicate }
  | {
      readonly kind: 'correlation';
      readonly fields: Readonly<Partial<Record<CorrelationField, string>>>;
      /** User properties and the values they must have, encoded. */
      readonly properties: readonly AddedProperty[];
    };

/** A filter for a SQL expression. Throws a {@link BrokerError} that says what is wrong with it. */
export function sqlFilter(expression: string): Filter {
  try {
    return { kind: 'sql', expression, predicate: parseSql(expression) };
  } catch (caught) {
    const text = caught instanceof Error ? caught.message : String(caught);
    throw new BrokerError('com.microsoft:argument-error', `The SQL filter '${shortened(expression)}': ${text}.`);
  }
}

/** A correlation filter. Throws a {@link BrokerError} when it names nothing. */
export function correlationFilter(
  fields: Partial<Record<CorrelationField, string>>,
  properties: readonly AddedProperty[],
): Filter {
  if (Object.keys(fields).length === 0 && properties.length === 0) {
    throw new BrokerError('com.microsoft:argument-error', 'A correlation filter needs at least one property.');
  }
  return { kind: 'correlation', fields, properties };
}

/** Asks filters about one message, reading of it only what they ask for. */
export class Judge {
  readonly #message: MessageProperties;

  constructor(message: StoredMessage) {
    this.#message = new MessageProperties(message);
  }

  /** Whether the filter lets the message through. Never throws: an error is no match, as in the service. */
  accepts(filter: Filter): boolean {
    switch (filter.kind) {
      case 'true':
        return true;
      case 'false':
        return false;
      case 'sql':
        try {
          return evaluate(filter.predicate, this.#message) === true;
        } catch {
          return false;
        }
      case 'correlation':
        return this.#correlates(filter);
    }
  }

  #correlates({ fields, properties }: Filter & { kind: 'correlation' }): boolean {
    for (const [name, wanted] of Object.entries(fields)) {
      const value = this.#message.system(name as CorrelationField);
      // Ids may be numbers or uuids on the wire; their text is what clients show.
      if (value === undefined || typeof value.value === 'object' || String(value.value) !== wanted) return false;
    }
    return properties.every(({ name, value }) => {
      const found = this.#message.user(name);
      const [a, b] = [found && comparable(found), comparable(readValue(value))];
      return a !== undefined && b !== undefined && compare(a, b) === 0;
    });
  }
}

function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
