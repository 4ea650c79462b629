/** A letter's body as classification sees it: decoded when somebody asks, and only when it is small enough. */
import type { BodyKind } from '../letter.ts';

/**
 * Largest body that is looked into, bytes. Parsing one of this size takes one or two milliseconds when it is nothing but keys;
 * a larger one is not touched, and the classification says so.
 */
export const MAX_BODY = 32_768;

/** What is known of a body before it is read. */
interface Described {
  readonly kind: BodyKind;
  readonly bytes: number;
}

/** One body. Nothing here throws, whatever the bytes are. */
export class LetterBody {
  readonly #described: Described;
  readonly #sections: (() => readonly Buffer[]) | undefined;
  #content: Buffer | undefined;
  #isRead = false;
  #json: { readonly value: unknown } | undefined | 'none';
  #wanted = false;

  /** `sections` gives the body's bytes, section by section; without it the body is not at hand. */
  constructor(described: Described, sections?: () => readonly Buffer[]) {
    this.#described = described;
    this.#sections = sections;
  }

  /** Whether somebody asked for a body that could not be looked into: too large, AMQP values, not at hand. */
  get isUnread(): boolean {
    return this.#wanted && this.#described.kind !== 'none' && this.#bytes() === undefined;
  }

  /** Whether its bytes can be looked at. */
  get isReadable(): boolean {
    return this.#bytes() !== undefined;
  }

  /** Whether the bytes of `text` (ASCII) occur in it: a quick look before it is parsed. */
  includes(text: string): boolean {
    return this.#bytes()?.includes(text) ?? false;
  }

  /** The body's JSON value; `undefined` when it is not JSON in UTF-8, or cannot be looked into. */
  json(): unknown {
    if (this.#json === undefined) this.#json = this.#parse() ?? 'none';
    return this.#json === 'none' ? undefined : this.#json.value;
  }

  /** Whether it is text in UTF-8, without control characters. */
  isText(): boolean {
    const bytes = this.#bytes();
    if (bytes === undefined || bytes.length === 0) return false;
    try {
      return !/[\p{Cc}--[\t\n\r]]/v.test(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    } catch {
      return false;
    }
  }

  #parse(): { readonly value: unknown } | undefined {
    const bytes = this.#bytes();
    if (bytes === undefined || bytes.length === 0) return undefined;
    try {
      // A byte order mark is taken off by the decoder.
      return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown };
    } catch {
      return undefined;
    }
  }

  #bytes(): Buffer | undefined {
    this.#wanted = true;
    if (this.#isRead) return this.#content;
    this.#isRead = true;
    const { kind, bytes } = this.#described;
    if (this.#sections === undefined || bytes > MAX_BODY || (kind !== 'data' && kind !== 'data-several'))
      return undefined;
    try {
      const sections = this.#sections();
      const content = sections.length === 1 ? sections[0] : Buffer.concat(sections);
      if (content !== undefined && content.length <= MAX_BODY) this.#content = content;
    } catch {
      // The bytes are the sender's: a body that cannot be taken apart is one that cannot be looked into.
    }
    return this.#content;
  }
}
