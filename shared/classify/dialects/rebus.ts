import type { Dialect, Evidence } from '../evidence.ts';
import { findException } from '../exceptions.ts';
import { ownFrame } from '../frames.ts';
import type { Sight } from '../sight.ts';
import { countOf, LIMIT, present, typeName } from '../text.ts';

/**
 * Rebus. `rbs2-error-details` is free text: `5 unhandled exceptions: <time>: <printed exception>`, one after the other, or a
 * single time and exception. The times in it are in the format of the machine's own language and are not read.
 */
export const rebus: Dialect = {
  name: 'rebus',
  layer: 'framework',
  read(sight: Sight): Evidence | undefined {
    if (!sight.hasPrefix('rbs2-')) return undefined;
    const details = sight.text('rbs2-error-details', LIMIT.stack);
    return present({
      ...findException(details),
      frame: ownFrame(details),
      attempts: countOf(/^(\d{1,9}) unhandled exceptions?\b/.exec(details ?? '')?.[1]),
      consumer: sight.text('rbs2-source-queue'),
      messageType: typeName(sight.text('rbs2-msg-type')),
      correlationId: sight.text('rbs2-corr-id'),
    });
  },
};
