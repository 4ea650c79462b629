/**
 * Configuration in the format of Microsoft's Service Bus emulator (its `Config.json`), so that one file serves both.
 * Everything is validated; what this broker cannot do yet is refused by name when it starts.
 */
import { z } from 'zod';
import { type RuleConfig, ruleSchema } from './rules/config.ts';
import type { EntitySettings } from './settings.ts';
import { type EntityStatus, STATUSES } from './status.ts';

/** A queue or subscription and how it behaves. */
export interface EntityConfig {
  readonly name: string;
  readonly settings: EntitySettings;
  /** Default `Active`. */
  readonly status?: EntityStatus;
  /** Path of a queue or topic to which every message goes on. */
  readonly forwardTo?: string;
  /** Path of a queue or topic to which every dead letter goes on. */
  readonly forwardDeadLettersTo?: string;
}

/** A subscription; without `rules` it has the default one, which lets everything in. */
export interface SubscriptionConfig extends EntityConfig {
  readonly rules?: readonly RuleConfig[];
}

/** A topic. Durations in milliseconds; the subscriptions share its partitions. */
export interface TopicConfig extends Pick<EntitySettings, 'defaultTimeToLive' | 'duplicateWindow' | 'partitions'> {
  readonly name: string;
  /** Default `Active`. */
  readonly status?: EntityStatus;
  readonly subscriptions: readonly SubscriptionConfig[];
}

/** A validated configuration. */
export interface EmulatorConfig {
  readonly queues: readonly EntityConfig[];
  readonly topics: readonly TopicConfig[];
  /** Settings this broker does not support, each as a sentence with its path. */
  readonly unsupported: readonly string[];
}

const DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** Milliseconds of an ISO-8601 duration in days, hours, minutes and seconds; `undefined` when it is none. */
export function durationMs(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match || /[PT]$/.test(text)) return undefined;
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
  ];
  return Math.round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000);
}

const duration = z.string().transform((text, context) => {
  const ms = durationMs(text);
  if (ms !== undefined && ms > 0) return ms;
  context.addIssue(`'${text}' is not a positive ISO-8601 duration such as PT1M`);
  return z.NEVER;
});

const name = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._\-/]*[A-Za-z0-9])?$/, 'must start and end with a letter or digit')
  .max(260);
const forward = z.string().nullish();
/** How many partitions an entity has that is partitioned, on the Standard tier. */
const PARTITIONS = 16;

// The emulator's own default time to live; the other defaults are those of the service.
const timeToLive = duration.default(3_600_000);

// Accepted and without effect here: sizes, display data, and settings of tools.
const WITHOUT_EFFECT = {
  MaxSizeInMegabytes: z.number().optional(),
  EnableBatchedOperations: z.boolean().optional(),
  UserMetadata: z.string().optional(),
};
const SHARED = {
  DefaultMessageTimeToLive: timeToLive,
  RequiresDuplicateDetection: z.boolean().default(false),
  DuplicateDetectionHistoryTimeWindow: duration
    .pipe(z.number().min(20_000, 'at least PT20S').max(604_800_000, 'at most P7D'))
    .default(600_000),
  Status: z.enum(STATUSES).optional(),
  EnablePartitioning: z.boolean().default(false),
  ...WITHOUT_EFFECT,
};
const entityProperties = z.strictObject({
  ...SHARED,
  DeadLetteringOnMessageExpiration: z.boolean().default(false),
  LockDuration: duration.pipe(z.number().max(300_000, 'at most PT5M')).default(60_000),
  MaxDeliveryCount: z.int().min(1).max(2000).default(10),
  ForwardTo: forward,
  ForwardDeadLetteredMessagesTo: forward,
  RequiresSession: z.boolean().default(false),
});
const topicProperties = z.strictObject(SHARED);
const queue = z.object({ Name: name, Properties: entityProperties.prefault({}) });
const subscription = queue.extend({ Rules: z.array(ruleSchema).nullish() });
const topic = z.object({
  Name: name,
  Properties: topicProperties.prefault({}),
  Subscriptions: z.array(subscription).default([]),
});
const file = z.object({
  UserConfig: z.object({
    Namespaces: z
      .array(
        z.object({
          Name: z.string().optional(),
          Queues: z.array(queue).default([]),
          Topics: z.array(topic).default([]),
        }),
      )
      .min(1)
      .max(1, 'only one namespace is possible, as in the emulator'),
    Logging: z.unknown().optional(),
  }),
});

type EntityProperties = z.output<typeof entityProperties>;
type TopicProperties = z.output<typeof topicProperties>;

/**
 * Validates the content of an emulator `Config.json`.
 * Throws an error that names the path of everything that is wrong.
 */
export function parseConfig(json: unknown): EmulatorConfig {
  const result = file.safeParse(json);
  if (!result.success) {
    const issues = result.error.issues.map((issue) => `${pathText(issue.path)}: ${issue.message}`);
    throw new Error(`The Service Bus configuration is not valid:\n  ${issues.join('\n  ')}`);
  }
  const namespace = result.data.UserConfig.Namespaces[0];
  const queues = namespace?.Queues ?? [];
  const topics = namespace?.Topics ?? [];
  const root = 'UserConfig.Namespaces[0]';
  const unsupported: string[] = [];
  topics.forEach((topic, at) => {
    topic.Subscriptions.forEach((entry, index) => {
      const path = `${root}.Topics[${at}].Subscriptions[${index}]`;
      unsupported.push(...settingsOfTopic(entry.Properties, topic.Properties, path));
      refuseDuplicates((entry.Rules ?? []).map((rule, i) => [rule.name, `${path}.Rules[${i}].Name`] as const));
    });
  });
  refuseDuplicates([
    ...queues.map((entry, at) => [entry.Name, `${root}.Queues[${at}].Name`] as const),
    ...topics.map((entry, at) => [entry.Name, `${root}.Topics[${at}].Name`] as const),
  ]);
  topics.forEach((entry, at) => {
    refuseDuplicates(
      entry.Subscriptions.map(
        (sub, index) => [sub.Name, `${root}.Topics[${at}].Subscriptions[${index}].Name`] as const,
      ),
    );
  });
  return {
    queues: queues.map((entry) => entityConfig(entry.Name, entry.Properties)),
    topics: topics.map((entry) => ({
      ...topicConfig(entry.Name, entry.Properties),
      subscriptions: entry.Subscriptions.map((sub) => ({
        ...entityConfig(sub.Name, sub.Properties),
        ...(sub.Rules?.length ? { rules: sub.Rules } : {}),
      })),
    })),
    unsupported,
  };
}

/** A queue or subscription out of `Properties`. Throws an error that names everything that is wrong. */
export function queueConfigOf(name: string, properties: unknown): EntityConfig {
  const entry = parsed(queue, { Name: name, Properties: properties });
  return entityConfig(entry.Name, entry.Properties);
}

/** A topic without subscriptions out of `Properties`. Throws an error that names everything that is wrong. */
export function topicConfigOf(name: string, properties: unknown): Omit<TopicConfig, 'subscriptions'> {
  const entry = parsed(topic, { Name: name, Properties: properties });
  return topicConfig(entry.Name, entry.Properties);
}

function parsed<T extends z.ZodType>(schema: T, json: unknown): z.output<T> {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new Error(result.error.issues.map((issue) => `${pathText(issue.path)}: ${issue.message}`).join('; '));
}

function topicConfig(name: string, properties: TopicProperties): Omit<TopicConfig, 'subscriptions'> {
  return {
    name,
    defaultTimeToLive: properties.DefaultMessageTimeToLive,
    ...sharedSettings(properties),
    ...(properties.Status && { status: properties.Status }),
  };
}

function entityConfig(name: string, properties: EntityProperties): EntityConfig {
  const { Status, ForwardTo, ForwardDeadLetteredMessagesTo } = properties;
  return {
    name,
    settings: {
      lockDuration: properties.LockDuration,
      maxDeliveryCount: properties.MaxDeliveryCount,
      defaultTimeToLive: properties.DefaultMessageTimeToLive,
      deadLetteringOnMessageExpiration: properties.DeadLetteringOnMessageExpiration,
      ...(properties.RequiresSession && { requiresSession: true }),
      ...sharedSettings(properties),
    },
    ...(Status && { status: Status }),
    ...(ForwardTo && { forwardTo: ForwardTo }),
    ...(ForwardDeadLetteredMessagesTo && { forwardDeadLettersTo: ForwardDeadLetteredMessagesTo }),
  };
}

function sharedSettings(properties: TopicProperties): Pick<EntitySettings, 'duplicateWindow' | 'partitions'> {
  return {
    ...(properties.RequiresDuplicateDetection && { duplicateWindow: properties.DuplicateDetectionHistoryTimeWindow }),
    ...(properties.EnablePartitioning && { partitions: PARTITIONS }),
  };
}

/** What a subscription asks for and only its topic can have. */
function settingsOfTopic(own: EntityProperties, topic: TopicProperties, path: string): string[] {
  const settings = ['RequiresDuplicateDetection', 'EnablePartitioning'] as const;
  return settings.flatMap((setting) =>
    own[setting] && !topic[setting] ? [`${path}.Properties.${setting}: this is decided by the topic`] : [],
  );
}

function refuseDuplicates(names: readonly (readonly [name: string, path: string])[]): void {
  const seen = new Set<string>();
  for (const [entry, path] of names) {
    if (seen.has(entry.toLowerCase())) {
      throw new Error(`The Service Bus configuration is not valid:\n  ${path}: the name '${entry}' is already taken`);
    }
    seen.add(entry.toLowerCase());
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at ? '.' : ''}${String(part)}`)).join('');
}
