/** What chains of exceptions come to: the outermost, and the one that stands for the cause of all. */
import type { Chain } from './chains.ts';
import { familyOf } from './families.ts';
import { findHead, type Head, headAt } from './heads.ts';
import { clean, LIMIT, present } from './text.ts';

/** What a printed exception tells. */
export interface Printed {
  readonly exceptionType?: string;
  readonly exceptionMessage?: string;
  /** The innermost one, where it is another than the outermost. Without a type: several that are not of one kind. */
  readonly causeType?: string;
  readonly causeMessage?: string;
}

/** What stands for the message where a text tells of several exceptions of different kinds. */
const SEVERAL = 'several exceptions of different kinds';

/** The cause that a printed exception tells of, where its type is known from elsewhere; nothing where it is the same exception again. */
export function causeBehind(type: string, printed: Printed): Pick<Printed, 'causeType' | 'causeMessage'> {
  const { exceptionType, exceptionMessage, causeType, causeMessage } = printed;
  if (causeType !== undefined || causeMessage !== undefined) return present({ causeType, causeMessage });
  if (exceptionType === undefined || isSameType(exceptionType, type)) return {};
  return present({ causeType: exceptionType, causeMessage: exceptionMessage });
}

/** Whether two names are of one type: one place tells its namespace, and another does not. */
export function isSameType(one: string, other: string): boolean {
  const [short = '', long = ''] = one.length < other.length ? [one, other] : [other, one];
  return long === short || (long.endsWith(short) && /[.:+$\\]/.test(long[long.length - short.length - 1] ?? ''));
}

/** One judgement of all chains: what they have in common, or that they have nothing. */
export function printed(chains: readonly Chain[], group?: Head): Printed {
  const [first] = chains;
  const outer = group ?? first?.[0];
  if (first === undefined || outer === undefined) return {};
  const leaves = chains.flatMap((chain) => leafOf(chain) ?? []);
  const leaf = commonOf(leaves);
  if (leaf === undefined) {
    const isGroup = group !== undefined || chains.every(([head]) => head === outer);
    return present({
      exceptionType: isGroup ? outer.type : undefined,
      exceptionMessage: isGroup ? outer.message : SEVERAL,
      causeMessage: clean(listed(leaves), LIMIT.message),
    });
  }
  const isPlain = isBare(outer.type) && first.length === 1 && outer.code === undefined;
  const shown = group ?? (isPlain ? leaf : outer);
  const isWrapped = leaf !== shown && (leaf.type !== shown.type || leaf.message !== shown.message);
  return present({
    exceptionType: shown.type,
    exceptionMessage: shown.message,
    causeType: isWrapped ? leaf.type : undefined,
    causeMessage: isWrapped ? leaf.message : undefined,
  });
}

/** The one that stands for all: of the same type, or of the same family; the first by name, since their order is chance. */
function commonOf(leaves: readonly Head[]): Head | undefined {
  const sorted = leaves.toSorted((a, b) => compare(a.type, b.type) || compare(a.message ?? '', b.message ?? ''));
  const [first] = sorted;
  if (first === undefined || sorted.every(({ type }) => type === first.type)) return first;
  const rule = familyOf(first.type, first.message)?.rule;
  return rule !== undefined && sorted.every(({ type, message }) => familyOf(type, message)?.rule === rule)
    ? first
    : undefined;
}

function listed(leaves: readonly Head[]): string {
  const told = leaves.map(({ type, message }) => (message === undefined ? type : `${type}: ${message}`));
  return [...new Set(told)].sort(compare).join('; ');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A name that says nothing: `Error` around a message that is an exception itself. */
function isBare(type: string): boolean {
  return /^(?:\w{1,20}\.)?(?:Exception|Error|Failure|Fault|AggregateError)$/.test(type);
}

/** The innermost of a chain, also where a message is an exception itself, as in Java's `RuntimeException: java.net.ConnectException: …`. */
function leafOf(chain: Chain): Head | undefined {
  let leaf = chain.at(-1);
  for (let i = 0; i < 4 && leaf !== undefined; i++) {
    const inner = messageHead(leaf);
    if (inner === undefined) break;
    leaf = inner;
  }
  return leaf?.code !== undefined && isBare(leaf.type) ? { type: leaf.code, message: leaf.message ?? leaf.code } : leaf;
}

/** SQLAlchemy and Spring write the inner exception into the message of the outer one. */
function messageHead({ message }: Head): Head | undefined {
  if (message === undefined) return undefined;
  const driver = /^\(([a-z]\w{0,40}(?:\.\w{1,60}){1,5})\) /.exec(message);
  if (driver?.[1] !== undefined)
    return { type: driver[1], message: clean(message.slice(driver[0].length), LIMIT.message) };
  const nested = message.lastIndexOf('nested exception is ');
  if (nested >= 0) return headAt(message, nested + 'nested exception is '.length);
  return findHead(message.slice(0, 300), false) === 0 ? headAt(message, 0) : undefined;
}
