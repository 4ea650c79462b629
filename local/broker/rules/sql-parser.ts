/**
 * SQL filter expressions as trees. The grammar is the documented one without arithmetic, functions and parameters, which
 * are refused by name. NOT binds closer than AND, AND closer than OR.
 */
import { SYSTEM_PROPERTIES, type SystemProperty, systemProperty } from './properties.ts';
import { SqlSyntaxError, type Token, tokensOf } from './sql-lexer.ts';

/** A constant of an expression. Integers are 64 bits, all other numbers doubles (documentation). */
export type Constant = string | bigint | number | boolean | null;

/** A property of a message. */
export type Property =
  | { readonly kind: 'system'; readonly name: SystemProperty }
  | { readonly kind: 'user'; readonly name: string };

/** Something that has a value. */
export type Operand = { readonly kind: 'constant'; readonly value: Constant } | Property;

export type Comparison = '=' | '<>' | '<' | '>' | '<=' | '>=';

/** Something that is true, false or unknown. */
export type Predicate =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Predicate[] }
  | { readonly kind: 'not'; readonly part: Predicate }
  | { readonly kind: 'compare'; readonly sign: Comparison; readonly left: Operand; readonly right: Operand }
  | { readonly kind: 'in'; readonly left: Operand; readonly list: readonly Operand[] }
  | { readonly kind: 'like'; readonly left: Operand; readonly pattern: Operand; readonly escape: Operand | undefined }
  | { readonly kind: 'null' | 'exists'; readonly operand: Operand };

/** Longest expression, characters (Service Bus documentation, quotas: filter condition). */
export const MAX_EXPRESSION = 1024;

const MAX_DEPTH = 100;
const RESERVED = new Set(['AND', 'OR', 'NOT', 'IN', 'IS', 'LIKE', 'ESCAPE', 'EXISTS', 'NULL', 'TRUE', 'FALSE']);
const COMPARISONS = new Set(['=', '<>', '!=', '<', '>', '<=', '>=']);

/** Throws {@link SqlSyntaxError} for an expression that is too long. */
export function checkLength(text: string): void {
  if (text.length <= MAX_EXPRESSION) return;
  throw new SqlSyntaxError(`it has ${text.length} characters, ${MAX_EXPRESSION} are allowed`);
}

/** Reads an expression. Throws {@link SqlSyntaxError} with a text that says what is wrong. */
export function parseSql(text: string): Predicate {
  checkLength(text);
  const parser = new Parser(tokensOf(text));
  const predicate = parser.condition();
  parser.expectEnd();
  return predicate;
}

/** What stands between parentheses may be either; what follows decides whether that is right. */
type Term = { readonly predicate: Predicate } | { readonly operand: Operand };

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  condition(): Predicate {
    return this.#predicateOf(this.#or());
  }

  expectEnd(): void {
    if (this.#next.kind !== 'end') throw this.#unexpected();
  }

  #or(): Term {
    return this.#chain('OR', 'or', () => this.#and());
  }

  #and(): Term {
    return this.#chain('AND', 'and', () => this.#not());
  }

  #chain(keyword: string, kind: 'and' | 'or', read: () => Term): Term {
    const first = read();
    if (!this.#isKeyword(keyword)) return first;
    const parts = [this.#predicateOf(first)];
    while (this.#takeKeyword(keyword)) parts.push(this.#predicateOf(read()));
    return { predicate: { kind, parts } };
  }

  #not(): Term {
    if (!this.#takeKeyword('NOT')) return this.#test();
    return this.#deeper(() => ({ predicate: { kind: 'not', part: this.#predicateOf(this.#not()) } }));
  }

  /** An operand with a comparison, or what needs none. */
  #test(): Term {
    if (this.#takeKeyword('EXISTS')) return { predicate: { kind: 'exists', operand: this.#parenthesizedProperty() } };
    const term = this.#term();
    if ('predicate' in term) return term;
    const left = term.operand;
    const token = this.#next;
    if (token.kind === 'sign' && COMPARISONS.has(token.text)) {
      this.#at++;
      const sign = (token.text === '!=' ? '<>' : token.text) as Comparison;
      return { predicate: { kind: 'compare', sign, left, right: this.#operand() } };
    }
    if (this.#takeKeyword('IS')) return this.#isNull(left);
    const negated = this.#takeKeyword('NOT');
    const part = this.#takeKeyword('IN') ? this.#in(left) : this.#takeKeyword('LIKE') ? this.#like(left) : undefined;
    if (part) return { predicate: negated ? { kind: 'not', part } : part };
    if (negated || this.#isArithmetic()) throw this.#unexpected();
    return term;
  }

  /** An expression of nothing but parentheses must not end the process. */
  #deeper(read: () => Term): Term {
    if (++this.#depth > MAX_DEPTH) throw new SqlSyntaxError(`it is nested more than ${MAX_DEPTH} times`);
    const term = read();
    this.#depth--;
    return term;
  }

  #isNull(operand: Operand): Term {
    if (operand.kind === 'constant') throw new SqlSyntaxError('IS NULL needs a property');
    const negated = this.#takeKeyword('NOT');
    if (!this.#takeKeyword('NULL')) throw this.#unexpected();
    const part: Predicate = { kind: 'null', operand };
    return { predicate: negated ? { kind: 'not', part } : part };
  }

  #in(left: Operand): Predicate {
    this.#expectSign('(');
    const list = [this.#operand()];
    while (this.#takeSign(',')) list.push(this.#operand());
    this.#expectSign(')');
    return { kind: 'in', left, list };
  }

  #like(left: Operand): Predicate {
    const pattern = this.#operand();
    return { kind: 'like', left, pattern, escape: this.#takeKeyword('ESCAPE') ? this.#operand() : undefined };
  }

  #parenthesizedProperty(): Operand {
    this.#expectSign('(');
    const operand = this.#operand();
    this.#expectSign(')');
    if (operand.kind === 'constant') throw new SqlSyntaxError('EXISTS needs a property');
    return operand;
  }

  #operand(): Operand {
    const term = this.#term();
    if ('operand' in term) return term.operand;
    throw new SqlSyntaxError('a condition stands where a value is needed');
  }

  #predicateOf(term: Term): Predicate {
    if ('predicate' in term) return term.predicate;
    throw new SqlSyntaxError(`a value stands where a condition is needed (before character ${this.#next.at + 1})`);
  }

  #term(): Term {
    if (this.#takeSign('(')) {
      const term = this.#deeper(() => this.#or());
      this.#expectSign(')');
      return term;
    }
    const token = this.#next;
    this.#at++;
    switch (token.kind) {
      case 'string':
        return constant(token.text);
      case 'integer':
        if (token.value === 2n ** 63n) throw new SqlSyntaxError(`${token.value} does not fit 64 bits`);
        return constant(token.value);
      case 'double':
        return constant(token.value);
      case 'word':
        return this.#word(token);
      case 'sign':
        if (token.text === '-' || token.text === '+') return this.#signedNumber(token.text);
    }
    this.#at--;
    throw this.#unexpected();
  }

  #signedNumber(sign: '-' | '+'): Term {
    const token = this.#next;
    if (token.kind !== 'integer' && token.kind !== 'double') throw arithmetic(token.at);
    this.#at++;
    if (sign === '+') return constant(token.value);
    return constant(token.kind === 'integer' ? -token.value : -token.value);
  }

  #word(token: Token & { kind: 'word' }): Term {
    const keyword = token.delimited ? '' : token.text.toUpperCase();
    if (keyword === 'TRUE' || keyword === 'FALSE') return constant(keyword === 'TRUE');
    if (keyword === 'NULL') return constant(null);
    if (RESERVED.has(keyword)) {
      this.#at--;
      throw this.#unexpected();
    }
    if (this.#isSign('(')) throw new SqlSyntaxError(`the function '${token.text}' is not supported by this broker`);
    if (!this.#takeSign('.')) return { operand: { kind: 'user', name: token.text } };
    const name = this.#next;
    if (name.kind !== 'word') throw this.#unexpected();
    this.#at++;
    return { operand: scopedProperty(keyword, name.text) };
  }

  get #next(): Token {
    return this.#tokens[this.#at] as Token;
  }

  #isKeyword(text: string): boolean {
    const token = this.#next;
    return token.kind === 'word' && !token.delimited && token.text.toUpperCase() === text;
  }

  #takeKeyword(text: string): boolean {
    const found = this.#isKeyword(text);
    if (found) this.#at++;
    return found;
  }

  #isSign(text: string): boolean {
    const token = this.#next;
    return token.kind === 'sign' && token.text === text;
  }

  #takeSign(text: string): boolean {
    const found = this.#isSign(text);
    if (found) this.#at++;
    return found;
  }

  #isArithmetic(): boolean {
    const token = this.#next;
    return token.kind === 'sign' && '+-*/%'.includes(token.text);
  }

  #expectSign(text: string): void {
    if (!this.#takeSign(text)) throw this.#unexpected();
  }

  #unexpected(): SqlSyntaxError {
    const token = this.#next;
    if (token.kind === 'end') return new SqlSyntaxError('it ends too early');
    if (this.#isArithmetic()) return arithmetic(token.at);
    const text = 'text' in token ? token.text : String(token.value);
    return new SqlSyntaxError(`'${text}' is not expected (character ${token.at + 1})`);
  }
}

/** The property `name` of a scope, `SYS` or `USER`. Throws {@link SqlSyntaxError} for any other, and for what is not in it. */
export function scopedProperty(scope: string, name: string): Property {
  if (scope === 'USER') return { kind: 'user', name };
  if (scope !== 'SYS') throw new SqlSyntaxError(`the scope '${scope.toLowerCase()}' is neither sys nor user`);
  const property = systemProperty(name);
  if (property) return { kind: 'system', name: property };
  const known = SYSTEM_PROPERTIES.join(', ');
  throw new SqlSyntaxError(`'sys.${name}' does not exist or is not allowed; this broker knows ${known}`);
}

function constant(value: Constant): Term {
  return { operand: { kind: 'constant', value } };
}

function arithmetic(at: number): SqlSyntaxError {
  return new SqlSyntaxError(`arithmetic is not supported by this broker (character ${at + 1})`);
}
