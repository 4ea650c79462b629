/** Reads template expressions (`[format('{0}', parameters('name'))]`) into trees. */

/** A piece of an expression. */
export type Expression =
  | { readonly kind: 'value'; readonly value: string | number }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Expression[] }
  | { readonly kind: 'member'; readonly of: Expression; readonly key: Expression };

const TOKEN =
  /\s*(?:(?<text>'(?:[^']|'')*')|(?<number>-?\d+)|(?<name>[A-Za-z_]\w*(?:\.\w+)*(?=\s*\())|(?<word>\w+)|(?<sign>[()[\],.]))/y;

/** Whether a text of a template is an expression. */
export function isExpression(text: string): boolean {
  return text.startsWith('[') && !text.startsWith('[[') && text.endsWith(']');
}

/** Parses the text of an expression, with its brackets. Throws where it does not understand. */
export function parseExpression(text: string): Expression {
  const parser = new Parser(text.slice(1, -1));
  const expression = parser.expression();
  parser.end();
  return expression;
}

interface Token {
  readonly kind: 'text' | 'number' | 'name' | 'word' | 'sign';
  readonly text: string;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokens(text);
  }

  expression(): Expression {
    let expression = this.#primary();
    for (;;) {
      if (this.#takes('.')) {
        const key = this.#next();
        expression = { kind: 'member', of: expression, key: { kind: 'value', value: key.text } };
        // `a.b(` is one name to the tokenizer; after a value it cannot be.
      } else if (this.#takes('[')) {
        expression = { kind: 'member', of: expression, key: this.expression() };
        this.#expect(']');
      } else return expression;
    }
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw new Error(`unexpected "${this.#tokens[this.#at]?.text}"`);
  }

  #primary(): Expression {
    const token = this.#next();
    if (token.kind === 'text') return { kind: 'value', value: token.text.slice(1, -1).replaceAll("''", "'") };
    if (token.kind === 'number') return { kind: 'value', value: Number(token.text) };
    if (token.kind !== 'name') throw new Error(`unexpected "${token.text}"`);
    const args: Expression[] = [];
    this.#expect('(');
    while (!this.#takes(')')) {
      args.push(this.expression());
      this.#takes(',');
    }
    return { kind: 'call', name: token.text, args };
  }

  #next(): Token {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw new Error('the expression ends too early');
    return token;
  }

  #takes(sign: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== 'sign' || token.text !== sign) return false;
    this.#at++;
    return true;
  }

  #expect(sign: string): void {
    if (!this.#takes(sign)) throw new Error(`expected "${sign}"`);
  }
}

function tokens(text: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined) throw new Error(`cannot read "${text.slice(at, at + 40)}"`);
    for (const kind of ['text', 'number', 'name', 'word', 'sign'] as const) {
      const part = groups[kind];
      if (part !== undefined) found.push({ kind, text: part });
    }
  }
  return found;
}
