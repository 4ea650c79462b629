/** What must be right before the office may open, checked while the app starts: without loading what it works with. */
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { readFactSettings } from './brokers/serviceBus/factSettings.ts';
import { type Catalog, readCatalog } from './catalog.ts';
import { wrongSetting } from './connectionString.ts';
import { errorText, OfficeError } from './errors.ts';
import { AUTH_MODES } from './http/caller.ts';
import { readJsonFile } from './json.ts';
import { READ_ONCE } from './readOnce.ts';
import { storageConnection } from './store/connection.ts';
import { openTelemetry } from './telemetry/open.ts';
import type { Telemetry } from './telemetry.ts';

/** What the office is opened with. */
export interface Opening {
  /** Folder of host.json and catalog.json, with a slash at its end. */
  readonly root: URL;
  readonly settings: Readonly<Record<string, string | undefined>>;
  readonly log: (line: string) => void;
}

/** Settings of the office beside its connections; durations are seconds. */
const settingsSchema = z.object({
  /** Another catalog than the one in the package: a path. */
  DLO_CATALOG: z.string().min(1).optional(),
  /** Only behind App Service authentication may its header be believed. */
  DLO_AUTH: z.enum(AUTH_MODES).default('keys'),
  DLO_LEASE_SECONDS: seconds(1, 600).default(60_000),
  DLO_RETRY_SECONDS: seconds(0.1, 300).default(5000),
  DLO_SEND_TIMEOUT_SECONDS: seconds(0.5, 60).default(15_000),
  DLO_COLLECT_WAIT_SECONDS: seconds(0.05, 60).default(3000),
});

function seconds(min: number, max: number) {
  return z.coerce
    .number()
    .min(min)
    .max(max)
    .transform((value) => value * 1000);
}

/** Everything the office is made of, checked. */
export interface CheckedOpening {
  readonly settings: Opening['settings'];
  readonly log: Opening['log'];
  readonly clock: () => number;
  readonly own: z.infer<typeof settingsSchema>;
  readonly catalog: Catalog;
  readonly telemetry: Telemetry;
}

/**
 * Checks host.json, the app settings and the catalog. Connects to nothing. Throws `DLO_SETTINGS_INVALID` or `DLO_CATALOG_INVALID` when
 * any of them would make it unsafe to run.
 */
export function checkOpening({ root, settings, log }: Opening): CheckedOpening {
  assertManualSettlement(new URL('host.json', root));
  assertNotOverridden(settings);
  const parsed = settingsSchema.safeParse(settings, READ_ONCE);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new OfficeError('DLO_SETTINGS_INVALID', `the app settings are not valid: ${problems.join('; ')}`);
  }
  const own = parsed.data;
  const file = own.DLO_CATALOG === undefined ? new URL('catalog.json', root) : pathToFileURL(own.DLO_CATALOG);
  const catalog = readCatalog(file, settings);
  // What store and broker are opened with later on.
  storageConnection(settings, 'table');
  storageConnection(settings, 'queue');
  if (catalog.sources.some(({ archive }) => archive)) storageConnection(settings, 'blob');
  readFactSettings(settings);
  const clock = () => Date.now();
  return {
    settings,
    log,
    clock,
    own,
    catalog,
    telemetry: openTelemetry({ settings, log, clock }),
  };
}

const hostSchema = z.object({
  extensions: z.object({ serviceBus: z.object({ autoCompleteMessages: z.literal(false) }) }),
});

/** With auto-completion on, the host would remove every letter that was classified from its dead-letter queue. */
function assertManualSettlement(file: URL): void {
  let json: unknown;
  try {
    // The host does not look at the case of a key, and takes the last of two.
    json = readJsonFile(file, { anyCase: true });
  } catch (cause) {
    throw new OfficeError('DLO_SETTINGS_INVALID', `host.json cannot be read: ${errorText(cause)}`, { cause });
  }
  if (hostSchema.safeParse(json, READ_ONCE).success) return;
  const message =
    'host.json must set extensions.serviceBus.autoCompleteMessages to false: the host would delete letters';
  throw new OfficeError('DLO_SETTINGS_INVALID', message);
}

/** Sections of a setting that takes the place of one in host.json (Microsoft, "host.json reference, override host.json values"). */
const OVERRIDE = ['azurefunctionsjobhost', 'extensions', 'servicebus', 'autocompletemessages'];

/** An app setting wins over host.json. The host does not look at the case of its name, and takes `:` for `__`. */
function assertNotOverridden(settings: Opening['settings']): void {
  for (const [name, value] of Object.entries(settings)) {
    if (name.toLowerCase().split(/__|:/).join() !== OVERRIDE.join()) continue;
    if (value?.trim().toLowerCase() === 'false') continue;
    throw wrongSetting(name, 'must be false or not be there: the host would delete letters');
  }
}
