/** Queues, topics and subscriptions as lists of named values, from which both answers are made: XML and JSON. */
import type { EntityConfig } from '../config.ts';
import type { Namespace, Node } from '../namespace.ts';
import { contentsOf, type MessageCounts } from './counts.ts';
import { formatDuration, NEVER } from './durations.ts';
import type { Note, Notes } from './notes.ts';

/** What can be described. */
export type Described = Exclude<Node, { kind: 'dead-letter-queue' }>;

type Value = string | number | boolean | MessageCounts;

/** The description of one entity. */
export interface Description {
  readonly kind: Described['kind'];
  readonly path: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** In the order in which the data contract wants them; targets of forwarding are names. */
  readonly fields: readonly (readonly [name: string, value: Value])[];
}

/** Path of a queue, topic or subscription as it was created. */
export function pathOfNode(node: Described): string {
  return node.kind === 'topic' ? node.destination.path : node.entity.path;
}

/** Describes an entity as it is now. */
export function describeNode(node: Described, namespace: Namespace, notes: Notes): Description {
  const path = pathOfNode(node);
  const note = notes.of(path);
  const fields = node.kind === 'topic' ? topicFields(node, namespace, note) : entityFields(node, namespace, note);
  const { createdAt, updatedAt } = note;
  const present = fields.filter((field): field is [string, Value] => field[1] !== undefined);
  return { kind: node.kind, path, createdAt, updatedAt, fields: present };
}

type Fields = [name: string, value: Value | undefined][];

function entityFields(node: Described & { kind: 'queue' | 'subscription' }, namespace: Namespace, note: Note): Fields {
  const { entity } = node;
  const config = namespace.entityConfig(entity.path);
  const { settings } = config;
  const isQueue = node.kind === 'queue';
  const { counts, messageCount, sizeInBytes } = contentsOf(entity);
  const { shown } = note;
  return [
    ['LockDuration', formatDuration(settings.lockDuration)],
    ...onlyIf(isQueue, [
      ['MaxSizeInMegabytes', Number(shown.MaxSizeInMegabytes ?? 1024)],
      ['RequiresDuplicateDetection', settings.duplicateWindow !== undefined],
    ]),
    ['RequiresSession', settings.requiresSession ?? false],
    ['DefaultMessageTimeToLive', formatDuration(settings.defaultTimeToLive)],
    ['DeadLetteringOnMessageExpiration', settings.deadLetteringOnMessageExpiration],
    ...onlyIf(!isQueue, [
      ['DeadLetteringOnFilterEvaluationExceptions', shown.DeadLetteringOnFilterEvaluationExceptions === 'true'],
    ]),
    ...onlyIf(isQueue, [['DuplicateDetectionHistoryTimeWindow', formatDuration(settings.duplicateWindow ?? 600_000)]]),
    ...onlyIf(!isQueue, [['MessageCount', messageCount]]),
    ['MaxDeliveryCount', settings.maxDeliveryCount],
    ['EnableBatchedOperations', shown.EnableBatchedOperations !== 'false'],
    ...onlyIf(isQueue, [
      ['SizeInBytes', sizeInBytes],
      ['MessageCount', messageCount],
      ['IsAnonymousAccessible', false],
    ]),
    ['Status', entity.status],
    ...forwarding(config),
    ...shownText(shown, 'UserMetadata'),
    ...times(note),
    ...onlyIf(isQueue, [['SupportOrdering', true]]),
    ['CountDetails', counts],
    ['AutoDeleteOnIdle', shown.AutoDeleteOnIdle ?? NEVER],
    ...onlyIf(isQueue, [['EnablePartitioning', settings.partitions !== undefined]]),
    ['EntityAvailabilityStatus', 'Available'],
    ['ForwardDeadLetteredMessagesTo', config.forwardDeadLettersTo],
    ...onlyIf(isQueue, [['EnableExpress', false]]),
    ...onlyIf(isQueue, [['MaxMessageSizeInKilobytes', Number(shown.MaxMessageSizeInKilobytes ?? 256)]]),
  ];
}

function topicFields(node: Described & { kind: 'topic' }, namespace: Namespace, note: Note): Fields {
  const topic = node.destination;
  const { defaultTimeToLive, duplicateWindow, partitions } = namespace.topicConfig(topic.path);
  const { counts, sizeInBytes } = contentsOf(topic.entity);
  const { shown } = note;
  return [
    ['DefaultMessageTimeToLive', formatDuration(defaultTimeToLive)],
    ['MaxSizeInMegabytes', Number(shown.MaxSizeInMegabytes ?? 1024)],
    ['RequiresDuplicateDetection', duplicateWindow !== undefined],
    ['DuplicateDetectionHistoryTimeWindow', formatDuration(duplicateWindow ?? 600_000)],
    ['EnableBatchedOperations', shown.EnableBatchedOperations !== 'false'],
    ['SizeInBytes', sizeInBytes],
    ['FilteringMessagesBeforePublishing', false],
    ['IsAnonymousAccessible', false],
    ['Status', topic.entity.status],
    ...shownText(shown, 'UserMetadata'),
    ...times(note),
    ['SupportOrdering', shown.SupportOrdering !== 'false'],
    ['CountDetails', counts],
    ['SubscriptionCount', topic.subscriptions.length],
    ['AutoDeleteOnIdle', shown.AutoDeleteOnIdle ?? NEVER],
    ['EnablePartitioning', partitions !== undefined],
    ['EntityAvailabilityStatus', 'Available'],
    ['EnableSubscriptionPartitioning', false],
    ['EnableExpress', false],
    ['MaxMessageSizeInKilobytes', Number(shown.MaxMessageSizeInKilobytes ?? 256)],
  ];
}

function forwarding({ forwardTo }: EntityConfig): Fields {
  return [['ForwardTo', forwardTo]];
}

function shownText(shown: Note['shown'], name: string): Fields {
  return [[name, shown[name]]];
}

function times({ createdAt, updatedAt }: Note): Fields {
  return [
    ['CreatedAt', new Date(createdAt).toISOString()],
    ['UpdatedAt', new Date(updatedAt).toISOString()],
    ['AccessedAt', new Date(updatedAt).toISOString()],
  ];
}

function onlyIf(condition: boolean, fields: Fields): Fields {
  return condition ? fields : [];
}
