/** Where letters say that they came from. A header never chooses a target: it is told, and the catalog decides. */
import type { Source } from '../catalog.ts';
import type { Letter } from '../letter.ts';
import type { Finding } from '../records/plan.ts';
import { targetOf } from './preflight.ts';

/**
 * The queue that a letter should go to as far as anybody knows: the one it died in before it was forwarded here, else the source's own
 * target. `undefined` where there is none; what was forwarded out of a subscription can be sent to no such place.
 */
export function suggestedTarget(source: Source, letter: Letter): string | undefined {
  return letter.deadLetterSource === undefined ? targetOf(source) : queueOf(letter.deadLetterSource);
}

function queueOf(path: string): string | undefined {
  const entity = path.replace(/\/\$deadletterqueue$/i, '').replace(/^\//, '');
  return entity === '' || /\/subscriptions\//i.test(entity) ? undefined : entity;
}

/** Most origins that a finding names. */
const MAX_NAMED = 10;

/** Adds to `no-direct-target`, where it is found, where this letter came from. */
export function tellOrigin(findings: readonly Finding[], { deadLetterSource }: Letter): Finding[] {
  return findings.map((finding) => {
    if (finding.code !== 'no-direct-target' || deadLetterSource === undefined) return finding;
    const known = finding.suggested ?? [];
    const origin = queueOf(deadLetterSource) ?? deadLetterSource;
    if (known.includes(origin) || known.length >= MAX_NAMED) return finding;
    const suggested = [...known, origin];
    const before = finding.message.split(CAME_FROM)[0] ?? '';
    return { ...finding, suggested, message: `${before}${CAME_FROM}${suggested.join(', ')}${IF_SO}` };
  });
}

const CAME_FROM = '; by x-opt-deadletter-source these letters died first in ';
const IF_SO = ': where that is a queue and they belong there, name it as replay.replayQueue';
