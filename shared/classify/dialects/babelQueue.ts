import type { Dialect, Evidence } from '../evidence.ts';
import { findException } from '../exceptions.ts';
import { ownFrame } from '../frames.ts';
import { causeBehind } from '../printed.ts';
import type { Sight } from '../sight.ts';
import { countOf, LIMIT, objectOf, present, textIn, unixMs } from '../text.ts';

/**
 * BabelQueue: everything is in the body, an envelope with `job`, `trace_id`, `data`, and `dead_letter` once it has died. The
 * exception is a class name of whatever language the worker is written in, `App\Exceptions\GatewayTimeout` for PHP.
 */
export const babelQueue: Dialect = {
  name: 'babelqueue',
  layer: 'framework',
  read(sight: Sight): Evidence | undefined {
    if (!sight.body.includes('"dead_letter"')) return undefined;
    const envelope = objectOf(sight.body.json());
    const death = objectOf(envelope?.dead_letter);
    if (envelope === undefined || death === undefined) return undefined;
    const error = textIn(death, 'error', LIMIT.stack);
    const exceptionType = textIn(death, 'exception');
    return present({
      reason: textIn(death, 'reason'),
      exceptionType,
      exceptionMessage: textIn(death, 'error', LIMIT.message),
      ...(exceptionType !== undefined && causeBehind(exceptionType, findException(error))),
      frame: ownFrame(error),
      failedAt: unixMs(death.failed_at),
      attempts: countOf(death.attempts),
      consumer: textIn(death, 'original_queue'),
      messageType: textIn(envelope, 'job') ?? textIn(envelope, 'urn'),
      traceId: textIn(envelope, 'trace_id'),
    });
  },
  payload: (body) => (objectOf(body) === undefined ? body : objectOf(body)?.data),
};
