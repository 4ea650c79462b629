/** What a dialect is shown of one letter: its properties by name and type, and its body when it asks. */
import type { Letter, LetterProperty } from '../letter.ts';
import type { LetterBody } from './body.ts';
import { clean, countOf, isoTime, LIMIT, unixMs } from './text.ts';

const TEXT_TYPES: readonly string[] = ['string', 'symbol', 'uuid', 'char'];
const NESTED_TYPES: readonly string[] = ['list', 'map', 'array'];

/** Longest nested value that is parsed, characters of JSON. */
const MAX_NESTED = 16_384;

/** One letter, seen without trust: every look answers `undefined` for what is missing or of another type. Nothing throws. */
export class Sight {
  readonly letter: Letter;
  readonly body: LetterBody;
  /** What the catalog says of the source's consumer; `undefined` when it says nothing. */
  readonly consumedBy: string | undefined;
  readonly #unread = new Set<string>();
  #byName: Map<string, LetterProperty> | undefined;

  constructor(letter: Letter, body: LetterBody, consumedBy?: string) {
    this.letter = letter;
    this.body = body;
    this.consumedBy = consumedBy;
  }

  /** An application property; the last one where a name occurs twice. */
  property(name: string): LetterProperty | undefined {
    if (this.#byName === undefined) {
      this.#byName = new Map();
      for (const property of this.letter.properties) this.#byName.set(property.name, property);
    }
    return this.#byName.get(name);
  }

  /** Whether a property's name begins like this. */
  hasPrefix(prefix: string): boolean {
    return this.letter.properties.some(({ name }) => name.startsWith(prefix));
  }

  /** A text, at most `max` characters of it. */
  text(name: string, max: number = LIMIT.name): string | undefined {
    const property = this.property(name);
    if (typeof property?.value !== 'string' || !TEXT_TYPES.includes(property.type)) return undefined;
    if (property.value.length > max) this.#unread.add(`properties.${name.slice(0, 100)}`);
    return clean(property.value, max);
  }

  /** A count, of any integer type or as decimal text. */
  count(name: string): number | undefined {
    return countOf(this.property(name)?.value);
  }

  /** A time in ms since 1970: a timestamp, ISO 8601 text with a zone, or ms as a number or as text. */
  time(name: string): number | undefined {
    const value = this.property(name)?.value;
    return isoTime(value) ?? unixMs(value);
  }

  /** A binary. Kafka's headers are such: numbers in them are big-endian, texts UTF-8. */
  bytes(name: string): Buffer | undefined {
    const property = this.property(name);
    if (property?.type !== 'binary' || typeof property.value !== 'string') return undefined;
    if (property.value.length > LIMIT.stack * 2) this.#unread.add(`properties.${name.slice(0, 100)}`);
    return Buffer.from(property.value.slice(0, LIMIT.stack * 2), 'base64');
  }

  /** A list, map or array as JSON can carry it, such as RabbitMQ's `x-death`. One that is too large is not looked into. */
  nested(name: string): unknown {
    const property = this.property(name);
    if (property === undefined || typeof property.value !== 'string' || !NESTED_TYPES.includes(property.type)) {
      return undefined;
    }
    if (property.value.length > MAX_NESTED) {
      this.#unread.add(`properties.${name.slice(0, 100)}`);
      return undefined;
    }
    try {
      return JSON.parse(property.value) as unknown;
    } catch {
      return undefined; // cut by a record
    }
  }

  /** Names of what was asked for and could not be read wholly. */
  get unread(): string[] {
    return [...this.#unread, ...(this.body.isUnread ? ['body'] : [])].slice(0, 20);
  }
}
