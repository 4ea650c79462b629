/** How well fingerprints put letters of one cause together, and how many are made in a second. */
import { sourceKey } from '../../shared/catalog.ts';
import { causeOf } from '../../shared/classify/fingerprint.ts';
import { CAUSES, manyDeaths, pairwise } from '../harness/causes.ts';
import { atLeast, figure, type Row } from './row.ts';

const LETTERS = 5000;
const WHERE = sourceKey('host', 'orders');

export async function bench(): Promise<Row[]> {
  const deaths = manyDeaths(LETTERS, 1);
  for (const { evidence } of deaths.slice(0, 1000)) causeOf(evidence, WHERE); // the first ones pay for the compiler
  const began = performance.now();
  const letters = deaths.map(({ cause, evidence }) => ({ cause, group: causeOf(evidence, WHERE).fingerprint }));
  const perSecond = (LETTERS / (performance.now() - began)) * 1000;
  const { precision, recall } = pairwise(letters);
  return [
    figure('letters', LETTERS, ''),
    figure('causes', CAUSES.length, ''),
    figure('groups', new Set(letters.map(({ group }) => group)).size, ''),
    atLeast('pairwise precision', precision, '', 0.98),
    atLeast('pairwise recall', recall, '', 0.98),
    figure('fingerprints', perSecond, '1/s'),
  ];
}
