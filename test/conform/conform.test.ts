import { describe, expect, it } from 'vitest';
import { BELIEFS } from './beliefs/index.ts';
import { runBelief } from './run.ts';
import { localTarget } from './targets/local.ts';

const target = localTarget();

describe('on the local broker it is so that', () => {
  it.concurrent.for(BELIEFS.map((belief) => [`${belief.id}: ${belief.belief}`, belief] as const))(
    '%s',
    async ([, belief], context) => {
      const outcome = await runBelief(target, belief);
      if (outcome.outcome === 'not-checkable') context.skip(outcome.why);
      expect(outcome).toEqual({ outcome: 'passed' });
    },
  );
});
