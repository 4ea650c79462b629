/** Private-use characters that stand for parts of a text while it is worked on. The text itself is freed of such characters first. */

/** Placeholders for what varies. */
export const SPOTS = {
  number: '\uE000',
  id: '\uE001',
  time: '\uE002',
  value: '\uE003',
  host: '\uE004',
  path: '\uE005',
  url: '\uE006',
  address: '\uE007',
};
/** Any of them. */
export const SPOT = /[\uE000-\uE007]/g;

const FIRST = 0xe100;
const MAX_KEPT = 1000;
const KEPT = /[\ue100-\ue4e7]/g;

/**
 * Words of one text that say what went wrong and are not to be taken for values: each waits as one character until everything that
 * varies has been replaced.
 */
export class Kept {
  readonly #words: string[] = [];
  readonly #spots = new Map<string, string>();

  /** Keeps a word, and returns what stands for it: the same for the same word. Words beyond a thousand are not kept. */
  keep(word: string): string {
    const known = this.#spots.get(word);
    if (known !== undefined || this.#words.length >= MAX_KEPT) return known ?? word;
    const spot = String.fromCharCode(FIRST + this.#words.length);
    this.#words.push(word);
    this.#spots.set(word, spot);
    return spot;
  }

  /** The text with its words back in their places. */
  restore(text: string): string {
    return text.replace(KEPT, (spot) => this.#words[spot.charCodeAt(0) - FIRST] ?? '');
  }
}
