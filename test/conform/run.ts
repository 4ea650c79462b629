/** Runs beliefs against a target, each on entities of its own. */
import { randomBytes } from 'node:crypto';
import { inParallel } from '../../shared/parallel.ts';
import { type Ability, type Belief, NotCheckable, show } from './belief.ts';
import { Context } from './context.ts';
import type { Place, Target } from './target.ts';

/** What came of testing one belief. */
export type Outcome =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly seen: string }
  | { readonly outcome: 'not-checkable'; readonly why: string };

/** Longest that one belief may take on a real namespace, milliseconds. */
const LIMIT_MS = 300_000;

/** Tests the beliefs; `tell` hears of each as it is done. Gives the outcomes by id. */
export async function runBeliefs(
  target: Target,
  beliefs: readonly Belief[],
  tell: (belief: Belief, outcome: Outcome, ms: number) => void,
): Promise<Map<string, Outcome>> {
  const outcomes = await inParallel(
    beliefs,
    async (belief) => {
      const before = performance.now();
      const outcome = await runBelief(target, belief);
      tell(belief, outcome, performance.now() - before);
      return [belief.id, outcome] as const;
    },
    target.atOnce,
  );
  return new Map(outcomes);
}

/** Tests one belief. Never throws: whatever goes wrong is the outcome. */
export async function runBelief(target: Target, belief: Belief): Promise<Outcome> {
  let place: Place | undefined;
  let context: Context | undefined;
  try {
    place = await target.prepare(belief);
    for (const ability of belief.needs.abilities ?? []) {
      if (!ABILITIES[ability].isThere(place)) throw new NotCheckable(ABILITIES[ability].otherwise);
    }
    context = new Context(place, randomBytes(4).toString('hex'));
    await within(LIMIT_MS, belief.check(context));
    return { outcome: 'passed' };
  } catch (error) {
    if (error instanceof NotCheckable) return { outcome: 'not-checkable', why: error.message };
    const isSurprise = error instanceof Error && error.name === 'Surprise';
    return { outcome: 'failed', seen: isSurprise ? error.message : show(error) };
  } finally {
    await context?.close();
    await place?.dispose();
  }
}

const ABILITIES: Readonly<Record<Ability, { isThere(place: Place): boolean; otherwise: string }>> = {
  administration: {
    isThere: ({ administration }) => administration !== undefined,
    otherwise: 'it needs the administration client, which may not be used here',
  },
  throttling: {
    isThere: ({ throttle }) => throttle !== undefined,
    otherwise: 'nobody overloads a namespace on purpose',
  },
  rights: {
    isThere: ({ listenOnly }) => listenOnly !== undefined,
    otherwise: 'it needs a second key, one that may only listen',
  },
};

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${ms / 1000} s`)), ms);
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
