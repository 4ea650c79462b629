/** Constants of the code by name, as their sources write them: pages are held to them, and many are no export. */
import { read } from './pages.ts';

/** Files in which a constant may be that another is made of. */
const ELSEWHERE = ['shared/store/plans.ts', 'shared/store/table.ts'];

/** A constant's value: a number, a product, or another constant with something taken off. Throws for anything else. */
export function constant(name: string, file: string): number {
  for (const place of [file, ...ELSEWHERE]) {
    const [, text] = new RegExp(`const ${name} = ([^;]+);`).exec(read(place)) ?? [];
    if (text === undefined) continue;
    const [, product = '', less = '0'] = /^([\w* ]+?)(?: - (\d+))?$/.exec(text) ?? [];
    const factors = product.split(' * ').map((factor) => {
      if (/^[\d_]+$/.test(factor)) return Number(factor.replaceAll('_', ''));
      return constant(factor, place);
    });
    return factors.reduce((all, factor) => all * factor, 1) - Number(less);
  }
  throw new Error(`${name} is not a number in ${file}`);
}
