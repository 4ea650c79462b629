/** Requests to `$cbs` and `$management`: reading them out of a message, and reading their arguments with types. */
import {
  type AmqpValue,
  keyText,
  listItems,
  mapEntries,
  readValue,
  SECTION,
  sectionsOf,
} from '../../shared/brokers/serviceBus/amqp.ts';
import { BrokerError } from './errors.ts';
import { checkValues } from './well-formed.ts';

/** A request that can be answered. */
export interface Request {
  /** Encoded, to go back untouched as the correlation id. */
  readonly messageId: Buffer;
  readonly replyTo: string;
  readonly operation: string;
  readonly properties: ReadonlyMap<string, AmqpValue>;
  /** The encoded value of the body, `undefined` when the body is no AMQP value. */
  readonly body: Buffer | undefined;
}

const MESSAGE_ID = 0;
const REPLY_TO = 4;

/** Reads a request. Throws when it lacks what an answer needs, or is malformed. */
export function readRequest(message: Buffer): Request {
  checkValues(message);
  let items: Buffer[] = [];
  let body: Buffer | undefined;
  const properties = new Map<string, AmqpValue>();
  for (const section of sectionsOf(message)) {
    if (section.code === SECTION.properties) items = listItems(message, section.body);
    if (section.code === SECTION.value) body = message.subarray(section.body, section.end);
    if (section.code === SECTION.applicationProperties) {
      for (const entry of mapEntries(message, section.body)) {
        properties.set(keyText(entry.key) ?? '', readValue(entry.value));
      }
    }
  }
  const messageId = items[MESSAGE_ID];
  const replyTo = items[REPLY_TO] && text(readValue(items[REPLY_TO]));
  if (!messageId || messageId[0] === 0x40 || !replyTo) {
    throw new BrokerError('amqp:invalid-field', 'A request needs a message-id and a reply-to.');
  }
  return { messageId, replyTo, operation: text(properties.get('operation')) ?? '', properties, body };
}

/** Text of a string or symbol value. */
export function text(value: AmqpValue | undefined): string | undefined {
  return value?.type === 'string' || value?.type === 'symbol' ? value.value : undefined;
}

/** The arguments of a management request: a map with string keys. Every getter throws a clear 400. */
export class Arguments {
  readonly #values = new Map<string, Buffer>();

  constructor(body: Buffer | undefined) {
    if (body === undefined) throw malformed('The request body must be an AMQP value that holds a map.');
    for (const entry of mapEntries(body, 0)) {
      const key = keyText(entry.key);
      if (key !== undefined) this.#values.set(key, entry.value);
    }
  }

  /** The encoded value, `undefined` when absent or null. */
  raw(name: string): Buffer | undefined {
    const value = this.#values.get(name);
    return value === undefined || value[0] === 0x40 ? undefined : value;
  }

  text(name: string): string | undefined {
    const raw = this.raw(name);
    if (raw === undefined) return undefined;
    const value = text(readValue(raw));
    if (value === undefined) throw malformed(`'${name}' must be a string.`);
    return value;
  }

  flag(name: string): boolean {
    const raw = this.raw(name);
    if (raw === undefined) return false;
    const value = readValue(raw);
    if (value.type !== 'boolean') throw malformed(`'${name}' must be a boolean.`);
    return value.value;
  }

  /** A whole number of one of these types; it must be there. The service casts, and refuses every other width. */
  integer(name: string, ...types: readonly [IntegerType, ...IntegerType[]]): bigint {
    const raw = this.raw(name);
    const value = raw && readValue(raw);
    const number = value && integerOf(value, types);
    if (number !== undefined) return number;
    throw malformed(
      `'${name}' must be of the type ${types.join(' or ')}, and is ${value ? `a ${value.type}` : 'missing'}.`,
    );
  }

  /** A non-empty array or list of longs. */
  longs(name: string): bigint[] {
    return this.#items(name).map((item) => {
      const value = integerOf(item, ['long']);
      if (value === undefined)
        throw malformed(`'${name}' must hold values of the type long only, and holds a ${item.type}.`);
      return value;
    });
  }

  /** A non-empty array or list of uuids, each as 16 bytes in the order of RFC 4122. */
  uuids(name: string): Buffer[] {
    return this.#items(name).map((item) => {
      if (item.type !== 'uuid') throw malformed(`'${name}' must hold uuids only.`);
      return Buffer.from(item.value.replaceAll('-', ''), 'hex');
    });
  }

  /** A non-empty list of maps. */
  maps(name: string): Arguments[] {
    const raw = this.raw(name);
    if (raw === undefined || readValue(raw).type !== 'list') throw malformed(`'${name}' must be a list of maps.`);
    const items = listItems(raw, 0);
    if (items.length === 0) throw malformed(`'${name}' must hold at least one map.`);
    return items.map((item) => new Arguments(item));
  }

  #items(name: string): AmqpValue[] {
    const raw = this.raw(name);
    const value = raw && readValue(raw);
    if ((value?.type !== 'array' && value?.type !== 'list') || value.value.length === 0) {
      throw malformed(`'${name}' must be an array with at least one item.`);
    }
    return value.value;
  }
}

/** The answer to a request whose arguments are wrong. */
export function malformed(description: string): BrokerError {
  return new BrokerError('com.microsoft:argument-error', description);
}

/** An integer type of AMQP that arguments have. */
export type IntegerType = 'long' | 'int' | 'uint' | 'ubyte';

function integerOf(value: AmqpValue, types: readonly IntegerType[]): bigint | undefined {
  if (!types.some((type) => type === value.type)) return undefined;
  return typeof value.value === 'bigint' || typeof value.value === 'number' ? BigInt(value.value) : undefined;
}
