import { errorText, isMistake, mistakeText } from '../shared/errors.ts';
import type { Back, Front } from './front.ts';

/** A handler that reports what goes wrong and throws nothing to the host: a timer comes again by itself. */
export function guarded(front: Front, name: string, act: (back: Back) => Promise<void>): () => Promise<void> {
  return async () => {
    try {
      await act(await front.back());
    } catch (error) {
      const told = isMistake(error) ? (error.stack ?? mistakeText(error)) : errorText(error);
      front.log(`${name}: failed, tried again next time: ${told}`);
    }
  };
}
