/**
 * SQL actions as lists of changes: `SET property = expression` and `REMOVE property` (Service Bus documentation, "Subscription
 * rule SQL action syntax"). Expressions are constants, properties, `newid()`, `property(name)`, arithmetic and parentheses.
 */

import { SqlSyntaxError, type Token, tokensOf } from './sql-lexer.ts';
import { checkLength, type Operand, type Property, scopedProperty } from './sql-parser.ts';

export type Arithmetic = '+' | '-' | '*' | '/' | '%';

/** Something that gives a value. */
export type Expression =
  | Operand
  | { readonly kind: 'new-id' }
  | { readonly kind: 'named'; readonly name: Expression }
  | { readonly kind: 'minus'; readonly of: Expression }
  | { readonly kind: 'arithmetic'; readonly sign: Arithmetic; readonly left: Expression; readonly right: Expression };

/** One change of a message. */
export type Change =
  | { readonly kind: 'set'; readonly property: Property; readonly to: Expression }
  | { readonly kind: 'remove'; readonly property: Property };

/** Most changes in an action (Service Bus documentation, quotas: expressions per rule action). */
const MAX_CHANGES = 32;
const MAX_DEPTH = 100;
const WORDS = new Set(['SET', 'REMOVE', 'AND', 'OR', 'NOT', 'IN', 'IS', 'LIKE', 'ESCAPE', 'EXISTS']);

/** Reads an action. Throws {@link SqlSyntaxError} with a text that says what is wrong. */
export function parseSqlAction(text: string): readonly Change[] {
  checkLength(text);
  return new ActionParser(tokensOf(text)).changes();
}

class ActionParser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  changes(): Change[] {
    const changes: Change[] = [];
    do {
      changes.push(this.#change());
      // One may end with a semicolon, and be parted from the next by a comma.
      this.#takeSign(';');
      this.#takeSign(',');
    } while (this.#next.kind !== 'end');
    if (changes.length > MAX_CHANGES)
      throw new SqlSyntaxError(`it makes ${changes.length} changes, ${MAX_CHANGES} are allowed`);
    return changes;
  }

  #change(): Change {
    if (this.#takeWord('REMOVE')) return { kind: 'remove', property: this.#changeable(['PartitionKey', 'MessageId']) };
    if (!this.#takeWord('SET')) throw this.#unexpected('SET or REMOVE');
    const property = this.#changeable(['PartitionKey']);
    if (!this.#takeSign('=')) throw this.#unexpected("'='");
    return { kind: 'set', property, to: this.#sum() };
  }

  /** A message always has an id, and its partition is chosen before the rules are asked. */
  #changeable(fixed: readonly string[]): Property {
    const property = this.#property();
    if (property.kind === 'user' || !fixed.includes(property.name)) return property;
    throw new SqlSyntaxError(`'sys.${property.name}' cannot be changed in this way by this broker`);
  }

  #sum(): Expression {
    return this.#chain(['+', '-'], () => this.#chain(['*', '/', '%'], () => this.#single()));
  }

  #chain(signs: readonly Arithmetic[], read: () => Expression): Expression {
    let left = read();
    for (;;) {
      const sign = signs.find((one) => this.#takeSign(one));
      if (sign === undefined) return left;
      left = { kind: 'arithmetic', sign, left, right: read() };
    }
  }

  #single(): Expression {
    if (this.#takeSign('-')) return this.#deeper(() => ({ kind: 'minus', of: this.#single() }));
    if (this.#takeSign('+')) return this.#deeper(() => this.#single());
    if (this.#takeSign('(')) return this.#inParentheses();
    const token = this.#next;
    if (token.kind === 'string' || token.kind === 'integer' || token.kind === 'double') {
      this.#at++;
      return { kind: 'constant', value: token.kind === 'string' ? token.text : token.value };
    }
    for (const [word, value] of [
      ['TRUE', true],
      ['FALSE', false],
      ['NULL', null],
    ] as const) {
      if (this.#takeWord(word)) return { kind: 'constant', value };
    }
    return this.#call() ?? this.#property();
  }

  #call(): Expression | undefined {
    const token = this.#next;
    const after = this.#tokens[this.#at + 1];
    if (token.kind !== 'word' || token.delimited || after?.kind !== 'sign' || after.text !== '(') return undefined;
    this.#at += 2;
    const name = token.text.toLowerCase();
    if (name === 'property' || name === 'p') return { kind: 'named', name: this.#inParentheses() };
    if (name !== 'newid') throw new SqlSyntaxError(`there is no function '${token.text}'`);
    if (!this.#takeSign(')')) throw this.#unexpected("')'");
    return { kind: 'new-id' };
  }

  #inParentheses(): Expression {
    const expression = this.#deeper(() => this.#sum());
    if (!this.#takeSign(')')) throw this.#unexpected("')'");
    return expression;
  }

  /** An action of nothing but parentheses must not end the process. */
  #deeper(read: () => Expression): Expression {
    if (++this.#depth > MAX_DEPTH) throw new SqlSyntaxError(`it is nested more than ${MAX_DEPTH} times`);
    const expression = read();
    this.#depth--;
    return expression;
  }

  #property(): Property {
    const first = this.#word();
    if (!this.#takeSign('.')) return { kind: 'user', name: first };
    return scopedProperty(first.toUpperCase(), this.#word());
  }

  #word(): string {
    const token = this.#next;
    if (token.kind !== 'word' || (!token.delimited && WORDS.has(token.text.toUpperCase()))) {
      throw this.#unexpected('a property');
    }
    this.#at++;
    return token.text;
  }

  get #next(): Token {
    return this.#tokens[this.#at] as Token;
  }

  #takeWord(text: string): boolean {
    const token = this.#next;
    const found = token.kind === 'word' && !token.delimited && token.text.toUpperCase() === text;
    if (found) this.#at++;
    return found;
  }

  #takeSign(text: string): boolean {
    const found = this.#next.kind === 'sign' && this.#next.text === text;
    if (found) this.#at++;
    return found;
  }

  #unexpected(wanted: string): SqlSyntaxError {
    const token = this.#next;
    if (token.kind === 'end') return new SqlSyntaxError(`it ends where ${wanted} is needed`);
    const text = 'text' in token ? token.text : String(token.value);
    return new SqlSyntaxError(`'${text}' stands where ${wanted} is needed (character ${token.at + 1})`);
  }
}
