/** What the office tells a monitoring system, and the office that tells nobody. Knows no SDK. */
import type { EVENTS, METRICS } from './signals.ts';

export type MetricName = (typeof METRICS)[keyof typeof METRICS];
export type EventName = (typeof EVENTS)[keyof typeof EVENTS];

/** What a signal is about. Never anything that a message carries: see `shared/telemetry/tell.ts`. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Another trace that a span has to do with (W3C trace context; lower-case hex of 32 and 16 digits). */
export interface TraceLink {
  readonly traceId: string;
  readonly spanId: string;
}

/** A piece of work to be seen in a trace. */
export interface SpanOptions {
  readonly attributes: Attributes;
  /** `producer`: sends messages. Default `internal`. */
  readonly kind?: 'internal' | 'producer';
  /** Asked only when there is somebody to tell. */
  readonly links?: () => readonly TraceLink[];
}

/**
 * Takes signals. No method throws or waits for a network (but `flush` and `close`), so that whatever happens to the
 * monitoring system, the office does its work.
 */
export interface Telemetry {
  /** False: nobody takes them. Whoever would have to read something in order to tell it need not. */
  readonly isOn: boolean;
  /** Something happened, now. */
  event(name: EventName, attributes: Attributes): void;
  /** `by` more of something. */
  count(name: MetricName, by: number, attributes: Attributes): void;
  /** Something is that much, now. Said once: a value is not repeated as if it were still true. */
  gauge(name: MetricName, value: number, attributes: Attributes): void;
  /** Does `act` inside a span; what it returns or throws is passed on. */
  span<Result>(name: string, options: SpanOptions, act: () => Promise<Result>): Promise<Result>;
  /** Begins to load what is needed, once. Until then signals are kept. */
  start(): void;
  /** Sends what is waiting. Takes seconds at most. */
  flush(): Promise<void>;
  /** Sends what is waiting and ends. Takes seconds at most. */
  close(): Promise<void>;
}

/** Tells nobody. */
export const SILENT: Telemetry = {
  isOn: false,
  event() {},
  count() {},
  gauge() {},
  span: (_name, _options, act) => act(),
  start() {},
  flush: () => Promise.resolve(),
  close: () => Promise.resolve(),
};
