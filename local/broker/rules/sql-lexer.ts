/** Cuts a SQL filter or action into tokens (Service Bus documentation, "Subscription rule SQL filter syntax"). */

/** Says what is wrong with an expression and where. */
export class SqlSyntaxError extends Error {
  override readonly name = 'SqlSyntaxError';
}

/** A token; `at` is its first character, counted from zero. */
export type Token =
  /** `text` in upper case for a keyword; `delimited` for `[name]` and `"name"`, which are never keywords. */
  | { readonly kind: 'word'; readonly text: string; readonly delimited: boolean; readonly at: number }
  | { readonly kind: 'string'; readonly text: string; readonly at: number }
  | { readonly kind: 'integer'; readonly value: bigint; readonly at: number }
  | { readonly kind: 'double'; readonly value: number; readonly at: number }
  | { readonly kind: 'sign'; readonly text: string; readonly at: number }
  | { readonly kind: 'end'; readonly at: number };

const SPACE = /\s+/y;
// A letter first; the documentation allows letters, digits and underscores after it, the service's own names need no more.
const WORD = /\p{L}[\p{L}\p{Nd}_]*/uy;
const NUMBER = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SIGN = /<>|!=|<=|>=|[=<>(),;.+\-*/%]/y;
const QUOTED = { "'": /'((?:[^']|'')*)'/y, '[': /\[((?:[^\]]|\]\])+)\]/y, '"': /"((?:[^"]|"")+)"/y } as const;
const MAX_LONG = 2n ** 63n - 1n;

/** All tokens of `text`, an `end` last. Throws {@link SqlSyntaxError}. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = skipSpace(text, 0);
  while (at < text.length) {
    const { token, end } = tokenAt(text, at);
    tokens.push(token);
    at = skipSpace(text, end);
  }
  tokens.push({ kind: 'end', at });
  return tokens;
}

function tokenAt(text: string, at: number): { token: Token; end: number } {
  const first = text[at] as string;
  if (first === "'" || first === '[' || first === '"') return quotedAt(text, at, first);
  const word = matchAt(WORD, text, at);
  if (word) return { token: { kind: 'word', text: word, delimited: false, at }, end: at + word.length };
  const number = matchAt(NUMBER, text, at);
  if (number) return { token: numberToken(number, at), end: at + number.length };
  const sign = matchAt(SIGN, text, at);
  if (sign) return { token: { kind: 'sign', text: sign, at }, end: at + sign.length };
  if (first === '@')
    throw new SqlSyntaxError(`parameters ('@') are not supported by this broker (character ${at + 1})`);
  throw new SqlSyntaxError(`'${first}' is not expected (character ${at + 1})`);
}

function quotedAt(text: string, at: number, quote: keyof typeof QUOTED): { token: Token; end: number } {
  const pattern = QUOTED[quote];
  pattern.lastIndex = at;
  const match = pattern.exec(text);
  if (!match) throw new SqlSyntaxError(`what begins with ${quote} does not end (character ${at + 1})`);
  const close = quote === '[' ? ']' : quote;
  const content = (match[1] as string).replaceAll(close + close, close);
  const end = pattern.lastIndex;
  if (quote === "'") return { token: { kind: 'string', text: content, at }, end };
  return { token: { kind: 'word', text: content, delimited: true, at }, end };
}

function numberToken(text: string, at: number): Token {
  if (/[.eE]/.test(text)) return { kind: 'double', value: Number(text), at };
  const value = BigInt(text);
  // One more than the largest is let through: it may have a minus in front.
  if (value > MAX_LONG + 1n) throw new SqlSyntaxError(`${text} does not fit 64 bits (character ${at + 1})`);
  return { kind: 'integer', value, at };
}

function skipSpace(text: string, at: number): number {
  return at + (matchAt(SPACE, text, at)?.length ?? 0);
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}
