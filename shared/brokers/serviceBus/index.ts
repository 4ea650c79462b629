/** Azure Service Bus behind the port `shared/brokers/broker.ts`. */

import type { Namespace as CatalogNamespace, Source } from '../../catalog.ts';
import type { Broker } from '../broker.ts';
import { DESCRIPTION_COST } from './bucket.ts';
import type { Budget } from './budget.ts';
import { bodyParts, openEnvelope } from './envelope.ts';
import { createReaders } from './facts.ts';
import type { Namespace } from './namespace.ts';
import { reset } from './reset.ts';

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

type Live = typeof import('./live.ts');

const OPERATION_TIMEOUT_MS = 30_000;
const IDLE_MS = 60_000;

/**
 * The broker. Connects when it is first used, once for each namespace of the catalog. Throws `DLO_SETTINGS_INVALID` for
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
  const read = createReaders({ settings, log });
  // The AMQP libraries take a tenth of a second to load, which no start of the app has to wait for.
  let loading: Promise<Live> | undefined;
  const live = () => {
    loading ??= import('./live.ts');
    return loading;
  };

  function budgetOf(by: Live, { label, operationsPerSecond: ceiling }: CatalogNamespace): Budget {
    let budget = budgets.get(label);
    if (budget === undefined) {
      budget = by.openBudget({ ceiling, log: (line) => log(`namespace ${label}: ${line}`) });
      budgets.set(label, budget);
    }
    return budget;
  }

  function namespaceOf(by: Live, { namespace: of }: Source): Namespace {
    let namespace = namespaces.get(of.label);
    if (namespace === undefined) {
      const wire = { operationTimeoutMs, idleMs, log, budget: budgetOf(by, of) };
      namespace = by.shareNamespace(by.readEndpoint(of.connection, settings), wire);
      namespaces.set(of.label, namespace);
    }
    return namespace;
  }

  return {
    async open(source) {
      const by = await live();
      return by.openDeadLetterQueue(namespaceOf(by, source), source, { clock, log });
    },
    async openTarget(source, entity) {
      const by = await live();
      return by.openReplayTarget(namespaceOf(by, source), entity);
    },
    async facts(source, entity) {
      budgetOf(await live(), source.namespace).pay(DESCRIPTION_COST);
      return read.facts(source, entity);
    },
    async count(source) {
      const budget = budgetOf(await live(), source.namespace);
      return read.count(source, () => budget.pay(DESCRIPTION_COST));
    },
    async isWaiting(source, entity, planId, sent) {
      const by = await live();
      return by.lookForWaiting(namespaceOf(by, source), entity, planId, sent);
    },
    reset,
    bodyOf: (message) => bodyParts(openEnvelope(message)),
    async close() {
      await Promise.all([...namespaces.values()].map((namespace) => namespace.close()));
    },
  };
}
