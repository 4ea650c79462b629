/**
 * How many operations a namespace is asked for: a token bucket whose rate gives way when the broker is busy. Pure: times
 * come as arguments, in ms of a clock that does not jump.
 *
 * What costs how much: Microsoft, "Throttling operations on Azure Service Bus": one credit for each message that is sent,
 * received or peeked, ten for reading an entity's description. Settlements are not in that table; here they cost one each.
 */

/** Reading the description of an entity. */
export const DESCRIPTION_COST = 10;

/** This much may be spent at once after a rest, in ms of the rate. The service counts by seconds, too. */
const BURST_MS = 1_000;
/** After the broker was busy the rate stays where it is for this long, then climbs. */
const HOLD_MS = 10_000;
/** Part of the ceiling by which the rate climbs in a second. */
const CLIMB = 1 / 20;
/** However often the broker is busy, this part of the ceiling is left: somebody has to find out that it is over. */
const FLOOR = 1 / 32;
/** Refusals within this time are one: what was under way together is refused together. */
const SAME_WAVE_MS = 1_000;

export class Bucket {
  readonly #ceiling: number;
  #rate: number;
  #tokens: number;
  #at: number;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #slowedAt = Number.NEGATIVE_INFINITY;

  /** Full at `now`. `ceiling` is in operations a second. */
  constructor(ceiling: number, now: number) {
    this.#ceiling = ceiling;
    this.#rate = ceiling;
    this.#tokens = this.#capacity();
    this.#at = now;
  }

  /** Operations a second. */
  rate(now: number): number {
    this.#flow(now);
    return this.#rate;
  }

  /**
   * How long until something of this cost may begin, ms; 0 is now. What costs more than the bucket holds may begin when it
   * is full, and is owed for: otherwise it could never begin.
   */
  waitFor(cost: number, now: number): number {
    this.#flow(now);
    const lacking = Math.min(cost, this.#capacity()) - this.#tokens;
    // A timer that ends a hair early must not find a hair lacking.
    return lacking < 1e-6 ? 0 : Math.ceil((lacking / this.#rate) * 1000);
  }

  /** Pays, into debt if need be. */
  pay(cost: number, now: number): void {
    this.#flow(now);
    this.#tokens -= cost;
  }

  /** The broker said that it is busy: half the rate from now on, and nothing saved up. `false` when it was known. */
  slowDown(now: number): boolean {
    this.#flow(now);
    this.#tokens = Math.min(this.#tokens, 0);
    this.#heldUntil = now + HOLD_MS;
    if (now < this.#slowedAt + SAME_WAVE_MS) return false;
    this.#slowedAt = now;
    this.#rate = Math.max(this.#rate / 2, this.#ceiling * FLOOR);
    return true;
  }

  /** Lets in what has come since the last look. */
  #flow(now: number): void {
    if (now <= this.#at) return;
    this.#tokens += (this.#rate * (now - this.#at)) / 1000;
    const climbing = now - Math.max(this.#at, this.#heldUntil);
    if (climbing > 0) {
      this.#rate = Math.min(this.#ceiling, this.#rate + (this.#ceiling * CLIMB * climbing) / 1000);
    }
    this.#tokens = Math.min(this.#tokens, this.#capacity());
    this.#at = now;
  }

  #capacity(): number {
    return (this.#rate * BURST_MS) / 1000;
  }
}
