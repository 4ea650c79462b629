/**
 * Telemetry whose library is loaded later: it takes long to load, and neither the start of the app nor its first answer may
 * wait for it. Until then signals are kept here, in bounded memory; and once it is there, events are passed on no faster than
 * it takes them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { errorText } from '../errors.ts';
import { EVENTS } from '../signals.ts';
import type { Attributes, EventName, MetricName, SpanOptions, Telemetry } from '../telemetry.ts';

/** Where signals go: the library. May throw, may be slow. Times are ms since 1970. */
export interface Sink {
  event(name: EventName, attributes: Attributes, at: number): void;
  count(name: MetricName, by: number, attributes: Attributes): void;
  gauge(name: MetricName, value: number, attributes: Attributes): void;
  span<Result>(name: string, options: SpanOptions, act: () => Promise<Result>): Promise<Result>;
  /** Sends everything told so far. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** What the deferred telemetry needs. */
export interface DeferredOptions {
  /** Loads the library. Called once. */
  readonly load: () => Promise<Sink>;
  readonly log: (line: string) => void;
  /** ms since 1970. */
  readonly clock: () => number;
  /** Longest wait of `flush` and `close`, ms. Default 5 s. */
  readonly patienceMs?: number;
}

/** Events that tell of single letters: the only ones that can be many. When there is no room they are the ones to go. */
const MAX_LETTER_EVENTS = 5000;
/** All other events; alerts wait for some of them. */
const MAX_EVENTS = 1000;
/** Events given to the library before it is asked to send: its own queue silently drops what is beyond 2048. */
const PORTION = 1000;
/** Different counters and gauges kept before the library is there. */
const MAX_SERIES = 2000;
/** A gauge kept longer than this is not told any more, ms. */
const GAUGE_LIFE = 120_000;
/** Longest wait for sending, ms. */
const PATIENCE = 5000;

interface Event {
  readonly name: EventName;
  readonly attributes: Attributes;
  readonly at: number;
}

interface Value {
  readonly name: MetricName;
  value: number;
  readonly attributes: Attributes;
  readonly at: number;
}

/** Opens telemetry that loads its library when it is started, or closed with something to tell. */
export function deferTelemetry(options: DeferredOptions): Telemetry {
  return new Deferred(options);
}

class Deferred implements Telemetry {
  readonly #options: DeferredOptions;
  #sink: Sink | undefined;
  #loading: Promise<void> | undefined;
  #isOn = true;
  readonly #events: Event[] = [];
  readonly #letterEvents: Event[] = [];
  readonly #counts = new Map<string, Value>();
  readonly #gauges = new Map<string, Value>();
  /** Events that the library has and may not have sent. */
  #given = 0;
  #sending: Promise<void> | undefined;
  #dropped = 0;

  constructor(options: DeferredOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  event(name: EventName, attributes: Attributes): void {
    if (!this.#isOn) return;
    const isOfLetter = name === EVENTS.classified;
    const queue = isOfLetter ? this.#letterEvents : this.#events;
    if (queue.length >= (isOfLetter ? MAX_LETTER_EVENTS : MAX_EVENTS)) this.#dropped++;
    else queue.push({ name, attributes, at: this.#options.clock() });
    this.#pass();
  }

  count(name: MetricName, by: number, attributes: Attributes): void {
    if (!this.#isOn || by === 0) return;
    const sink = this.#sink;
    if (sink !== undefined) {
      this.#tell(() => sink.count(name, by, attributes));
      return;
    }
    const key = seriesKey(name, attributes);
    const kept = this.#counts.get(key);
    if (kept !== undefined) kept.value += by;
    else this.#keep(this.#counts, key, { name, value: by, attributes, at: this.#options.clock() });
  }

  gauge(name: MetricName, value: number, attributes: Attributes): void {
    if (!this.#isOn) return;
    const sink = this.#sink;
    if (sink !== undefined) {
      this.#tell(() => sink.gauge(name, value, attributes));
      return;
    }
    const key = seriesKey(name, attributes);
    this.#gauges.delete(key);
    this.#keep(this.#gauges, key, { name, value, attributes, at: this.#options.clock() });
  }

  span<Result>(name: string, options: SpanOptions, act: () => Promise<Result>): Promise<Result> {
    const sink = this.#sink;
    if (sink === undefined) return act();
    let begun: Promise<Result> | undefined;
    const once = () => {
      begun ??= act();
      return begun;
    };
    try {
      // What the library does around it must neither keep the work from being done nor have it done twice.
      return sink.span(name, options, once).catch(once);
    } catch {
      return once();
    }
  }

  start(): void {
    if (!this.#isOn) return;
    this.#loading ??= this.#load();
  }

  async flush(): Promise<void> {
    const sink = this.#sink;
    if (!this.#isOn || sink === undefined) return;
    await this.#patiently(this.#sendAll(sink));
  }

  async close(): Promise<void> {
    const hasSomething = this.#events.length + this.#letterEvents.length + this.#counts.size + this.#gauges.size > 0;
    if (hasSomething) this.start();
    await this.#patiently(
      (async () => {
        await this.#loading;
        const sink = this.#sink;
        if (sink === undefined) return;
        await this.#sendAll(sink);
        this.#isOn = false;
        await sink.close();
      })(),
    );
    this.#isOn = false;
  }

  async #load(): Promise<void> {
    try {
      const sink = await this.#options.load();
      for (const { name, value, attributes } of this.#counts.values()) sink.count(name, value, attributes);
      const oldest = this.#options.clock() - GAUGE_LIFE;
      for (const { name, value, attributes, at } of this.#gauges.values()) {
        if (at >= oldest) sink.gauge(name, value, attributes);
      }
      this.#counts.clear();
      this.#gauges.clear();
      this.#sink = sink;
      this.#pass();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** Passes events on, the ones that are not many first, and has them sent after each portion. */
  #pass(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#sending !== undefined) return;
    while (this.#given < PORTION) {
      const event = this.#events.shift() ?? this.#letterEvents.shift();
      if (event === undefined) return;
      this.#given++;
      this.#tell(() => sink.event(event.name, event.attributes, event.at));
    }
    this.#sending = this.#send(sink).finally(() => {
      this.#sending = undefined;
      this.#pass();
    });
  }

  async #send(sink: Sink): Promise<void> {
    try {
      await sink.flush();
    } catch (error) {
      this.#options.log(`telemetry: signals could not be sent: ${errorText(error, 200)}`);
    }
    this.#given = 0;
    if (this.#dropped === 0) return;
    this.#options.log(
      `telemetry: ${this.#dropped} events were dropped: there were too many, or the library refused them`,
    );
    this.#dropped = 0;
  }

  async #sendAll(sink: Sink): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
    await this.#send(sink);
  }

  #keep(series: Map<string, Value>, key: string, value: Value): void {
    if (series.size < MAX_SERIES) series.set(key, value);
  }

  #tell(act: () => void): void {
    try {
      act();
    } catch {
      this.#dropped++;
    }
  }

  #giveUp(error: unknown): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#sink = undefined;
    for (const queue of [this.#events, this.#letterEvents]) queue.length = 0;
    this.#counts.clear();
    this.#gauges.clear();
    this.#options.log(`telemetry: off, the office works on without it: ${errorText(error, 300)}`);
  }

  async #patiently(work: Promise<void>): Promise<void> {
    const end = new AbortController();
    try {
      await Promise.race([work, delay(this.#options.patienceMs ?? PATIENCE, undefined, { signal: end.signal })]);
    } catch (error) {
      this.#options.log(`telemetry: the last signals could not be sent: ${errorText(error, 200)}`);
    } finally {
      end.abort();
    }
  }
}

function seriesKey(name: string, attributes: Attributes): string {
  return `${name} ${JSON.stringify(attributes)}`;
}
