/** Output that a page shows, compared with what a command printed. */
import { pages } from './pages.ts';

/** Without what differs from run to run: plans, times, ports; and without line breaks, as a longer time may wrap a text anew. */
function settled(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\d{8}t\d{6}-[a-z2-7]{8}/g, '<plan>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/(?:at|between) [\d: -]+(?:and [\d: -]+)?UTC/g, '<when>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '<host>')
    .replaceAll(/(after|in) [\d.]+ s\b/g, '$1 <seconds>')
    .trim();
}

/**
 * Lines that the block of a page with `mark` in it shows and `output` does not have, in this order. Lines that begin with `[`
 * stand for what is left out.
 */
export function notPrinted(name: string, mark: string, output: string): string[] {
  const block = pages()
    .find((page) => page.name === name)
    ?.blocks.find(({ text }) => text.includes(mark));
  if (block === undefined) return [`${name} has no block with "${mark}"`];
  const printed = settled(output);
  const missing: string[] = [];
  let at = 0;
  for (const line of block.text.split('\n')) {
    const wanted = settled(line);
    if (wanted === '' || wanted.startsWith('[')) continue;
    const found = printed.indexOf(wanted, at);
    if (found < 0) missing.push(line);
    else at = found + wanted.length;
  }
  return missing;
}
