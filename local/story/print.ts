/** How the story is put on a page of 100 columns. */

/** Takes one line. */
export type Print = (line: string) => void;

export const WIDTH = 100;

/** JSON on one line where it fits into `width` columns, else one member a line. */
export function pretty(value: unknown, width: number, indent = 0): string {
  const flat = compact(value);
  if (indent + flat.length <= width || typeof value !== 'object' || value === null) return flat;
  const inner = ' '.repeat(indent + 2);
  const members = Array.isArray(value)
    ? value.map((item) => pretty(item, width, indent + 2))
    : Object.entries(value).map(([name, item]) => {
        const key = `${JSON.stringify(name)}: `;
        // A member that opens a bracket breaks behind it, so its key does not push it over the edge.
        return key + pretty(item, width - key.length, indent + 2);
      });
  const [open, end] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  return `${open}\n${members.map((member) => inner + member).join(',\n')}\n${' '.repeat(indent)}${end}`;
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
