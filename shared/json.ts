/** Reads JSON files that people write, more strictly than `JSON.parse` and from more editors. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';

/**
 * The value in a JSON file in UTF-8, with or without a byte order mark. Throws an `Error` that says what is wrong: a key that is there
 * twice too, of which `JSON.parse` would drop the first without a word. With `anyCase`, keys that differ in case alone are the same.
 */
export function readJsonFile(file: string | URL, { anyCase = false } = {}): unknown {
  const bytes = readFileSync(file);
  // JSON begins with two characters of ASCII, so a zero among the first two bytes is the half of one.
  const start = bytes.subarray(0, 2);
  if (/^(fffe|feff)$/.test(start.toString('hex')) || start.includes(0)) {
    throw new Error('it is UTF-16; save it as UTF-8');
  }
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8, as it must be');
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  const value = JSON.parse(text) as unknown;
  const twice = repeatedKey(text, anyCase);
  if (twice !== undefined) throw new Error(`${twice} is there twice`);
  return value;
}

/** An object or a list that is open: the keys seen in it, and where in it we are. */
interface Level {
  readonly keys: Set<string> | undefined;
  at: string | number;
}

/** Path of the first key that its object has twice, in JSON that was found to be valid. */
export function repeatedKey(text: string, anyCase = false): string | undefined {
  const levels: Level[] = [];
  for (const [token, colon] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]/g)) {
    const level = levels.at(-1);
    if (token === '{' || token === '[') levels.push({ keys: token === '{' ? new Set() : undefined, at: 0 });
    else if (token === '}' || token === ']') levels.pop();
    else if (token === ',' && typeof level?.at === 'number') level.at += 1;
    else if (colon !== undefined && level?.keys !== undefined) {
      const key = JSON.parse(token.slice(0, -colon.length)) as string;
      level.at = key;
      const same = anyCase ? key.toLowerCase() : key;
      if (level.keys.has(same)) return levels.map(({ at }) => at).join('.');
      level.keys.add(same);
    }
  }
  return undefined;
}
