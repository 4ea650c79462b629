/** What a filter sees of a message: system properties and user properties, read from the encoded bytes with their types. */
import {
  type AmqpValue,
  keyText,
  listItems,
  mapEntries,
  readValue,
  SECTION,
  sectionAt,
} from '../../../shared/brokers/serviceBus/amqp.ts';
import type { StoredMessage } from '../message.ts';

/** System properties that filters can name, by the position they have in the properties section. */
const PLACES = {
  MessageId: 0,
  To: 2,
  Label: 3,
  ReplyTo: 4,
  CorrelationId: 5,
  ContentType: 6,
  SessionId: 10,
  ReplyToSessionId: 12,
} as const;

/** Where a system property that is a text stands in the properties section. */
export function systemPlace(name: Exclude<SystemProperty, 'PartitionKey'>): number {
  return PLACES[name];
}

export type SystemProperty = keyof typeof PLACES | 'PartitionKey';

/** The names as they are written in documentation. */
export const SYSTEM_PROPERTIES: readonly SystemProperty[] = [
  ...(Object.keys(PLACES) as SystemProperty[]),
  'PartitionKey',
];

const BY_NAME = new Map(SYSTEM_PROPERTIES.map((name) => [name.toLowerCase(), name]));
// What was called label in the older clients is the subject in the newer ones.
BY_NAME.set('subject', 'Label');

/** The property a name in any case stands for. */
export function systemProperty(name: string): SystemProperty | undefined {
  return BY_NAME.get(name.toLowerCase());
}

/** The properties of one message; each section is read when it is first asked for. */
export class MessageProperties {
  readonly #message: StoredMessage;
  #items: readonly Buffer[] | undefined;
  #user: ReadonlyMap<string, Buffer> | undefined;
  #userInAnyCase: ReadonlyMap<string, string> | undefined;

  constructor(message: StoredMessage) {
    this.#message = message;
  }

  /** The value of a system property, `undefined` when the message has none. */
  system(name: SystemProperty): AmqpValue | undefined {
    if (name === 'PartitionKey') return this.#partitionKey();
    this.#items ??= this.#propertyItems();
    return presentValue(this.#items[PLACES[name]]);
  }

  /** The value of a user property; its name is compared without regard to case, an exact match goes first. */
  user(name: string): AmqpValue | undefined {
    const own = this.userName(name);
    const value = own === undefined ? undefined : this.#user?.get(own);
    return value && readValue(value);
  }

  /** How the message writes the name of a user property; `undefined` when it has none. */
  userName(name: string): string | undefined {
    this.#user ??= this.#userEntries();
    if (this.#user.has(name)) return name;
    this.#userInAnyCase ??= new Map([...this.#user.keys()].reverse().map((key) => [key.toLowerCase(), key]));
    return this.#userInAnyCase.get(name.toLowerCase());
  }

  #propertyItems(): readonly Buffer[] {
    const { bytes, rest } = this.#message;
    if (rest >= bytes.length) return [];
    const section = sectionAt(bytes, rest);
    return section.code === SECTION.properties ? listItems(bytes, section.body) : [];
  }

  #userEntries(): ReadonlyMap<string, Buffer> {
    const { bytes, applicationProperties: at } = this.#message;
    const entries = at >= 0 ? mapEntries(bytes, at) : [];
    return new Map(entries.map(({ key, value }) => [keyText(key) ?? '', value]));
  }

  #partitionKey(): AmqpValue | undefined {
    const { bytes, annotations: at } = this.#message;
    const entries = at >= 0 ? mapEntries(bytes, at) : [];
    return presentValue(entries.find(({ key }) => keyText(key) === 'x-opt-partition-key')?.value);
  }
}

/** A property of a section that is null is not there. */
function presentValue(item: Buffer | undefined): AmqpValue | undefined {
  return item === undefined || item[0] === 0x40 ? undefined : readValue(item);
}
