/**
 * The catalog: one file that says which dead-letter queues the office manages, for whom, and under which rules.
 * It drives triggers, lists, preflight, retention, and (in `infra/`) roles and alerts.
 */
import { z } from 'zod';
import {
  NAMESPACE_ID,
  readNamespaceConnection,
  readNamespaceResourceId,
} from './brokers/serviceBus/connectionSetting.ts';
import { AZURE_FUNCTIONS } from './classify/dialects/azureFunctions.ts';
import { compilePayload } from './classify/payload.ts';
import { countPatterns, MAX_PATTERNS, type Rule, rulesSchema } from './classify/rules.ts';
import { duration } from './duration.ts';
import { errorText, isOfficeError, OfficeError } from './errors.ts';
import { readJsonFile } from './json.ts';
import type { SourceKey } from './letter.ts';
import { READ_ONCE } from './readOnce.ts';

const DAY = 86_400_000;

const label = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 63');
const entityName = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9_])?$/, 'must be a Service Bus entity name');
const settingName = z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,127}$/, 'must be the name of an app setting');
const days = (n: number) => n * DAY;

/** Where the entities are. `connection` names an app setting (connection string) or a section `X__fullyQualifiedNamespace`. */
const namespaceSchema = z.strictObject({
  connection: settingName,
  /**
   * Azure Resource Manager id of the namespace; preflight reads entity facts there when it is known. Where it is absent here,
   * the setting `X__namespaceResourceId` tells it, which is written when the office is deployed.
   */
  resourceId: z.string().regex(NAMESPACE_ID, 'must be the resource id of a Service Bus namespace').optional(),
  /** Ceiling for the office's own traffic, operations a second over all its sources. */
  operationsPerSecond: z.number().int().min(1).max(100_000).default(200),
});

/** Facts about the queue or subscription that the office cannot always read for itself. What is not stated is unknown. */
const entityFactsSchema = z.strictObject({
  lockDuration: duration.optional(),
  maxDeliveryCount: z.number().int().min(1).max(2000).optional(),
  /** `false`, or the window within which a known message id is accepted and silently dropped. */
  duplicateDetection: z.union([z.literal(false), duration]).optional(),
  requiresSession: z.boolean().optional(),
  /** Whether messages that expire are dead-lettered (`true`) or dropped (`false`). */
  deadLettersOnExpiry: z.boolean().optional(),
  partitioned: z.boolean().default(false),
  maxMessageBytes: z.number().int().min(1024).max(104_857_600).default(262_144),
});

const replaySchema = z.strictObject({
  /** How often one message may be sent back, by its own counter `x-replay-count`. */
  maxReplays: z.number().int().min(0).max(1000).default(3),
  /** Queue that the subscription's consumer also reads; letters of a subscription are sent there instead of to the topic. */
  replayQueue: entityName.optional(),
  /** Queue that the subscription forwards to (`ForwardTo`); its consumer is the one that failed. */
  forwardQueue: entityName.optional(),
  /** A queue whose consumer has no effects outside; copies are sent there to try a fix. */
  sandboxQueue: entityName.optional(),
});

/** When to wake the owner: read by infra/. Growth, never "more than zero". */
const alertSchema = z.strictObject({
  growthIn15Minutes: z.number().int().min(1).default(50),
  severity: z.number().int().min(0).max(4).default(2),
});

/** JSON Schema by message type, checked by making it ready once. */
const payloadsSchema = z
  .record(z.string().min(1).max(512), z.record(z.string(), z.unknown()))
  .superRefine((all, context) => {
    for (const [type, schema] of Object.entries(all)) {
      try {
        compilePayload(schema);
      } catch (error) {
        context.addIssue({ code: 'custom', path: [type], message: errorText(error, 500) });
      }
    }
  });

const sourceSchema = z
  .strictObject({
    name: label,
    /** Which of `namespaces`; may be left out when there is only one. */
    namespace: label.optional(),
    queue: entityName.optional(),
    topic: entityName.optional(),
    subscription: entityName.optional(),
    /** `defer`: the office sets letters aside in the DLQ. `observe`: it only looks, other tools keep working. */
    mode: z.enum(['defer', 'observe']),
    /**
     * Whether a Service Bus trigger gives speed beside the collecting pass. `false` for sources with AMQP value or sequence
     * bodies (JMS): the host cannot hand such a message to a Node function and abandons it at once, over and over, until the
     * collecting pass gets hold of it.
     */
    trigger: z.boolean().default(true),
    owner: z.strictObject({ team: z.string().min(1).max(100), contact: z.string().min(1).max(200) }),
    runbook: z.url().optional(),
    /** How long a letter may stay, from when it was first seen. Nothing is ever removed without it. */
    retainFor: duration.refine((ms) => ms > 0, 'must be longer than nothing').optional(),
    /** How long the record of a letter is kept after the letter has left. */
    keepRecordsFor: duration.default(days(90)),
    entity: entityFactsSchema.prefault({}),
    replay: replaySchema.prefault({}),
    /** Names of application properties whose values are masked in every view, besides the usual secrets. */
    mask: z.array(z.string().min(1).max(256)).max(200).default([]),
    /** Whether a copy of each letter that is removed (retention, discard) is written to the archive container before it goes. */
    archive: z.boolean().default(false),
    /** One always-ready instance for this source's trigger: read by infra/. */
    alwaysReady: z.boolean().default(false),
    alert: alertSchema.prefault({}),
    /** Who consumes, where the message itself cannot say it. */
    consumedBy: z.enum([AZURE_FUNCTIONS]).optional(),
    /** The first rule whose conditions all hold gives category and advice. */
    rules: rulesSchema,
    /** Bodies that do not fit can never be processed. */
    payloads: payloadsSchema.default({}),
  })
  .superRefine((source, context) => {
    const isQueue = source.queue !== undefined && source.topic === undefined && source.subscription === undefined;
    const isSubscription =
      source.queue === undefined && source.topic !== undefined && source.subscription !== undefined;
    if (!isQueue && !isSubscription) {
      context.addIssue({ code: 'custom', message: 'needs either `queue`, or `topic` and `subscription`' });
    }
    if (isQueue && (source.replay.replayQueue ?? source.replay.forwardQueue) !== undefined) {
      context.addIssue({
        code: 'custom',
        path: ['replay'],
        message: 'replayQueue and forwardQueue are for subscriptions',
      });
    }
    if (source.mode === 'defer' && source.entity.requiresSession === true) {
      const message = 'must be observe: deferred dead letters of session entities have been unreachable';
      context.addIssue({ code: 'custom', path: ['mode'], message });
    }
  });

/** The schema of catalog.json. Unknown fields are refused, so that a typing error is not taken for a policy. */
export const catalogSchema = z
  .strictObject({
    $schema: z.string().optional(),
    version: z.literal(1),
    /** Name of this office; written on every record, so that two offices on one DLQ are noticed. */
    office: label,
    namespaces: z.record(label, namespaceSchema).refine((all) => Object.keys(all).length > 0, 'needs at least one'),
    sources: z.array(sourceSchema).max(500),
    /** Rules that hold for all sources, after a source's own. */
    rules: rulesSchema,
    /** How long closed plans and audit rows are kept. */
    keepAuditFor: duration.default(days(400)),
  })
  .superRefine((catalog, context) => {
    const names = new Set<string>();
    for (const [index, source] of catalog.sources.entries()) {
      const path = ['sources', index];
      if (names.has(source.name))
        context.addIssue({ code: 'custom', path: [...path, 'name'], message: 'is used twice' });
      names.add(source.name);
      if (source.namespace === undefined && Object.keys(catalog.namespaces).length !== 1) {
        context.addIssue({ code: 'custom', path: [...path, 'namespace'], message: 'must be given: there are several' });
      }
      if (source.namespace !== undefined && !Object.hasOwn(catalog.namespaces, source.namespace)) {
        context.addIssue({ code: 'custom', path: [...path, 'namespace'], message: 'is not one of `namespaces`' });
      }
      const patterns = countPatterns(source.rules) + countPatterns(catalog.rules);
      if (patterns > MAX_PATTERNS) {
        const message = `has ${patterns} patterns with those for all sources, more than ${MAX_PATTERNS}`;
        context.addIssue({ code: 'custom', path: [...path, 'rules'], message });
      }
    }
  });

type SourceEntry = z.infer<typeof sourceSchema>;

/** The queue or subscription whose DLQ is managed. */
export type Entity =
  | { readonly kind: 'queue'; readonly queue: string }
  | { readonly kind: 'subscription'; readonly topic: string; readonly subscription: string };

/** How to reach a namespace. `host` is its fully qualified name, lower-case, without port. */
export interface Namespace {
  readonly label: string;
  /** Name of the app setting or section that holds the connection. */
  readonly connection: string;
  readonly host: string;
  readonly resourceId?: string | undefined;
  readonly operationsPerSecond: number;
}

/** A source with everything the office knows about it from the catalog. Durations are ms. */
export interface Source extends Omit<SourceEntry, 'namespace' | 'queue' | 'topic' | 'subscription'> {
  readonly key: SourceKey;
  readonly namespace: Namespace;
  readonly of: Entity;
  /** Path of the entity in its namespace: `orders`, or `events/Subscriptions/billing`. */
  readonly path: string;
  /** What of its entry still matters once it has left the catalog, JSON: kept by the store for that day. */
  readonly declared: string;
}

/** The catalog, checked and resolved. */
export interface Catalog {
  readonly office: string;
  readonly sources: readonly Source[];
  readonly namespaces: readonly Namespace[];
  /** Rules for all sources, after a source's own. */
  readonly rules: readonly Rule[];
  readonly keepAuditFor: number;
}

/** Key of a source: namespace host and entity path, lower-cased. `|` occurs in neither, and is allowed in table keys. */
export function sourceKey(host: string, path: string): SourceKey {
  return `${host}|${path.replaceAll('/', '|')}`.toLowerCase() as SourceKey;
}

/**
 * Checks a parsed catalog.json and resolves its namespaces against the app settings.
 * Throws `DLO_CATALOG_INVALID` naming every field that is wrong, `DLO_SETTINGS_INVALID` naming every connection that is.
 */
export function parseCatalog(json: unknown, settings: Readonly<Record<string, string | undefined>>): Catalog {
  const parsed = catalogSchema.safeParse(json, READ_ONCE);
  if (!parsed.success) throw invalid(parsed.error.issues.map((issue) => `${pathText(issue.path)}: ${issue.message}`));
  const problems: string[] = [];
  const namespaces = new Map<string, Namespace>();
  for (const [name, entry] of Object.entries(parsed.data.namespaces)) {
    try {
      const { host } = readNamespaceConnection(entry.connection, settings);
      const resourceId = entry.resourceId ?? readNamespaceResourceId(entry.connection, settings);
      namespaces.set(name, { label: name, host, ...entry, resourceId });
    } catch (error) {
      if (!isOfficeError(error, 'DLO_SETTINGS_INVALID')) throw error;
      problems.push(`${error.message} (namespace ${name})`);
    }
  }
  if (problems.length > 0) throw new OfficeError('DLO_SETTINGS_INVALID', problems.join('; '), { data: { problems } });
  const declared = (json as { sources: Record<string, unknown>[] }).sources;
  const sources = parsed.data.sources.map((entry, i) => resolve(entry, namespaces, lasting(declared[i] ?? {})));
  const byKey = new Map<SourceKey, string>();
  for (const source of sources) {
    const twin = byKey.get(source.key);
    if (twin !== undefined) throw invalid([`sources: "${source.name}" and "${twin}" are the same entity`]);
    byKey.set(source.key, source.name);
  }
  return {
    office: parsed.data.office,
    sources,
    namespaces: [...namespaces.values()],
    rules: parsed.data.rules,
    keepAuditFor: parsed.data.keepAuditFor,
  };
}

/** Reads and checks the catalog file. Throws `DLO_CATALOG_INVALID`, `DLO_SETTINGS_INVALID`. */
export function readCatalog(file: string | URL, settings: Readonly<Record<string, string | undefined>>): Catalog {
  let json: unknown;
  try {
    json = readJsonFile(file);
  } catch (cause) {
    throw new OfficeError('DLO_CATALOG_INVALID', `catalog.json cannot be read: ${errorText(cause)}`, { cause });
  }
  return parseCatalog(json, settings);
}

/** Rules and schemas can be long and are of no use to a source that is only cleaned up. */
function lasting({ rules: _rules, payloads: _payloads, mask: _mask, ...entry }: Record<string, unknown>): string {
  return JSON.stringify(entry);
}

/** A source that has left the catalog, from its stored entry; `undefined` when its namespace has left too. */
export function reviveSource(catalog: Catalog, declared: string): Source | undefined {
  let json: unknown;
  try {
    json = JSON.parse(declared);
  } catch {
    return undefined; // written by other hands: nothing can be done with it
  }
  const parsed = sourceSchema.safeParse(json);
  if (!parsed.success) return undefined;
  const namespaces = new Map(catalog.namespaces.map((namespace) => [namespace.label, namespace]));
  const name = parsed.data.namespace;
  if (name === undefined ? namespaces.size !== 1 : !namespaces.has(name)) return undefined;
  return resolve(parsed.data, namespaces, declared);
}

function resolve(entry: SourceEntry, namespaces: ReadonlyMap<string, Namespace>, declared: string): Source {
  const { namespace: name, queue, topic, subscription, ...rest } = entry;
  // The schema has checked that the name is known, or that there is exactly one namespace.
  const namespace = (name === undefined ? [...namespaces.values()][0] : namespaces.get(name)) as Namespace;
  const of: Entity =
    queue !== undefined
      ? { kind: 'queue', queue }
      : { kind: 'subscription', topic: topic as string, subscription: subscription as string };
  const path = of.kind === 'queue' ? of.queue : `${of.topic}/Subscriptions/${of.subscription}`;
  return { ...rest, namespace, of, path, declared, key: sourceKey(namespace.host, path) };
}

function pathText(path: readonly PropertyKey[]): string {
  return path.length === 0 ? 'catalog' : path.map(String).join('.');
}

function invalid(problems: readonly string[]): OfficeError {
  const shown = problems.slice(0, 20);
  return new OfficeError('DLO_CATALOG_INVALID', `catalog.json is not valid: ${shown.join('; ')}`, {
    data: { problems: shown },
  });
}
