/** How many letters classification reads a second, and how long it takes with the worst of random ones. */
import fc from 'fast-check';
import type { Source } from '../../shared/catalog.ts';
import { parseCatalog } from '../../shared/catalog.ts';
import { Classifier } from '../../shared/classify/classifier.ts';
import type { Letter } from '../../shared/letter.ts';
import { bodyOf, letterFixtures, letterOf } from '../harness/letterFixtures.ts';
import { anyLetter } from '../harness/randomLetters.ts';
import { aCatalog, anEntry, SETTINGS } from '../harness/values.ts';
import { atLeast, atMost, figure, type Row } from './row.ts';

/** The best of some short rounds: what the code can do when it has the core for itself. */
const ROUNDS = 8;
const ROUND_SECONDS = 0.5;
const RANDOM_LETTERS = 10_000;
/** A letter that is slow is read again: what stays slow is its own doing, the rest that of the machine. */
const AGAIN = 10;

interface Read {
  readonly letter: Letter;
  readonly content: Buffer;
}

export async function bench(): Promise<Row[]> {
  const catalog = parseCatalog(aCatalog({ sources: [anEntry({ rules: RULES, payloads: PAYLOADS })] }), SETTINGS);
  const [source] = catalog.sources;
  if (source === undefined) throw new Error('a catalog with one entry has one source');
  const classifier = new Classifier(catalog);
  const typical = letterFixtures()
    .filter(({ kind }) => kind === 'typical')
    .map((fixture) => ({ letter: letterOf(fixture), content: bodyOf(fixture) }));
  const random = fc.sample(anyLetter, { numRuns: RANDOM_LETTERS, seed: 5 });
  const letters = Math.max(...Array.from({ length: ROUNDS }, () => rate(classifier, source, typical, ROUND_SECONDS)));
  const times = random.map((read) => slowest(classifier, source, read)).sort((a, b) => a - b);
  return [
    atLeast('typical letters, one core', letters, 'letters/s', 20_000),
    atMost(`the slowest of ${RANDOM_LETTERS} random letters`, times.at(-1) ?? Number.NaN, 'ms', 5),
    figure('99 of 100 random letters, at most', times[Math.floor(times.length * 0.99)] ?? Number.NaN, 'ms'),
  ];
}

/** Reads letters over and over for that long; letters a second. */
function rate(classifier: Classifier, source: Source, letters: readonly Read[], seconds: number): number {
  const began = performance.now();
  let count = 0;
  while (performance.now() - began < seconds * 1000) {
    for (const { letter, content } of letters) classifier.classify(source, letter, () => [content]);
    count += letters.length;
  }
  return count / ((performance.now() - began) / 1000);
}

function slowest(classifier: Classifier, source: Source, { letter, content }: Read): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < AGAIN; i++) {
    const began = performance.now();
    classifier.classify(source, letter, () => [content]);
    best = Math.min(best, performance.now() - began);
    if (best < 1) break;
  }
  return best;
}

/** Rules and a schema as a catalog may have them. */
const RULES = [
  ...Array.from({ length: 20 }, (_, i) => ({
    name: `vendor-${i}`,
    when: { exceptionMessage: `*vendor ${i} *refused*`, description: ['*one*', '*two*three*'] },
    category: 'transient',
    advice: 'replay',
  })),
  {
    name: 'test-orders',
    when: { bodyPath: { path: 'order.customer.kind', equals: 'test' } },
    category: 'poison',
    advice: 'investigate',
  },
];
const PAYLOADS = {
  'Shop.Contracts.SubmitOrder': {
    type: 'object',
    required: ['orderId'],
    properties: { orderId: { type: 'integer' }, lines: { type: 'array', items: { type: 'object' } } },
  },
};
