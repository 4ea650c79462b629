/**
 * Hides values in texts that quote them: in any case, with other blanks and signs between, escaped as in JSON, a URL or HTML, and
 * cut at the end. One pass over each text, whatever the values are: strangers write both. Values only.
 */

export const MASKED = '***';

/** A text that must not be told. */
export interface HiddenValue {
  readonly text: string;
  /** There may have been more of it: what follows it in a text is hidden too. */
  readonly isCut: boolean;
}

/** Shorter values, in letters and digits, are found only as words of their own: a `42` stands in many numbers. */
const MIN_PART = 4;
/** Still shorter ones are found only where they are the whole of a text. */
const MIN_WORD = 2;
/** The end of a text is compared with the beginning of a value from this length on. */
const MIN_CUT = 8;

/** A function that hides `values` in a text: wholly where the text is one of them, or was read from one. */
export function textMasker(values: readonly HiddenValue[]): (text: string) => string {
  if (values.length === 0) return (text) => text;
  const wholes = new Set(values.map(({ text }) => text));
  const words = new Words();
  const folded = new Set<string>();
  for (const { text, isCut } of values) {
    const own = fold(text).text;
    if (own.length < MIN_WORD) continue;
    words.add(own, isCut);
    folded.add(own);
  }
  words.link();
  const all = [...folded].join('\n');
  return (text) => {
    const whole = text.trim();
    if (whole === '' || whole === MASKED) return text;
    if (wholes.has(whole)) return MASKED;
    const plain = fold(text);
    // Dialects take a name out of a longer value, and write it in their own way.
    if (plain.text.length >= MIN_PART && all.includes(plain.text)) return MASKED;
    const ranges = words.rangesIn(plain);
    if (ESCAPED.test(text)) ranges.push(...words.rangesIn(unescaped(text)));
    return withoutRanges(text, ranges);
  };
}

/** Letters and digits of a text in lower case, and where in it each stood. */
interface Folded {
  readonly text: string;
  readonly from: readonly number[];
  readonly to: readonly number[];
}

type Range = readonly [from: number, to: number];

function fold(text: string): Folded {
  return folded([[text, 0, undefined]]);
}

/** Parts of a text: each with its place, and its end where it is not written as it reads. */
function folded(parts: Iterable<readonly [text: string, at: number, end: number | undefined]>): Folded {
  let result = '';
  const from: number[] = [];
  const to: number[] = [];
  for (const [text, at, end] of parts) {
    let place = at;
    for (const sign of text) {
      const next = place + sign.length;
      if (/[\p{L}\p{N}]/u.test(sign)) {
        const lower = sign.toLowerCase();
        for (let i = 0; i < lower.length; i++) {
          from.push(end === undefined ? place : at);
          to.push(end ?? next);
        }
        result += lower;
      }
      place = next;
    }
  }
  return { text: result, from, to };
}

const ESCAPE =
  /\\u([0-9a-f]{4})|(\\[nrtbf"'\\/])|((?:%[0-9a-f]{2})+)|&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|amp|lt|gt|quot|apos|nbsp);/gi;
const ESCAPED = /\\[unrtbf"'\\/]|%[0-9a-f]{2}|&#?\w{1,8};/i;

/** The text with what is escaped in it read. What stands for blanks and signs is of no interest. */
function unescaped(text: string): Folded {
  const parts: [string, number, number | undefined][] = [];
  let last = 0;
  for (const match of text.matchAll(ESCAPE)) {
    const [all, json, , url, decimal, hex] = match;
    parts.push([text.slice(last, match.index), last, undefined]);
    last = match.index + all.length;
    const code = json ?? hex;
    const read =
      url !== undefined ? readUrl(url) : point(code === undefined ? Number(decimal) : Number.parseInt(code, 16));
    parts.push([read, match.index, last]);
  }
  parts.push([text.slice(last), last, undefined]);
  return folded(parts);
}

function readUrl(escaped: string): string {
  return Buffer.from(escaped.replaceAll('%', ''), 'hex').toString('utf8');
}

function point(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : '';
}

/** Merges what overlaps. */
function withoutRanges(text: string, ranges: readonly Range[]): string {
  let told = '';
  let end = 0;
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    if (from >= end) told += `${text.slice(end, from)}${MASKED}`;
    end = Math.max(end, to);
  }
  return told + text.slice(end);
}

/** Finds many words in one pass, however many they are and however they begin (A. Aho, M. Corasick, CACM 18, 1975). */
class Words {
  /** By node and code unit. */
  readonly #edges = new Map<number, number>();
  readonly #depth = [0];
  readonly #before = [0];
  readonly #unit = [0];
  /** The longest other word's beginning that a node ends with. */
  readonly #fallback = [0];
  /** The longest word that ends at a node, and whether one that does may go on. */
  readonly #length = [0];
  readonly #isCut = [false];

  add(word: string, isCut: boolean): void {
    let node = 0;
    for (let i = 0; i < word.length; i++) {
      const unit = word.charCodeAt(i);
      let next = this.#edges.get(edge(node, unit));
      if (next === undefined) {
        next = this.#depth.length;
        this.#edges.set(edge(node, unit), next);
        this.#depth.push((this.#depth[node] ?? 0) + 1);
        this.#before.push(node);
        this.#unit.push(unit);
        this.#fallback.push(0);
        this.#length.push(0);
        this.#isCut.push(false);
      }
      node = next;
    }
    this.#length[node] = word.length;
    this.#isCut[node] ||= isCut;
  }

  /** After the last word. */
  link(): void {
    const byDepth = this.#depth
      .map((_depth, node) => node)
      .sort((a, b) => this.#at(this.#depth, a) - this.#at(this.#depth, b));
    for (const node of byDepth) {
      if (node === 0) continue;
      const before = this.#at(this.#before, node);
      const fallback = before === 0 ? 0 : this.#step(this.#at(this.#fallback, before), this.#at(this.#unit, node));
      this.#fallback[node] = fallback;
      this.#length[node] ||= this.#at(this.#length, fallback);
      this.#isCut[node] ||= this.#isCut[fallback] === true;
    }
  }

  /** Where words stand, and where one begins that the end of the text has cut. */
  rangesIn({ text, from, to }: Folded): Range[] {
    const ranges: Range[] = [];
    const startOf = (length: number, end: number) => from[end + 1 - length] ?? 0;
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      node = this.#step(node, text.charCodeAt(i));
      const length = this.#at(this.#length, node);
      if (length === 0) continue;
      const isWord = from[i + 1] !== to[i] && (i < length || to[i - length] !== from[i + 1 - length]);
      if (length < MIN_PART && !isWord) continue;
      if (this.#isCut[node]) return [...ranges, [startOf(length, i), Number.POSITIVE_INFINITY]];
      ranges.push([startOf(length, i), to[i] ?? 0]);
    }
    const rest = this.#at(this.#depth, node);
    if (rest >= MIN_CUT && rest > this.#at(this.#length, node))
      ranges.push([startOf(rest, text.length - 1), Number.POSITIVE_INFINITY]);
    return ranges;
  }

  #step(node: number, unit: number): number {
    for (let at = node; ; at = this.#at(this.#fallback, at)) {
      const next = this.#edges.get(edge(at, unit));
      if (next !== undefined) return next;
      if (at === 0) return 0;
    }
  }

  #at(list: readonly number[], node: number): number {
    return list[node] ?? 0;
  }
}

function edge(node: number, unit: number): number {
  return node * 0x10000 + unit;
}
