import type { Dialect, Evidence } from '../evidence.ts';
import type { Sight } from '../sight.ts';
import { objectOf, present, textIn, traceIdOf } from '../text.ts';

/** What Dapr writes as the event's type when the publisher names none. */
const DEFAULT_TYPE = 'com.dapr.event.sent';

/**
 * Dapr wraps messages into CloudEvents and adds `pubsubname`. It writes nothing about a failure: no reason, no count, no
 * exception. What it tells is the trace, and the type where the publisher set one.
 */
export const dapr: Dialect = {
  name: 'dapr',
  layer: 'platform',
  read(sight: Sight): Evidence | undefined {
    if (!sight.body.includes('"pubsubname"')) return undefined;
    const event = objectOf(sight.body.json());
    if (textIn(event, 'specversion') === undefined || textIn(event, 'pubsubname') === undefined) return undefined;
    const type = textIn(event, 'type');
    return present({
      messageType: type === DEFAULT_TYPE ? undefined : type,
      traceId: traceIdOf(textIn(event, 'traceparent')) ?? traceIdOf(textIn(event, 'traceid')),
    });
  },
  payload: (body) => (objectOf(body) === undefined ? body : objectOf(body)?.data),
};
