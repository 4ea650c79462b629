/** A topic: hands each message to every subscription that has a rule for it. */
import type { Entity, EntitySettings } from './entity.ts';
import type { Arrival } from './message.ts';
import type { Destination } from './namespace.ts';
import { Judge } from './rules/filter.ts';
import type { RuleSet } from './rules/rule-set.ts';

/** A subscription as its topic sees it. */
export interface Subscription {
  readonly name: string;
  readonly entity: Entity;
  readonly rules: RuleSet;
}

export class Topic implements Destination {
  readonly path: string;
  /** Milliseconds. */
  readonly defaultTimeToLive: number;
  readonly #subscriptions: Subscription[] = [];
  #lastNumber = 0n;

  constructor(path: string, defaultTimeToLive: number) {
    this.path = path;
    this.defaultTimeToLive = defaultTimeToLive;
  }

  get subscriptions(): readonly Subscription[] {
    return this.#subscriptions;
  }

  add(subscription: Subscription): void {
    this.#subscriptions.push(subscription);
  }

  remove(entity: Entity): void {
    const at = this.#subscriptions.findIndex((subscription) => subscription.entity === entity);
    if (at >= 0) this.#subscriptions.splice(at, 1);
  }

  /** A topic's default is the upper limit for its subscriptions (Service Bus documentation, message expiration). */
  limit(settings: EntitySettings): EntitySettings {
    return { ...settings, defaultTimeToLive: Math.min(settings.defaultTimeToLive, this.defaultTimeToLive) };
  }

  /** A message that no subscription wants is gone, and its sender is not told: so does the service. */
  store(arrivals: readonly Arrival[]): void {
    for (const arrival of arrivals) {
      const number = ++this.#lastNumber;
      const judge = new Judge(arrival.message);
      // All are asked before any gets it: a copy that is delivered at once must not change what the others see.
      const takers = this.#subscriptions.filter(({ rules }) => rules.accepts(judge));
      for (const { entity } of takers) entity.enqueue(arrival, number);
    }
  }

  restart(): void {
    this.#lastNumber = 0n;
  }
}
