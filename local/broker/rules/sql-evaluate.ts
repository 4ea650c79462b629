/**
 * Evaluates a SQL filter on a message with three-valued logic: `undefined` is "unknown", which a property that is not
 * there or null brings in (documentation, "Property evaluation semantics").
 */
import type { MessageProperties } from './properties.ts';
import type { Comparison, Operand, Predicate } from './sql-parser.ts';
import { type Comparable, comparable, compare } from './values.ts';

export type Truth = boolean | undefined;

/** Types that an operator cannot work on, such as a string and a number. The rule then does not match. */
export class FilterError extends Error {
  override readonly name = 'FilterError';
}

/** Whether the predicate holds for the message. Throws {@link FilterError}. */
export function evaluate(predicate: Predicate, message: MessageProperties): Truth {
  switch (predicate.kind) {
    case 'and':
      return all(predicate.parts, message, false);
    case 'or':
      return all(predicate.parts, message, true);
    case 'not':
      return negate(evaluate(predicate.part, message));
    case 'compare': {
      const left = read(predicate.left, message);
      const right = read(predicate.right, message);
      return left && right && holds(predicate.sign, left, right);
    }
    case 'in':
      return isIn(read(predicate.left, message), predicate.list, message);
    case 'like':
      return isLike(predicate, message);
    case 'null':
      return read(predicate.operand, message) === undefined;
    case 'exists':
      return isThere(predicate.operand, message);
  }
}

/** AND ends at the first false, OR at the first true; an unknown among the parts makes the rest unknown. */
function all(parts: readonly Predicate[], message: MessageProperties, end: boolean): Truth {
  let unknown = false;
  for (const part of parts) {
    const truth = evaluate(part, message);
    if (truth === end) return end;
    if (truth === undefined) unknown = true;
  }
  return unknown ? undefined : !end;
}

function negate(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}

function holds(sign: Comparison, left: Comparable, right: Comparable): boolean {
  const order = compare(left, right);
  const ordered = left.kind !== 'boolean' && left.kind !== 'uuid';
  if (order === undefined || (!ordered && sign !== '=' && sign !== '<>')) {
    throw new FilterError(`'${sign}' does not compare ${nameOf(left)} with ${nameOf(right)}`);
  }
  switch (sign) {
    case '=':
      return order === 0;
    case '<>':
      return order !== 0;
    case '<':
      return order < 0;
    case '>':
      return order > 0;
    case '<=':
      return order <= 0;
    case '>=':
      return order >= 0;
  }
}

function isIn(left: Comparable | undefined, list: readonly Operand[], message: MessageProperties): Truth {
  if (!left) return undefined;
  let unknown = false;
  for (const operand of list) {
    const right = read(operand, message);
    if (!right) unknown = true;
    else if (holds('=', left, right)) return true;
  }
  return unknown ? undefined : false;
}

function isLike(predicate: Predicate & { kind: 'like' }, message: MessageProperties): Truth {
  const left = read(predicate.left, message);
  const pattern = read(predicate.pattern, message);
  const escaping = predicate.escape && read(predicate.escape, message);
  if (!left || !pattern || (predicate.escape && !escaping)) return undefined;
  if (left.kind !== 'string' || pattern.kind !== 'string') {
    throw new FilterError(`LIKE compares strings, not ${nameOf(left)} with ${nameOf(pattern)}`);
  }
  if (escaping && (escaping.kind !== 'string' || [...escaping.value].length !== 1)) {
    throw new FilterError('ESCAPE needs a string of one character');
  }
  return matchesPattern(left.value, pattern.value, escaping?.kind === 'string' ? escaping.value : undefined);
}

const ANY_TEXT = Symbol('%');
const ANY_CHARACTER = Symbol('_');

/**
 * Whether `text` is like `pattern`. Goes back to the last `%` only, so that no pattern takes more than
 * pattern × text steps. Case matters.
 */
export function matchesPattern(text: string, pattern: string, escaping: string | undefined): boolean {
  const wanted = patternOf(pattern, escaping);
  const found = [...text];
  let [at, next] = [0, 0];
  let retry: { at: number; next: number } | undefined;
  while (at < found.length) {
    const want = wanted[next];
    if (want === ANY_TEXT) retry = { at, next: ++next };
    else if (want === ANY_CHARACTER || want === found[at]) [at, next] = [at + 1, next + 1];
    else if (retry) [at, next] = [++retry.at, retry.next];
    else return false;
  }
  while (wanted[next] === ANY_TEXT) next++;
  return next === wanted.length;
}

function patternOf(pattern: string, escaping: string | undefined): (string | symbol)[] {
  const wanted: (string | symbol)[] = [];
  const characters = [...pattern];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] as string;
    if (character === escaping) {
      const literal = characters[++at];
      if (literal === undefined) throw new FilterError('the pattern of LIKE ends with its escape character');
      wanted.push(literal);
    } else wanted.push(character === '%' ? ANY_TEXT : character === '_' ? ANY_CHARACTER : character);
  }
  return wanted;
}

/** The value of an operand, `undefined` where it is unknown. */
export function read(operand: Operand, message: MessageProperties): Comparable | undefined {
  switch (operand.kind) {
    case 'constant':
      return constantOf(operand.value);
    case 'system': {
      const value = message.system(operand.name);
      return value && comparable(value);
    }
    case 'user': {
      const value = message.user(operand.name);
      return value && comparable(value);
    }
  }
}

function constantOf(value: string | bigint | number | boolean | null): Comparable | undefined {
  if (value === null) return undefined;
  if (typeof value === 'string') return { kind: 'string', value };
  if (typeof value === 'bigint') return { kind: 'integer', value };
  return typeof value === 'number' ? { kind: 'double', value } : { kind: 'boolean', value };
}

/** A property that holds null exists. */
function isThere(operand: Operand, message: MessageProperties): boolean {
  if (operand.kind === 'constant') return true;
  return (operand.kind === 'system' ? message.system(operand.name) : message.user(operand.name)) !== undefined;
}

/** What kind of value it is, in words. */
export function nameOf(value: Comparable): string {
  return value.kind === 'opaque' ? value.type : value.kind;
}
