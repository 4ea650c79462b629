import type { Dialect, Evidence } from '../evidence.ts';
import { readException } from '../exceptions.ts';
import { ownFrame } from '../frames.ts';
import { causeBehind } from '../printed.ts';
import type { Sight } from '../sight.ts';
import { LIMIT, present } from '../text.ts';

/**
 * Wolverine. Its headers have no prefix and names that others may use as well, so two of them that only a dead letter has must be
 * there together. `failed-at` is ms since 1970 as text, and the stack is cut at 8,192 characters by Wolverine itself.
 */
export const wolverine: Dialect = {
  name: 'wolverine',
  layer: 'framework',
  read(sight: Sight): Evidence | undefined {
    const exceptionType = sight.text('exception-type');
    if (exceptionType === undefined || sight.property('failed-at') === undefined) return undefined;
    const stack = sight.text('exception-stack', LIMIT.stack);
    const printed = readException(stack);
    return present({
      exceptionType,
      exceptionMessage: sight.text('exception-message', LIMIT.message),
      ...causeBehind(exceptionType, printed),
      frame: ownFrame(stack),
      failedAt: sight.time('failed-at'),
      attempts: sight.count('attempts'),
      consumer: sight.text('original-destination'),
      messageType: sight.text('message-type'),
      correlationId: sight.text('correlation-id'),
    });
  },
};
