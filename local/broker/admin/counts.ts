/** How many messages an entity holds, counted, not remembered. */
import type { Entity } from '../entity.ts';

/** Counts by state, under the names that clients read. */
export interface MessageCounts {
  /** Deferred messages included: the service has no count of its own for them. */
  readonly activeMessageCount: number;
  /** All in the dead-letter queue, deferred ones included. */
  readonly deadLetterMessageCount: number;
  readonly scheduledMessageCount: number;
  /** What forwarding has not taken yet; here it takes at once or dead-letters. */
  readonly transferMessageCount: number;
  readonly transferDeadLetterMessageCount: number;
}

export interface Contents {
  readonly counts: MessageCounts;
  readonly messageCount: number;
  readonly sizeInBytes: number;
}

/** Counts a queue, a subscription, or what a topic itself holds. */
export function contentsOf(entity: Entity): Contents {
  let scheduled = 0;
  let bytes = 0;
  const own = entity.all();
  for (const { scheduledFor, message } of own) {
    if (scheduledFor !== undefined) scheduled++;
    bytes += message.bytes.length;
  }
  const dead = entity.deadLetterQueue?.all() ?? [];
  for (const { message } of dead) bytes += message.bytes.length;
  return {
    counts: {
      activeMessageCount: own.length - scheduled,
      deadLetterMessageCount: dead.length,
      scheduledMessageCount: scheduled,
      transferMessageCount: 0,
      transferDeadLetterMessageCount: 0,
    },
    messageCount: own.length + dead.length,
    sizeInBytes: bytes,
  };
}
