/** Facts about targets: read where they can be read, never guessed, and read anew whenever they are asked for. */

import type { Entity, Source } from '../../catalog.ts';
import { errorText } from '../../errors.ts';
import type { SourceKey } from '../../letter.ts';
import type { BrokerCount, TargetFacts } from '../broker.ts';
import { type Administration, administrationOf } from './administration.ts';
import { type NamespaceConnection, readNamespaceConnection } from './connectionSetting.ts';
import type { Described } from './description.ts';
import { LOOPBACK, readFactSettings } from './factSettings.ts';
import { type Identity, identityFor } from './identity.ts';
import { orAbort } from './orAbort.ts';
import { ReadRefused, readDeadLetterCount, readResource, type TargetKind } from './resourceManager.ts';

type Settings = Readonly<Record<string, string | undefined>>;

/** Reads facts about the entity beside a source. Never throws. */
export type FactReader = (source: Source, entity: string) => Promise<TargetFacts>;

/** Reads what the broker counts in the dead-letter queue of a source, at most one request each time, told by `onAsk` before. Never throws. */
export type CountReader = (source: Source, onAsk: () => void) => Promise<BrokerCount>;

/** What a reader is made of. */
export interface FactReaderOptions {
  readonly settings: Settings;
  readonly log: (line: string) => void;
  /** Bound for one reading, all ways together, ms. Default 5 s. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/** Where another way is left, the first one gets this part of the time. */
const FIRST_SHARE = 0.6;
const LOG_LENGTH = 300;
/** After a count could not be read it is not asked for again for so long, ms: it asks every minute, and is a guest. */
const COUNT_PAUSE = 5 * 60_000;

/** Where Microsoft's emulator has its interfaces; its ports cannot be chosen. */
const EMULATOR = { amqpPort: '5672', administrationPort: '5300' };

/** Shown to a Resource Manager on this machine, which asks for a token and cannot check one. */
const LOCAL_TOKEN = 'local';

/** Asks nothing yet. Throws `DLO_SETTINGS_INVALID` when a setting would send requests to a wrong place. */
export function createFactReader(options: FactReaderOptions): FactReader {
  return createReaders(options).facts;
}

/** Both readers, which share their ways and tokens. As {@link createFactReader}. */
export function createReaders({ settings, log, timeoutMs = TIMEOUT_MS }: FactReaderOptions): {
  readonly facts: FactReader;
  readonly count: CountReader;
} {
  const { resourceManagerUrl, administrationUrl } = readFactSettings(settings);
  const identities = new Map<string, Identity>();
  const administrations = new Map<string, Administration>();

  async function tokenFor(connection: string, scope: string, signal: AbortSignal): Promise<string> {
    if (LOOPBACK.test(resourceManagerUrl.hostname)) return LOCAL_TOKEN;
    const identity = once(identities, connection, () => identityFor(connection, settings));
    return (await identity.tokenFor(scope, signal)).token;
  }

  function waysFor({ of: source, namespace: { connection, host, resourceId } }: Source): Way[] {
    const ways: Way[] = [];
    if (resourceId !== undefined) {
      const manager = {
        url: resourceManagerUrl,
        tokenFor: (scope: string, signal: AbortSignal) => tokenFor(connection, scope, signal),
      };
      ways.push({
        from: 'resource-manager',
        read: (entity, signal) => readResource(manager, resourceId, host, kindOf(source, entity), entity, signal),
        count: (of, signal) => readDeadLetterCount(manager, resourceId, host, of, signal),
      });
    }
    const to = readNamespaceConnection(connection, settings);
    if (to.kind === 'connection-string') {
      const administration = () => administrationOf(to.text, urlFor(to, administrationUrl));
      ways.push({
        from: 'administration',
        read: async (entity, signal) => once(administrations, connection, administration).read(entity, signal),
        count: async (of, signal) => once(administrations, connection, administration).count(of, signal),
      });
    }
    return ways;
  }

  const facts: FactReader = async (source, entity) => {
    const ways = waysFor(source);
    const end = performance.now() + timeoutMs;
    let refused: ReadRefused | undefined;
    if (ways.length === 0) log(`facts ${source.name}: its namespace has neither resourceId nor connection string`);
    for (const [index, { from, read }] of ways.entries()) {
      const left = Math.max(1, Math.floor(end - performance.now()));
      const signal = AbortSignal.timeout(index < ways.length - 1 ? Math.floor(left * FIRST_SHARE) : left);
      try {
        return { from, ...(await orAbort(read(entity, signal), signal)) };
      } catch (error) {
        if (error instanceof ReadRefused) refused = error;
        const why = signal.aborted ? 'there was no answer in time' : printable(errorText(error, LOG_LENGTH));
        log(`facts ${source.name}: nothing about "${entity}" from ${from}: ${why}`);
      }
    }
    return { from: 'none', ...(refused !== undefined && { forbidden: refused.message }) };
  };

  /** The way that a source's count is read by, and why and until when it is not. */
  const counting = new Map<SourceKey, { readonly way: number; readonly unread?: string; readonly until?: number }>();

  const count: CountReader = async (source, onAsk) => {
    const { way = 0, unread: before, until = 0 } = counting.get(source.key) ?? {};
    if (before !== undefined && performance.now() < until) return { unread: before };
    const ways = waysFor(source);
    const chosen = ways[way % Math.max(1, ways.length)];
    const signal = AbortSignal.timeout(timeoutMs);
    let unread = 'its namespace has neither resourceId nor connection string';
    try {
      if (chosen !== undefined) {
        onAsk();
        const found = await orAbort(chosen.count(source.of, signal), signal);
        counting.set(source.key, { way });
        return { count: found };
      }
    } catch (error) {
      const why = signal.aborted ? 'there was no answer in time' : printable(errorText(error, LOG_LENGTH));
      unread = `nothing from ${chosen?.from}: ${why}`;
    }
    if (before !== unread) log(`counter ${source.name}: ${unread}`);
    // The next way has its turn with the next pass; when all have failed, they are left alone for a while.
    const isLast = (way + 1) % Math.max(1, ways.length) === 0;
    counting.set(source.key, { way: way + 1, unread, until: isLast ? performance.now() + COUNT_PAUSE : 0 });
    return { unread };
  };

  return { facts, count };
}

/** A source's letters go to queues, but for its own topic. */
function kindOf(source: Entity, entity: string): TargetKind {
  const isTopic = source.kind === 'subscription' && source.topic.toLowerCase() === entity.toLowerCase();
  return isTopic ? 'topics' : 'queues';
}

interface Way {
  readonly from: 'resource-manager' | 'administration';
  read(entity: string, signal: AbortSignal): Promise<Described>;
  /** Throws an `Error` that says why the dead letters are not counted. */
  count(of: Entity, signal: AbortSignal): Promise<number>;
}

/**
 * Where the administration interface is, if not at the namespace's own address. Throws when it cannot be known: facts of
 * another emulator on this machine would be wrong ones.
 */
function urlFor(to: NamespaceConnection & { kind: 'connection-string' }, given: URL | undefined): URL | undefined {
  if (!to.isEmulator) return undefined;
  if (given !== undefined) return given;
  const { host, port = EMULATOR.amqpPort } = to;
  if (port !== EMULATOR.amqpPort) {
    throw new Error('it is a development emulator, and DLO_ADMINISTRATION_URL does not say where to ask it');
  }
  return new URL(`http://${host}:${EMULATOR.administrationPort}`);
}

function once<T>(all: Map<string, T>, key: string, create: () => T): T {
  const known = all.get(key);
  if (known !== undefined) return known;
  const created = create();
  all.set(key, created);
  return created;
}

/** One line, whatever the answer held. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');
}
