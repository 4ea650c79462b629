/** How the story is put on a page of 100 columns. */

/** Takes one line. */
export type Print = (line: string) => void;

export const WIDTH = 100;

/** JSON, as flat as fits into `width` columns. `before` is what already stands on its first line, `indent` how deep it is. */
export function pretty(value: unknown, width: number, indent = 0, before = 0): string {
  const flat = compact(value);
  if (indent + before + flat.length < width || typeof value !== 'object' || value === null) return flat;
  const isList = Array.isArray(value);
  const members = Object.entries(value).map(([name, item]) => {
    const key = isList ? '' : `${JSON.stringify(name)}: `;
    return `${' '.repeat(indent + 2)}${key}${pretty(item, width, indent + 2, key.length)}`;
  });
  const [open, end] = isList ? ['[', ']'] : ['{', '}'];
  return `${open}\n${members.join(',\n')}\n${' '.repeat(indent)}${end}`;
}

function compact(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(compact).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${compact(item)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

/** `text` broken into lines of at most `width` columns. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
