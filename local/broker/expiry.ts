/** When messages expire. */
import type { Arrival } from './message.ts';

/** A time to live beyond 49.7 days does not fit the header: it is then saturated, and the absolute time counts. */
const SATURATED = 0xffff_ffff;

/** When a message that comes in now expires: milliseconds since 1970, or `Infinity`. */
export function expiryOf(arrival: Arrival, now: number, defaultTimeToLive: number): number {
  const absolute = arrival.absoluteExpiry ?? Number.POSITIVE_INFINITY;
  return Math.min(now + Math.min(ownTimeToLive(arrival), defaultTimeToLive), absolute);
}

/** The time to live a message states itself, milliseconds; `Infinity` when it states none that can be used. */
export function ownTimeToLive({ ttl, absoluteExpiry }: Arrival): number {
  const saturated = ttl === SATURATED && absoluteExpiry !== undefined;
  return ttl === undefined || saturated ? Number.POSITIVE_INFINITY : ttl;
}
