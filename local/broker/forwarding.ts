/**
 * Messages that go on by themselves: to the target of a forwarding entity, or from a topic to its subscriptions. The
 * target gives a number of its own and keeps the first one as the enqueue sequence number.
 */
import type { Outlet } from './entity.ts';
import { asBrokerError } from './errors.ts';
import { type Arrival, readAgain } from './message.ts';
import type { Destination } from './namespace.ts';
import { deadLetterProperties, REASON } from './reasons.ts';
import type { Entry } from './shelf.ts';

/** How often a message is forwarded before it is dead-lettered (Service Bus documentation, autoforwarding). */
export const MAX_HOPS = 4;

/**
 * Forwards to what `target` finds when a message comes. A circle of forwarding entities is no error here: like a chain
 * that is too long, it ends in the dead-letter queue of the entity in which the hops are used up.
 */
export function forwardTo(target: () => Destination): Outlet {
  return (entry) => pass(target, entry, goingOn(entry), entry.deadLetterSource);
}

/**
 * Forwards out of a dead-letter queue; `source` is the path of the entity the letter died in. Its time to live begins
 * anew: what died of its age would otherwise die again at once.
 */
export function forwardDeadLettersTo(target: () => Destination, source: string): Outlet {
  return (entry) => pass(target, entry, { ...readAgain(entry.message), absoluteExpiry: undefined }, source);
}

/** The message as it goes on, what is left of its life included; the time it was scheduled for lies behind it. */
export function goingOn(entry: Entry): Arrival {
  const absoluteExpiry = Number.isFinite(entry.expiresAt) ? entry.expiresAt : undefined;
  return { ...readAgain(entry.message), ttl: undefined, absoluteExpiry, scheduledFor: undefined };
}

function pass(target: () => Destination, entry: Entry, arrival: Arrival, deadLetterSource: string | undefined) {
  if (entry.hops >= MAX_HOPS) return REASON.tooManyHops(MAX_HOPS);
  try {
    target().store([arrival], undefined, {
      enqueueSequenceNumber: entry.enqueueSequenceNumber,
      hops: entry.hops + 1,
      deadLetterSource,
    });
    return undefined;
  } catch (caught) {
    // The service dead-letters in the source what its target does not take; the reason it gives is not documented.
    const { condition, message } = asBrokerError(caught);
    return deadLetterProperties(condition, message);
  }
}
