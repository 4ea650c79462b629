import type { Broker } from './brokers/broker.ts';
import type { Catalog, Source } from './catalog.ts';
import type { Classifier } from './classify/classifier.ts';
import { OfficeError } from './errors.ts';
import type { AuthMode } from './http/caller.ts';
import type { Store } from './store/index.ts';
import type { Telemetry } from './telemetry.ts';

/** Everything the office's parts need, handed to each as its first argument. */
export interface Office {
  readonly catalog: Catalog;
  readonly broker: Broker;
  readonly store: Store;
  readonly classifier: Classifier;
  /** How callers are let in. */
  readonly auth: AuthMode;
  /** Now, in ms since 1970 (UTC). */
  readonly clock: () => number;
  /** That many random bytes. */
  readonly random: (bytes: number) => Uint8Array;
  /** One line for the log. No message contents, no keys. */
  readonly log: (line: string) => void;
  /** Takes signals for a monitoring system. */
  readonly telemetry: Telemetry;
  /** How long a run or cleanup holds its source without renewing, ms. Another process may go on after that. */
  readonly leaseMs: number;
  /** Pause between tries while locks of others run out or the target is throttled, ms. */
  readonly retryMs: number;
  /** How long the broker may take to answer a send, ms. Then its outcome is unknown. */
  readonly sendTimeoutMs: number;
  /** How long a collecting pass waits for a first letter before it takes the queue for empty, ms. */
  readonly collectWaitMs: number;
  /** How far into a queue of letters that are not held a run reaches: all before a letter must be received to get to it. */
  readonly reach: number;
}

/** The source of that name. Throws `DLO_SOURCE_UNKNOWN`. */
export function sourceNamed(office: Office, name: string): Source {
  const source = office.catalog.sources.find((one) => one.name === name);
  if (source === undefined) throw new OfficeError('DLO_SOURCE_UNKNOWN', `no source is named "${name.slice(0, 100)}"`);
  return source;
}
