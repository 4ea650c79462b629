/**
 * JSON as people write it: with a byte order mark, comments and commas after the last item, as Microsoft's own samples of the
 * emulator's configuration have them. Whatever is wrong is told with its line.
 */

/** A value, and the line each part of it begins on. */
export interface JsonText {
  readonly value: unknown;
  /** The line, from 1, of what stands at `path`, or of the nearest part around it that is there. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Arrays and objects in each other; more are a mistake, and would end in a stack that is too deep. */
const MAX_DEPTH = 100;
const SPACE = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const SCALAR = /"(?:[^"\\\n]|\\.)*"|[^\s,:[\]{}"/]+/y;

/** Reads `text`. Throws an error with line and column, of a name that is given twice as well. */
export function readJsonText(text: string): JsonText {
  const reader = new Reader(text.replace(/^\uFEFF/, ''));
  const value = reader.whole();
  return {
    value,
    lineOf(path) {
      for (let length = path.length; length > 0; length--) {
        const line = reader.lines.get(keyOf(path.slice(0, length)));
        if (line !== undefined) return line;
      }
      return 1;
    },
  };
}

function keyOf(path: readonly PropertyKey[]): string {
  return JSON.stringify(path.map(String));
}

class Reader {
  /** By the path of a value; for a property it is the line of its name. */
  readonly lines = new Map<string, number>();
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): unknown {
    this.#skip();
    if (this.#at === this.#text.length) throw this.#wrong('there is nothing in it');
    const value = this.#value([]);
    if (this.#at < this.#text.length) throw this.#wrong(`${this.#shown()} is not expected after the end`);
    return value;
  }

  #value(path: readonly PropertyKey[]): unknown {
    if (path.length > MAX_DEPTH) throw this.#wrong(`it is nested more than ${MAX_DEPTH} times`);
    if (this.#take('{')) return this.#object(path);
    if (this.#take('[')) return this.#array(path);
    return this.#scalar('a value');
  }

  #object(path: readonly PropertyKey[]): Record<string, unknown> {
    const entries = new Map<string, unknown>();
    while (!this.#take('}')) {
      const [line, at] = [this.#line(), this.#at];
      const name = this.#scalar('the name of a property, in quotes,');
      if (typeof name !== 'string') throw this.#wrong('the name of a property must be in quotes', at);
      if (entries.has(name)) throw this.#wrong(`'${name}' is given twice`, at);
      if (!this.#take(':')) throw this.#wrong(`${this.#shown()} stands where ':' is needed`);
      this.lines.set(keyOf([...path, name]), line);
      entries.set(name, this.#value([...path, name]));
      this.#comma('}');
    }
    return Object.fromEntries(entries);
  }

  #array(path: readonly PropertyKey[]): unknown[] {
    const items: unknown[] = [];
    while (!this.#take(']')) {
      this.lines.set(keyOf([...path, items.length]), this.#line());
      items.push(this.#value([...path, items.length]));
      this.#comma(']');
    }
    return items;
  }

  #comma(end: string): void {
    if (!this.#take(',') && this.#text[this.#at] !== end) {
      throw this.#wrong(`${this.#shown()} stands where ',' or '${end}' is needed`);
    }
  }

  /** A string, number, boolean or null. */
  #scalar(what: string): unknown {
    SCALAR.lastIndex = this.#at;
    const found = SCALAR.exec(this.#text)?.[0];
    try {
      if (found === undefined) throw new SyntaxError('there is none');
      const value: unknown = JSON.parse(found);
      this.#at += found.length;
      this.#skip();
      return value;
    } catch {
      throw this.#wrong(`${this.#shown()} stands where ${what} is needed`);
    }
  }

  #take(sign: string): boolean {
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    this.#skip();
    return true;
  }

  #skip(): void {
    SPACE.lastIndex = this.#at;
    this.#at += SPACE.exec(this.#text)?.[0].length ?? 0;
    if (this.#text.startsWith('/*', this.#at)) throw this.#wrong('a comment does not end');
  }

  #line(at = this.#at): number {
    return this.#text.slice(0, at).split('\n').length;
  }

  #shown(): string {
    const rest = /^[^\s,:[\]{}]{1,20}|^./u.exec(this.#text.slice(this.#at))?.[0];
    return rest === undefined ? 'the end of the file' : `'${rest}'`;
  }

  #wrong(what: string, at = this.#at): Error {
    const column = at - this.#text.lastIndexOf('\n', at - 1);
    return new Error(`line ${this.#line(at)}, column ${column}: ${what}`);
  }
}
