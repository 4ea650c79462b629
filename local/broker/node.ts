/** What stands at the paths of a namespace. */
import type { TopicConfig } from './config.ts';
import type { Entity, Origin } from './entity.ts';
import type { Arrival, Keys } from './message.ts';
import type { RuleSet } from './rules/rule-set.ts';
import type { Entry } from './shelf.ts';
import type { EntityStatus } from './status.ts';
import type { Topic } from './topic.ts';

/** Where messages can be sent: a queue, or a topic that copies them to its subscriptions. */
export interface Destination {
  readonly path: string;
  /** Takes all the messages or none; `envelope` is what the envelope of a batch says. */
  store(arrivals: readonly Arrival[], envelope?: Keys, origin?: Origin): (Entry | undefined)[];
}

/** What a topic is configured with, without its subscriptions. */
export type TopicSettings = Omit<TopicConfig, 'subscriptions'>;

/** What stands at a path. */
export type Node =
  | { readonly kind: 'queue'; readonly entity: Entity; readonly destination: Destination }
  | { readonly kind: 'topic'; readonly destination: Topic; readonly subscriptions: readonly Entity[] }
  | { readonly kind: 'subscription'; readonly entity: Entity; readonly rules: RuleSet; readonly topic: Topic }
  | { readonly kind: 'dead-letter-queue'; readonly entity: Entity };

/** The store behind a node; that of a topic holds only what is scheduled. */
export function storeOf(node: Node): Entity {
  return node.kind === 'topic' ? node.destination.entity : node.entity;
}

/** A disabled entity gives out no dead letters either; with only receiving off they can still be looked after. */
export function applyStatus(entity: Entity, status: EntityStatus): void {
  entity.setStatus(status);
  entity.deadLetterQueue?.setStatus(status === 'Disabled' ? 'ReceiveDisabled' : 'Active');
}
