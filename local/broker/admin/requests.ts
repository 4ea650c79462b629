/** Descriptions that clients send, read into the configuration's own words, so that one schema checks both. */
import { type EntityConfig, queueConfigOf, type TopicConfig, topicConfigOf } from '../config.ts';
import { BrokerError } from '../errors.ts';
import { NEVER } from './durations.ts';
import type { Shown } from './notes.ts';
import { childOf, parseXml, type XmlElement, XmlError } from './xml.ts';

/** Settings that decide how an entity behaves, and how their text becomes a value. */
const DECIDING: Record<string, (text: string) => unknown> = {
  LockDuration: asText,
  RequiresDuplicateDetection: asBoolean,
  RequiresSession: asBoolean,
  DefaultMessageTimeToLive: asText,
  DeadLetteringOnMessageExpiration: asBoolean,
  DuplicateDetectionHistoryTimeWindow: asText,
  MaxDeliveryCount: asNumber,
  Status: asText,
  ForwardTo: asTarget,
  EnablePartitioning: asBoolean,
  ForwardDeadLetteredMessagesTo: asTarget,
};
/** Which of them a topic has. */
const OF_TOPIC = new Set([
  'RequiresDuplicateDetection',
  'DefaultMessageTimeToLive',
  'DuplicateDetectionHistoryTimeWindow',
  'Status',
  'EnablePartitioning',
]);
/** Which of them only the topic decides for a subscription. */
const NOT_OF_SUBSCRIPTION = new Set([
  'RequiresDuplicateDetection',
  'DuplicateDetectionHistoryTimeWindow',
  'EnablePartitioning',
]);
/** Settings that are shown again and change nothing. */
const SHOWN = [
  'MaxSizeInMegabytes',
  'EnableBatchedOperations',
  'UserMetadata',
  'AutoDeleteOnIdle',
  'SupportOrdering',
  'MaxMessageSizeInKilobytes',
  'DeadLetteringOnFilterEvaluationExceptions',
];

/** A description that came in. */
export interface Wanted<T> {
  readonly config: T;
  readonly shown: Shown;
  /** The element itself, for what only one kind has. */
  readonly description: XmlElement;
}

/** The element in the content of an entry. Throws a {@link BrokerError} that says what is wrong. */
export function readDescription(body: string, root: string): XmlElement {
  let entry: XmlElement;
  try {
    entry = parseXml(body);
  } catch (caught) {
    if (!(caught instanceof XmlError)) throw caught;
    throw invalid(`The request body is not accepted: ${caught.message}.`);
  }
  const content = entry.name === 'entry' ? childOf(entry, 'content') : undefined;
  const description = content && childOf(content, root);
  if (description) return description;
  throw invalid(`The request body must be an ATOM entry with a ${root}.`);
}

/** Whether the body describes this: a path alone does not say whether a queue or a topic is to be made. */
export function describes(body: string, root: string): boolean {
  return new RegExp(`<(?:[\\w.-]+:)?${root}[\\s/>]`).test(body);
}

/** Throws a {@link BrokerError} that says what is wrong. */
export function readQueue(name: string, body: string): Wanted<EntityConfig> {
  return wantedEntity(name, readDescription(body, 'QueueDescription'), new Set());
}

/** Throws a {@link BrokerError} that says what is wrong. */
export function readSubscription(name: string, body: string): Wanted<EntityConfig> {
  return wantedEntity(name, readDescription(body, 'SubscriptionDescription'), NOT_OF_SUBSCRIPTION);
}

function wantedEntity(name: string, description: XmlElement, without: ReadonlySet<string>): Wanted<EntityConfig> {
  const properties = propertiesOf(description, (field) => !without.has(field));
  return { config: checked(() => queueConfigOf(name, properties)), shown: shownOf(description), description };
}

/** Throws a {@link BrokerError} that says what is wrong. */
export function readTopic(name: string, body: string): Wanted<Omit<TopicConfig, 'subscriptions'>> {
  const description = readDescription(body, 'TopicDescription');
  const properties = propertiesOf(description, (field) => OF_TOPIC.has(field));
  return { config: checked(() => topicConfigOf(name, properties)), shown: shownOf(description), description };
}

/** Fields that are empty count as not given; those that no client has to send, such as counts, are passed over. */
function propertiesOf(description: XmlElement, has: (field: string) => boolean): Record<string, unknown> {
  const properties: Record<string, unknown> = { DefaultMessageTimeToLive: NEVER };
  for (const { name, text, children } of description.children) {
    if (name === 'AuthorizationRules' && children.length > 0) {
      throw invalid(
        'Authorization rules of an entity are not supported by this broker: its keys are given at its start.',
      );
    }
    if (name === 'EnableExpress' && text.trim() === 'true') throw invalid('Express entities are not supported.');
    const read = DECIDING[name];
    if (read && has(name) && text.trim() !== '') properties[name] = read(text.trim());
  }
  return properties;
}

function shownOf(description: XmlElement): Shown {
  const shown = SHOWN.map((name) => [name, childOf(description, name)?.text] as const);
  return Object.fromEntries(shown.filter((entry): entry is [string, string] => Boolean(entry[1])));
}

function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (caught) {
    throw invalid(caught instanceof Error ? caught.message : String(caught));
  }
}

function asText(text: string): string {
  return text;
}

function asBoolean(text: string): unknown {
  return text === 'true' ? true : text === 'false' ? false : text;
}

function asNumber(text: string): unknown {
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

/** Clients write the target as a path or as an address. */
function asTarget(text: string): string {
  return text.replace(/^[a-z]+:\/\/[^/]*\//i, '');
}

export function invalid(message: string): BrokerError {
  return new BrokerError('com.microsoft:argument-error', message);
}
