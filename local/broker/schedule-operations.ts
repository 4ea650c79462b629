/** The `$management` operations that schedule messages and take that back, on queues and topics. */
import { randomUUID } from 'node:crypto';
import { encodeLongs, encodeStringMap } from './encoding.ts';
import type { Operation } from './management.ts';
import { binaryAt, receiveMessage } from './message.ts';
import { malformed } from './request.ts';

export const SCHEDULE_OPERATIONS: Record<string, Operation> = {
  'com.microsoft:schedule-message': ({ entity }, args) => {
    const arrivals = args.maps('messages').map((item) => {
      const message = item.raw('message');
      if (message === undefined) throw malformed("Every item of 'messages' must hold a 'message'.");
      const arrival = receiveMessage(binaryAt(message, 0), () => randomUUID().replaceAll('-', ''));
      if (arrival.scheduledFor !== undefined) return arrival;
      throw malformed('A message to schedule needs the annotation x-opt-scheduled-enqueue-time.');
    });
    const stored = entity.store(arrivals);
    // A duplicate is dropped without a word, so there must be a number for it: none that any message has.
    const numbers = stored.map((entry) => entry?.sequenceNumber ?? 0n);
    return { status: 200, body: encodeStringMap({ 'sequence-numbers': encodeLongs(numbers) }) };
  },
  'com.microsoft:cancel-scheduled-message': ({ entity }, args) => {
    entity.cancelScheduled(args.longs('sequence-numbers'));
    return { status: 200, body: encodeStringMap({}) };
  },
};
