/**
 * Configuration in the format of Microsoft's Service Bus emulator (its `Config.json`), so that one file serves both.
 * Everything is validated: a key that is not known is an error, what is known and has no effect here is told, and what this
 * broker cannot do is refused by name when it starts.
 */
import { z } from 'zod';
import { readJsonText } from './jsonText.ts';
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
  /** What was accepted and may mean something else than its author thinks, each as a sentence with its path. */
  readonly notes: readonly string[];
}

const DURATION = /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const UNITS = [31_536_000_000, 2_592_000_000, 86_400_000, 3_600_000, 60_000, 1000];
/** Years or months before the time: not of a fixed length, and a month is often meant to be a minute. */
const CALENDAR = /^P[^T]*[YM]/;

/**
 * Milliseconds of an ISO-8601 duration; `undefined` when it is none. A year is 365 days and a month is 30, as in .NET, by which
 * the service and the emulator read them (`XmlConvert.ToTimeSpan`).
 */
export function durationMs(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match || /[PT]$/.test(text)) return undefined;
  return Math.round(UNITS.reduce((sum, unit, i) => sum + Number(match[i + 1] ?? 0) * unit, 0));
}

const duration = z.string().transform((text, context) => {
  const ms = durationMs(text);
  if (ms !== undefined && ms > 0) return ms;
  context.addIssue(`'${text}' is not a positive ISO-8601 duration such as PT1M`);
  return z.NEVER;
});

const NAME_CHARACTERS = /[^A-Za-z0-9._\-/]/u;
const name = z
  .string()
  .min(1, 'must not be empty')
  .max(260)
  .superRefine((text, context) => {
    const other = NAME_CHARACTERS.exec(text)?.[0];
    if (other !== undefined) {
      context.addIssue(`'${other}' cannot stand in a name: letters, digits, '.', '-', '_' and '/' can`);
    } else if (/^[^A-Za-z0-9]|[^A-Za-z0-9]$/.test(text)) context.addIssue('must start and end with a letter or digit');
  });
const forward = z.string().nullish();
/** How many partitions an entity has that is partitioned, on the Standard tier. */
const PARTITIONS = 16;

// The emulator's own default time to live; the other defaults are those of the service.
const timeToLive = duration.default(3_600_000);

/** Accepted, told, and without effect here: sizes, display data, and settings of tools. */
const WITHOUT_EFFECT = {
  AutoDeleteOnIdle: z.string().nullish(),
  EnableBatchedOperations: z.boolean().nullish(),
  EnableExpress: z.boolean().nullish(),
  MaxMessageSizeInKilobytes: z.number().nullish(),
  MaxSizeInMegabytes: z.number().nullish(),
  SupportOrdering: z.boolean().nullish(),
  UserMetadata: z.string().nullish(),
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
  DeadLetteringOnFilterEvaluationExceptions: z.boolean().nullish(),
});
const topicProperties = z.strictObject(SHARED);
const queue = z.strictObject({ Name: name, Properties: entityProperties.prefault({}) });
const subscription = queue.extend({ Rules: z.array(ruleSchema).nullish() });
const topic = z.strictObject({
  Name: name,
  Properties: topicProperties.prefault({}),
  Subscriptions: z.array(subscription).default([]),
});
const namespace = z.strictObject({
  Name: z.string().optional(),
  Queues: z.array(queue).default([]),
  Topics: z.array(topic).default([]),
});
const userConfig = z.strictObject({
  Namespaces: z.array(namespace).min(1).max(1, 'only one namespace is possible, as in the emulator'),
  Logging: z.unknown().optional(),
});
const file = z.strictObject({ $schema: z.string().optional(), UserConfig: userConfig });

const IN_PROPERTIES = new Set([...Object.keys(entityProperties.shape), ...Object.keys(topicProperties.shape)]);
const ELSEWHERE = [file, userConfig, namespace, queue, topic, subscription].flatMap(({ shape }) => Object.keys(shape));

type EntityProperties = z.output<typeof entityProperties>;
type TopicProperties = z.output<typeof topicProperties>;

/** Where a part of a configuration stands. */
type Path = readonly PropertyKey[];
/** Something wrong or worth telling about a part of a configuration. */
type Remark = readonly [path: Path, text: string];

/**
 * Reads the text of an emulator `Config.json`; a byte order mark, comments and commas after the last item are no error.
 * Throws an error that names line and path of everything that is wrong.
 */
export function readConfig(text: string): EmulatorConfig {
  const { value, lineOf } = readJsonText(text);
  return checkedConfig(value, ([path, what]) => `line ${lineOf(path)}, ${pathText(path)}: ${what}`);
}

/**
 * Validates the content of an emulator `Config.json`.
 * Throws an error that names the path of everything that is wrong.
 */
export function parseConfig(json: unknown): EmulatorConfig {
  return checkedConfig(json, ([path, what]) => `${pathText(path)}: ${what}`);
}

function checkedConfig(json: unknown, shown: (remark: Remark) => string): EmulatorConfig {
  const result = file.safeParse(json);
  if (!result.success) throw notValid(remarksOf(result.error).map(shown));
  const { Queues: queues = [], Topics: topics = [] } = result.data.UserConfig.Namespaces[0] ?? {};
  const taken = [...takenNames(queues, topics)];
  if (taken.length > 0) throw notValid(taken.map(shown));
  return {
    queues: queues.map((entry) => entityConfig(entry.Name, entry.Properties)),
    topics: topics.map((entry) => ({
      ...topicConfig(entry.Name, entry.Properties),
      subscriptions: entry.Subscriptions.map((sub) => ({
        ...entityConfig(sub.Name, sub.Properties),
        ...(sub.Rules?.length ? { rules: sub.Rules } : {}),
      })),
    })),
    unsupported: [...settingsOfTopics(topics)].map(shown),
    notes: notesOn(json).map(shown),
  };
}

function notValid(lines: readonly string[]): Error {
  return new Error(`The Service Bus configuration is not valid:\n  ${lines.join('\n  ')}`);
}

/** What is wrong, each key that is not known by itself. */
function remarksOf({ issues }: z.ZodError): Remark[] {
  return issues.flatMap((issue): Remark[] =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => [[...issue.path, key], unknownKey(issue.path, key)])
      : [[issue.path, issue.message]],
  );
}

function unknownKey(path: Path, key: string): string {
  if (path.at(-1) !== 'Properties' && IN_PROPERTIES.has(key)) return "is not known here: it belongs into 'Properties'";
  const meant = [...IN_PROPERTIES, ...ELSEWHERE].find((known) => known.toLowerCase() === key.toLowerCase());
  return meant && meant !== key ? `is not known, '${meant}' is: case matters` : 'is not known';
}

/** Settings that are accepted and do nothing, and durations that are not what they look like. */
function notesOn(json: unknown, path: Path = []): Remark[] {
  if (typeof json !== 'object' || json === null) return [];
  if (path.at(-1) === 'Properties') return Object.entries(json).flatMap((entry) => noteOn(entry, path));
  const parts = Array.isArray(json) ? [...json.entries()] : Object.entries(json);
  return parts.flatMap(([key, value]) => notesOn(value, [...path, key]));
}

function noteOn([key, value]: readonly [string, unknown], path: Path): Remark[] {
  if (value === null) return [];
  if (Object.hasOwn(WITHOUT_EFFECT, key)) return [[[...path, key], 'has no effect here']];
  if (key === 'DeadLetteringOnFilterEvaluationExceptions') {
    return [[[...path, key], 'has no effect here: a rule that fails on a message does not match']];
  }
  if (typeof value !== 'string' || !CALENDAR.test(value)) return [];
  const days = (durationMs(value) ?? Number.NaN) / 86_400_000;
  if (Number.isNaN(days)) return [];
  const much = `${Math.round(days * 100) / 100} days`;
  return [
    [[...path, key], `'${value}' counts in months or years and is read as ${much}; minutes stand after a T (PT1M)`],
  ];
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
  throw new Error(
    remarksOf(result.error)
      .map(([path, what]) => `${pathText(path)}: ${what}`)
      .join('; '),
  );
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

const NAMESPACE: Path = ['UserConfig', 'Namespaces', 0];
type Topics = z.output<typeof namespace>['Topics'];
type Queues = z.output<typeof namespace>['Queues'];

/** What a subscription asks for and only its topic can have. */
function* settingsOfTopics(topics: Topics): Generator<Remark> {
  for (const [at, topic] of topics.entries()) {
    for (const [index, { Properties: own }] of topic.Subscriptions.entries()) {
      for (const setting of ['RequiresDuplicateDetection', 'EnablePartitioning'] as const) {
        if (!own[setting] || topic.Properties[setting]) continue;
        const path = [...NAMESPACE, 'Topics', at, 'Subscriptions', index, 'Properties', setting];
        yield [path, 'this is decided by the topic'];
      }
    }
  }
}

/** Names that stand twice where they must not, in any case. */
function* takenNames(queues: Queues, topics: Topics): Generator<Remark> {
  const named = (entries: readonly { readonly Name: string }[], ...path: PropertyKey[]) =>
    entries.map(({ Name }, at) => [Name, [...NAMESPACE, ...path, at, 'Name']] as const);
  yield* repeated([...named(queues, 'Queues'), ...named(topics, 'Topics')]);
  for (const [at, { Subscriptions }] of topics.entries()) {
    yield* repeated(named(Subscriptions, 'Topics', at, 'Subscriptions'));
    for (const [index, { Rules }] of Subscriptions.entries()) {
      const rules = (Rules ?? []).map(({ name }) => ({ Name: name }));
      yield* repeated(named(rules, 'Topics', at, 'Subscriptions', index, 'Rules'));
    }
  }
}

function* repeated(names: readonly (readonly [name: string, path: Path])[]): Generator<Remark> {
  const seen = new Set<string>();
  for (const [entry, path] of names) {
    if (seen.has(entry.toLowerCase())) yield [path, `the name '${entry}' is already taken`];
    seen.add(entry.toLowerCase());
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at ? '.' : ''}${String(part)}`)).join('');
}
