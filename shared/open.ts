/** Puts the office together from its settings. */
import { randomBytes, randomUUID } from 'node:crypto';
import { createServiceBus } from './brokers/serviceBus/index.ts';
import { Classifier } from './classify/classifier.ts';
import type { Office } from './office.ts';
import { type CheckedOpening, checkOpening, type Opening } from './opening.ts';
import { REACH } from './plan/preflight.ts';
import { openStore } from './store/index.ts';

/**
 * Opens the office. Connects to nothing yet. Throws `DLO_SETTINGS_INVALID` when host.json or the settings,
 * `DLO_CATALOG_INVALID` when the catalog would make it unsafe to run.
 */
export function openOffice(opening: Opening): Office {
  return openChecked(checkOpening(opening));
}

/** Opens the office from what was checked before. */
export function openChecked({ settings, log, clock, own, catalog, telemetry }: CheckedOpening): Office {
  return {
    catalog,
    broker: createServiceBus({ settings, clock, log }),
    store: openStore(settings, catalog.office, () => randomUUID()),
    classifier: new Classifier(catalog),
    auth: own.DLO_AUTH,
    clock,
    random: (bytes) => randomBytes(bytes),
    log,
    telemetry,
    leaseMs: own.DLO_LEASE_SECONDS,
    retryMs: own.DLO_RETRY_SECONDS,
    sendTimeoutMs: own.DLO_SEND_TIMEOUT_SECONDS,
    collectWaitMs: own.DLO_COLLECT_WAIT_SECONDS,
    reach: REACH,
  };
}
