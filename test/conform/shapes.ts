/**
 * The entities that beliefs are tested on. Each has a name here; what it is called in a namespace, the target decides.
 * The properties are spelled as the administration client spells them, so that one description makes entities
 * everywhere.
 */

/** Name of a shape. */
export type ShapeName =
  | 'plain'
  | 'spare'
  | 'brief'
  | 'expiring'
  | 'sessions'
  | 'duplicates'
  | 'partitioned'
  | 'sendDisabled'
  | 'forwardingDead'
  | `hop${1 | 2 | 3 | 4 | 5}`
  | 'topic'
  | 'filtered'
  | 'forwardingTopic'
  | 'sessionTopic';

/** A queue, or a subscription with the rules it has in place of the default one. */
export interface QueueShape {
  readonly lockDuration: `PT${number}S`;
  readonly maxDeliveryCount: number;
  readonly deadLetteringOnMessageExpiration?: true;
  readonly requiresSession?: true;
  /** Shortest that the service allows: 20 seconds. */
  readonly duplicateDetectionHistoryTimeWindow?: `PT${number}S`;
  readonly enablePartitioning?: true;
  readonly status?: 'SendDisabled';
  /** The shape that messages, or dead letters, go on to; made before this one. */
  readonly forwardTo?: ShapeName;
  readonly forwardDeadLetteredMessagesTo?: ShapeName;
  readonly rules?: readonly RuleShape[];
}

/** One rule: an SQL expression, or the subject a message must have. */
export type RuleShape = { readonly name: string } & ({ readonly sql: string } | { readonly subject: string });

/** A topic with its subscriptions by name. */
export interface TopicShape {
  readonly subscriptions: Readonly<Record<string, QueueShape>>;
}

const PLAIN = { lockDuration: 'PT60S', maxDeliveryCount: 3 } as const;

/** Every shape there is. */
export const SHAPES: Readonly<Record<ShapeName, QueueShape | TopicShape>> = {
  plain: PLAIN,
  /** A second plain queue: where letters are sent or forwarded to. */
  spare: PLAIN,
  /** Locks as short as the service allows, for waiting them out. */
  brief: { ...PLAIN, lockDuration: 'PT5S' },
  /** Dead-letters what expires. */
  expiring: { ...PLAIN, deadLetteringOnMessageExpiration: true },
  sessions: { ...PLAIN, requiresSession: true },
  duplicates: { ...PLAIN, duplicateDetectionHistoryTimeWindow: 'PT20S' },
  partitioned: { ...PLAIN, enablePartitioning: true },
  sendDisabled: { ...PLAIN, status: 'SendDisabled' },
  forwardingDead: { ...PLAIN, forwardDeadLetteredMessagesTo: 'spare' },
  hop5: { ...PLAIN, forwardTo: 'spare' },
  hop4: { ...PLAIN, forwardTo: 'hop5' },
  hop3: { ...PLAIN, forwardTo: 'hop4' },
  hop2: { ...PLAIN, forwardTo: 'hop3' },
  hop1: { ...PLAIN, forwardTo: 'hop2' },
  topic: { subscriptions: { billing: PLAIN, audit: PLAIN } },
  /** `picky` takes subject `wanted` only; two rules of `twice` match the same messages. */
  filtered: {
    subscriptions: {
      picky: { ...PLAIN, rules: [{ name: 'wanted', subject: 'wanted' }] },
      twice: {
        ...PLAIN,
        rules: [
          { name: 'red', sql: "colour = 'red'" },
          { name: 'large', sql: 'size > 10' },
        ],
      },
    },
  },
  forwardingTopic: { subscriptions: { billing: { ...PLAIN, forwardTo: 'spare' } } },
  sessionTopic: { subscriptions: { billing: { ...PLAIN, requiresSession: true } } },
};

/** The shape of this name, and which of the two kinds it is. */
export function shapeOf(name: ShapeName): { queue: QueueShape } | { topic: TopicShape } {
  const shape = SHAPES[name];
  return 'subscriptions' in shape ? { topic: shape } : { queue: shape };
}

/** The names and every shape they forward to, each after those it needs. */
export function inOrderOfMaking(names: readonly ShapeName[]): ShapeName[] {
  const order = new Set<ShapeName>();
  const add = (name: ShapeName) => {
    const shape = shapeOf(name);
    const queues = 'queue' in shape ? [shape.queue] : Object.values(shape.topic.subscriptions);
    for (const { forwardTo, forwardDeadLetteredMessagesTo } of queues) {
      for (const needed of [forwardTo, forwardDeadLetteredMessagesTo]) if (needed !== undefined) add(needed);
    }
    order.add(name);
  };
  for (const name of names) add(name);
  return [...order];
}
