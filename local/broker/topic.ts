/** A topic: hands each message to every subscription that has a rule for it. */
import { Entity, type EntityContext, type EntitySettings, type Origin } from './entity.ts';
import { goingOn } from './forwarding.ts';
import type { Arrival, Keys } from './message.ts';
import type { Destination } from './namespace.ts';
import { Judge } from './rules/filter.ts';
import type { RuleSet } from './rules/rule-set.ts';
import { topicSettings } from './settings.ts';
import type { Entry } from './shelf.ts';

/** A subscription as its topic sees it. */
export interface Subscription {
  readonly name: string;
  readonly entity: Entity;
  readonly rules: RuleSet;
}

/** What a topic decides for its messages; its time to live is in milliseconds. */
export type TopicSettings = Pick<EntitySettings, 'defaultTimeToLive' | 'duplicateWindow' | 'partitions'>;

export class Topic implements Destination {
  readonly path: string;
  /** Changed only by {@link configure}. */
  settings: TopicSettings;
  /** Numbers what comes, and keeps what is scheduled until its time. */
  readonly entity: Entity;
  readonly #subscriptions: Subscription[] = [];

  constructor(path: string, settings: TopicSettings, context: EntityContext) {
    this.path = path;
    this.settings = settings;
    this.entity = new Entity(path, topicSettings(settings), context);
    this.entity.setOutlet((entry) => this.#distribute(entry));
  }

  /** Throws for a change that is not possible while the topic exists. */
  configure(settings: TopicSettings): void {
    this.entity.configure(topicSettings(settings));
    this.settings = settings;
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

  /**
   * What the topic decides for a subscription. Its time to live is the upper limit (Service Bus documentation, message
   * expiration), and its partitions are theirs.
   */
  limit(settings: EntitySettings): EntitySettings {
    const { defaultTimeToLive, partitions } = this.settings;
    return {
      ...settings,
      defaultTimeToLive: Math.min(settings.defaultTimeToLive, defaultTimeToLive),
      ...(partitions === undefined ? {} : { partitions }),
    };
  }

  store(arrivals: readonly Arrival[], envelope?: Keys, origin?: Origin): (Entry | undefined)[] {
    return this.entity.store(arrivals, envelope, origin);
  }

  restart(): void {
    this.entity.clear();
  }

  /** A message that no subscription wants is gone, and its sender is not told: so does the service. */
  #distribute(entry: Entry): undefined {
    const judge = new Judge(entry.message);
    // All are asked before any gets it: a copy that is delivered at once must not change what the others see.
    const takers = this.#subscriptions.map(({ entity, rules }) => ({
      entity,
      copies: rules.copies(entry.message, judge),
    }));
    const { enqueueSequenceNumber, hops, deadLetterSource } = entry;
    for (const { entity, copies } of takers) {
      for (const message of copies) {
        entity.enqueue(goingOn({ ...entry, message }), { enqueueSequenceNumber, hops, deadLetterSource });
      }
    }
  }
}
