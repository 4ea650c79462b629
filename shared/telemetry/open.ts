import { SILENT, type Telemetry } from '../telemetry.ts';
import { deferTelemetry } from './deferred.ts';

/** What telemetry is opened with. */
export interface TelemetryOpening {
  readonly settings: Readonly<Record<string, string | undefined>>;
  readonly log: (line: string) => void;
  /** ms since 1970. */
  readonly clock: () => number;
}

const INSTRUMENTATION_KEY = /(?:^|;)\s*InstrumentationKey=[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\s*(?:;|$)/i;

/**
 * Telemetry as the app settings want it: silent without `APPLICATIONINSIGHTS_CONNECTION_STRING`. With
 * `APPLICATIONINSIGHTS_AUTHENTICATION_STRING` as the Functions host knows it (`Authorization=AAD`, perhaps with `ClientId=...`)
 * it publishes by managed identity. Loads nothing yet, and never throws: settings that are wrong leave it off, with a line in the log.
 */
export function openTelemetry({ settings, log, clock }: TelemetryOpening): Telemetry {
  const connectionString = settings.APPLICATIONINSIGHTS_CONNECTION_STRING;
  if (!connectionString) return SILENT;
  if (!INSTRUMENTATION_KEY.test(connectionString)) {
    log('telemetry: off, APPLICATIONINSIGHTS_CONNECTION_STRING is not a connection string of Application Insights');
    return SILENT;
  }
  const clientId = clientIdIn(settings.APPLICATIONINSIGHTS_AUTHENTICATION_STRING ?? '');
  return deferTelemetry({
    log,
    clock,
    load: async () => {
      const { openApplicationInsights } = await import('./applicationInsights.ts');
      return openApplicationInsights({ connectionString, clientId });
    },
  });
}

function clientIdIn(text: string): string | undefined {
  const parts = new Map(
    text.split(';').map((part) => {
      const [name = '', value = ''] = part.split('=', 2);
      return [name.trim().toLowerCase(), value.trim()];
    }),
  );
  return parts.get('authorization')?.toLowerCase() === 'aad' ? (parts.get('clientid') ?? '') : undefined;
}
