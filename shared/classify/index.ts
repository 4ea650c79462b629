import { errorText } from '../errors.ts';
import type { Letter } from '../letter.ts';
import { judge } from './category.ts';
import { serviceBus } from './dialects/serviceBus.ts';
import type { Classification, Dialect, Evidence } from './evidence.ts';

/** The header formats that the office reads, in the order they are asked; the first to know a field decides it. */
export const DIALECTS: readonly Dialect[] = [serviceBus];

/**
 * Reads a letter's evidence and judges it. Never throws: a dialect that does makes the letter `unknown`, with the
 * error kept, so that one odd message can neither be lost nor stop the others.
 */
export function classify(letter: Letter, dialects: readonly Dialect[] = DIALECTS): Classification {
  let evidence: Evidence = {};
  const recognised: string[] = [];
  for (const dialect of dialects) {
    try {
      const found = dialect.read(letter);
      if (found === undefined) continue;
      recognised.push(dialect.name);
      evidence = { ...found, ...evidence };
    } catch (error) {
      return {
        category: 'unknown',
        advice: 'investigate',
        rule: 'dialect-failed',
        evidence: { ...(letter.reason !== undefined && { reason: letter.reason }), ...evidence },
        dialects: recognised,
        error: `${dialect.name}: ${errorText(error, 500)}`,
      };
    }
  }
  const verdict = judge(evidence);
  // Whatever it says: a letter that came back has shown that sending it again was not enough.
  const returned = letter.replay.count > 0 && verdict.advice === 'replay';
  return {
    ...verdict,
    ...(returned && { advice: 'investigate', rule: `${verdict.rule}+returned` }),
    evidence,
    dialects: recognised,
  };
}
