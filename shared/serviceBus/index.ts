/** Azure Service Bus behind the port `shared/broker.ts`. */
import type { Broker } from '../broker.ts';
import type { Namespace as CatalogNamespace, Source } from '../catalog.ts';
import { DESCRIPTION_COST } from './bucket.ts';
import { type Budget, openBudget } from './budget.ts';
import { readEndpoint } from './credentials.ts';
import { openDeadLetterQueue } from './deadLetterQueue.ts';
import { bodyParts, openEnvelope } from './envelope.ts';
import { createFactReader } from './facts.ts';
import { type Namespace, shareNamespace } from './namespace.ts';
import { reset } from './reset.ts';
import { openReplayTarget } from './target.ts';
import { lookForWaiting } from './waiting.ts';

/** What the adapter needs from its surroundings. */
export interface ServiceBusOptions {
  /** App settings with the connections that the catalog names. */
  readonly settings: Readonly<Record<string, string | undefined>>;
  /** ms since 1970. */
  readonly clock: () => number;
  /** Takes one line about the adapter's own state; never about the contents of messages. */
  readonly log: (line: string) => void;
  /** How long the broker may take for an answer, ms. Default 30 s. */
  readonly operationTimeoutMs?: number;
  /** After this long without use a connection is closed, ms. Default a minute. */
  readonly idleMs?: number;
}

const OPERATION_TIMEOUT_MS = 30_000;
const IDLE_MS = 60_000;

/**
 * The broker. Connects when it is first used, once for each namespace of the catalog. Throws `DLO_CATALOG_INVALID` for
 * settings that are not valid.
 *
 * @example
 * const broker = createServiceBus({ settings: process.env, clock: Date.now, log: console.log });
 * const queue = await broker.open(source);
 * const letters = await queue.peek(sequenceNumber(0n), 100);
 */
export function createServiceBus(options: ServiceBusOptions): Broker {
  const { settings, clock, log, operationTimeoutMs = OPERATION_TIMEOUT_MS, idleMs = IDLE_MS } = options;
  const namespaces = new Map<string, Namespace>();
  const budgets = new Map<string, Budget>();
  const readFacts = createFactReader({ settings, log });

  function budgetOf({ label, operationsPerSecond: ceiling }: CatalogNamespace): Budget {
    let budget = budgets.get(label);
    if (budget === undefined) {
      budget = openBudget({ ceiling, log: (line) => log(`namespace ${label}: ${line}`) });
      budgets.set(label, budget);
    }
    return budget;
  }

  function namespaceOf({ namespace: of }: Source): Namespace {
    let namespace = namespaces.get(of.label);
    if (namespace === undefined) {
      const wire = { operationTimeoutMs, idleMs, log, budget: budgetOf(of) };
      namespace = shareNamespace(readEndpoint(of.connection, settings), wire);
      namespaces.set(of.label, namespace);
    }
    return namespace;
  }

  return {
    async open(source) {
      return openDeadLetterQueue(namespaceOf(source), source, { clock, log });
    },
    async openTarget(source, entity) {
      return openReplayTarget(namespaceOf(source), entity);
    },
    async facts(source, entity) {
      budgetOf(source.namespace).pay(DESCRIPTION_COST);
      return readFacts(source, entity);
    },
    isWaiting: (source, entity, planId) => lookForWaiting(namespaceOf(source), entity, planId),
    reset,
    bodyOf: (message) => bodyParts(openEnvelope(message)),
    async close() {
      await Promise.all([...namespaces.values()].map((namespace) => namespace.close()));
    },
  };
}
