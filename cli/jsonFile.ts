import { readFile } from 'node:fs/promises';

/** Reads a JSON file; the error names the file. */
export async function readJson(path: string): Promise<unknown> {
  try {
    // The real host takes files with a byte order mark, too.
    return JSON.parse((await readFile(path, 'utf8')).replace(/^\ufeff/, ''));
  } catch (cause) {
    throw new Error(`${path} cannot be read as JSON: ${(cause as Error).message}`, { cause });
  }
}
