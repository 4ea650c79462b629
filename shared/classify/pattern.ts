/**
 * The patterns of the catalog's rules: `*` stands for any text, also none; every other character for itself, upper or lower case.
 * A pattern fits the whole text. There is nothing else, on purpose: each part between two stars is looked for once, from where the
 * last one ended, so no text can make a comparison take longer than reading it.
 */

/** How much of a text is compared, characters. */
export const MAX_COMPARED = 2048;

/** A pattern, taken apart. */
export interface Pattern {
  /** What stands between the stars, lower-case; at least one part. */
  readonly parts: readonly string[];
}

export function compilePattern(text: string): Pattern {
  return { parts: text.toLowerCase().split('*') };
}

/** Whether `text`, lower-case already (see {@link foldText}), fits. */
export function fits({ parts }: Pattern, text: string): boolean {
  const first = parts[0] ?? '';
  if (parts.length === 1) return text === first;
  const last = parts.at(-1) ?? '';
  if (!text.startsWith(first)) return false;
  let from = first.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] ?? '';
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return text.length - last.length >= from && text.endsWith(last);
}

/** The text as patterns compare it. */
export function foldText(text: string): string {
  return (text.length > MAX_COMPARED ? text.slice(0, MAX_COMPARED) : text).toLowerCase();
}
