/**
 * Signals to Azure Application Insights. The only file that knows its library; loaded when it is configured, and long after
 * the start: it takes a second.
 *
 * Only what is told here is sent. Everything the library would collect by itself is off: the office makes thousands of
 * storage calls an hour, and each would be a dependency to pay for; exceptions and console lines quote what must not leave.
 */
import { type MetricOptions, metrics, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { logs } from '@opentelemetry/api-logs';
import { flushAzureMonitor, shutdownAzureMonitor, useAzureMonitor } from 'applicationinsights';
import { METRICS } from '../signals.ts';
import type { Attributes, MetricName, SpanOptions } from '../telemetry.ts';
import type { Sink } from './deferred.ts';

/** What the library is set up with. */
export interface ApplicationInsightsOptions {
  readonly connectionString: string;
  /** Client id of the identity that may publish; `''`: the app's own. `undefined`: no identity, the key is enough. */
  readonly clientId: string | undefined;
}

const NAME = 'dead-letter-office';
const UNITS: Readonly<Partial<Record<MetricName, MetricOptions>>> = {
  [METRICS.oldestAge]: { unit: 's' },
  [METRICS.snapshotAge]: { unit: 's' },
};

/** Sets the library up. Throws when the connection string is not one. */
export async function openApplicationInsights(options: ApplicationInsightsOptions): Promise<Sink> {
  // The library's reports about itself to its makers: more calls, and none of our business.
  process.env.APPLICATION_INSIGHTS_NO_STATSBEAT ??= 'true';
  process.env.APPLICATIONINSIGHTS_SDKSTATS_DISABLED ??= 'true';
  // A metric about the machine with every span.
  process.env.APPLICATIONINSIGHTS_OPENTELEMETRY_RESOURCE_METRIC_DISABLED ??= 'true';
  process.env.OTEL_SERVICE_NAME ??= process.env.WEBSITE_SITE_NAME ?? NAME;
  const off = { enabled: false };
  useAzureMonitor({
    azureMonitorExporterOptions: {
      connectionString: options.connectionString,
      ...(options.clientId !== undefined && {
        credential: (await import('../identity.ts')).managedIdentity(options.clientId),
      }),
    },
    // One in one, and not by the second: alerts wait for single events, and there are a few spans a chunk at most.
    samplingRatio: 1,
    tracesPerSecond: 0,
    enableTraceBasedSamplingForLogs: false,
    enableAutoCollectExceptions: false,
    enableAutoCollectPerformance: false,
    enablePerformanceCounters: false,
    enableStandardMetrics: false,
    enableLiveMetrics: false,
    browserSdkLoaderOptions: { enabled: false },
    instrumentationOptions: {
      http: off,
      azureSdk: off,
      mongoDb: off,
      mySql: off,
      postgreSql: off,
      redis: off,
      redis4: off,
      bunyan: off,
      winston: off,
      // The host takes the app's lines from the console already.
      console: off,
    },
  });
  return sink();
}

function sink(): Sink {
  const meter = metrics.getMeter(NAME);
  const logger = logs.getLogger(NAME);
  const tracer = trace.getTracer(NAME);
  const gauges = lazily((name) => meter.createGauge(name, UNITS[name]));
  const counters = lazily((name) => meter.createCounter(name, UNITS[name]));
  return {
    // An event is a log record with this attribute (constant of the exporter, 1.0.0-beta.47).
    event: (name, attributes, at) =>
      logger.emit({ timestamp: at, attributes: { ...attributes, 'microsoft.custom_event.name': name } }),
    count: (name, by, attributes) => counters(name).add(by, attributes),
    gauge: (name, value, attributes) => gauges(name).record(value, attributes),
    span: (name, options, act) =>
      tracer.startActiveSpan(name, spanOptions(options), async (span) => {
        try {
          return await act();
        } catch (error) {
          // Without the message: it may quote the broker, and the broker a message.
          span.setStatus({ code: SpanStatusCode.ERROR });
          throw error;
        } finally {
          span.end();
        }
      }),
    flush: flushAzureMonitor,
    close: shutdownAzureMonitor,
  };
}

function spanOptions({ attributes, kind, links }: SpanOptions) {
  return {
    kind: kind === 'producer' ? SpanKind.PRODUCER : SpanKind.INTERNAL,
    attributes: { ...attributes } satisfies Attributes,
    links: (links?.() ?? []).map((context) => ({ context: { ...context, traceFlags: TraceFlags.SAMPLED } })),
  };
}

function lazily<Instrument>(create: (name: MetricName) => Instrument): (name: MetricName) => Instrument {
  const made = new Map<MetricName, Instrument>();
  return (name) => {
    const instrument = made.get(name) ?? create(name);
    made.set(name, instrument);
    return instrument;
  };
}
