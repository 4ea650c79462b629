import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EVENTS, METRICS } from '../../shared/signals.ts';
import { deferTelemetry, type Sink } from '../../shared/telemetry/deferred.ts';
import { MAX_LINKS, tracesOf } from '../../shared/telemetry/links.ts';
import { openTelemetry } from '../../shared/telemetry/open.ts';
import { SILENT, type SpanOptions } from '../../shared/telemetry.ts';

const SPAN: SpanOptions = { attributes: {} };

/** A sink that notes what it is told, and what it was told when it was asked to send. */
function recorder(broken: Partial<Sink> = {}) {
  const told: unknown[][] = [];
  const portions: number[] = [];
  const sink: Sink = {
    event: (...event) => void told.push(['event', ...event]),
    count: (...count) => void told.push(['count', ...count]),
    gauge: (...gauge) => void told.push(['gauge', ...gauge]),
    span: async (name, _options, act) => {
      told.push(['span', name]);
      return act();
    },
    flush: async () => void portions.push(told.length),
    close: async () => void told.push(['close']),
    ...broken,
  };
  return { told, portions, sink };
}

function deferred(sink: Sink | Promise<Sink>, options: { patienceMs?: number } = {}) {
  const log: string[] = [];
  let now = 1000;
  let loads = 0;
  const telemetry = deferTelemetry({
    load: async () => {
      loads++;
      return sink;
    },
    log: (line) => log.push(line),
    clock: () => now,
    ...options,
  });
  return { telemetry, log, loads: () => loads, pass: (ms: number) => (now += ms) };
}

test('without a connection string nobody is told, and nothing is loaded', async () => {
  const telemetry = openTelemetry({ settings: {}, log: () => {}, clock: Date.now });
  expect(telemetry).toBe(SILENT);
  expect(telemetry.isOn).toBe(false);
  expect(await telemetry.span('run', SPAN, async () => 7)).toBe(7);
});

test('a connection string that is none leaves it off, with a line in the log', async () => {
  const log: string[] = [];
  const settings = { APPLICATIONINSIGHTS_CONNECTION_STRING: 'nonsense' };
  const telemetry = openTelemetry({ settings, log: (line) => log.push(line), clock: Date.now });
  expect(telemetry).toBe(SILENT);
  expect(log).toEqual([expect.stringMatching(/^telemetry: off, APPLICATIONINSIGHTS_CONNECTION_STRING is not /)]);
});

test('what is told before the library is there is told when it is: counts summed up, of gauges the last', async () => {
  const { sink, told } = recorder();
  const { telemetry, loads } = deferred(sink);
  telemetry.event(EVENTS.runHalted, { source: 'orders' });
  telemetry.count(METRICS.returned, 2, { source: 'orders' });
  telemetry.count(METRICS.returned, 3, { source: 'orders' });
  telemetry.gauge(METRICS.growth, 4, { source: 'orders' });
  telemetry.gauge(METRICS.growth, 5, { source: 'orders' });
  expect(loads()).toBe(0);
  telemetry.start();
  telemetry.start();
  await telemetry.close();
  expect(loads()).toBe(1);
  expect(told).toEqual([
    ['count', METRICS.returned, 5, { source: 'orders' }],
    ['gauge', METRICS.growth, 5, { source: 'orders' }],
    ['event', EVENTS.runHalted, { source: 'orders' }, 1000],
    ['close'],
  ]);
});

test('a gauge that was told long before the library came is not told as if it were true now', async () => {
  const { sink, told } = recorder();
  const { telemetry, pass } = deferred(sink);
  telemetry.gauge(METRICS.growth, 4, { source: 'orders' });
  telemetry.count(METRICS.returned, 1, { source: 'orders' });
  pass(180_000);
  await telemetry.close();
  expect(told.map(([kind]) => kind)).toEqual(['count', 'close']);
});

test('an app that ends before it was told anything does not load the library', async () => {
  const { telemetry, loads } = deferred(recorder().sink);
  await telemetry.close();
  expect(loads()).toBe(0);
});

test('more letters than can be sent are dropped and counted; what alerts wait for is not, and goes first', async () => {
  const { sink, told, portions } = recorder();
  const { telemetry, log } = deferred(sink);
  for (let i = 0; i < 7000; i++) telemetry.event(EVENTS.classified, { sequenceNumber: String(i) });
  for (let i = 0; i < 10; i++) telemetry.event(EVENTS.runHalted, { planId: String(i) });
  await telemetry.close();
  const names = told.map(([, name]) => name);
  expect(names.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => EVENTS.runHalted));
  expect(names.filter((name) => name === EVENTS.classified)).toHaveLength(5000);
  // Never more at once than the library keeps: it would drop them without a word.
  const steps = portions.map((count, i) => count - (portions[i - 1] ?? 0));
  expect(Math.max(...steps)).toBeLessThanOrEqual(1000);
  expect(log).toEqual(['telemetry: 2000 events were dropped: there were too many, or the library refused them']);
});

test('while sending takes its time, events wait in bounded memory and the teller does not', async () => {
  const sending = Promise.withResolvers<void>();
  const { sink, told } = recorder({ flush: () => sending.promise });
  const { telemetry } = deferred(sink);
  telemetry.start();
  await delay(0);
  for (let i = 0; i < 20_000; i++) telemetry.event(EVENTS.classified, { sequenceNumber: String(i) });
  expect(told).toHaveLength(1000);
  sending.resolve();
  await telemetry.flush();
  await telemetry.close();
  expect(told.filter(([kind]) => kind === 'event')).toHaveLength(6000);
});

describe('whatever the library does, the office does not notice:', () => {
  const throws = () => {
    throw new Error('no');
  };

  test('it cannot be loaded', async () => {
    const { telemetry, log } = deferred(Promise.reject(new Error('no such module')));
    telemetry.event(EVENTS.runHalted, {});
    telemetry.start();
    await telemetry.flush();
    await telemetry.close();
    telemetry.gauge(METRICS.growth, 1, {});
    expect(telemetry.isOn).toBe(false);
    expect(log).toEqual(['telemetry: off, the office works on without it: no such module']);
    expect(await telemetry.span('run', SPAN, async () => 1)).toBe(1);
  });

  test('it throws at everything', async () => {
    const { sink } = recorder({
      event: throws,
      gauge: throws,
      span: throws,
      flush: () => Promise.reject(new Error('down')),
      close: () => Promise.reject(new Error('down')),
    });
    const { telemetry, log } = deferred(sink);
    telemetry.start();
    await delay(0);
    telemetry.event(EVENTS.runHalted, {});
    telemetry.gauge(METRICS.growth, 1, {});
    let done = 0;
    expect(await telemetry.span('run', SPAN, async () => ++done)).toBe(1);
    await telemetry.flush();
    await telemetry.close();
    expect(done).toBe(1);
    expect(log).toContain('telemetry: signals could not be sent: down');
  });

  test('it fails around a piece of work: that is done once, and its own failure is passed on', async () => {
    const { sink } = recorder({
      span: async (_name, _options, act) => {
        await act();
        throw new Error('of the library');
      },
    });
    const { telemetry } = deferred(sink);
    telemetry.start();
    await delay(0);
    let done = 0;
    expect(await telemetry.span('run', SPAN, async () => ++done)).toBe(1);
    const failing = telemetry.span('run', SPAN, async () => {
      done++;
      throw new Error('of the work');
    });
    await expect(failing).rejects.toThrow('of the work');
    expect(done).toBe(2);
  });

  test('it never answers', async () => {
    const never = () => new Promise<void>(() => {});
    const { telemetry } = deferred(recorder({ flush: never, close: never }).sink, { patienceMs: 20 });
    telemetry.start();
    await delay(0);
    telemetry.event(EVENTS.runHalted, {});
    await telemetry.flush();
    await telemetry.close();
    expect(telemetry.isOn).toBe(false);
  });
});

describe('the traces of letters', () => {
  const letter = (name: string, value: string | number) => ({ properties: [{ name, type: 'string', value }] });
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const spanId = 'b7ad6b7169203331';

  test('are read from what the SDKs write, each once', () => {
    const text = `00-${traceId}-${spanId}-01`;
    expect(tracesOf([letter('Diagnostic-Id', text), letter('traceparent', text)])).toEqual([{ traceId, spanId }]);
  });

  test.each<[string, string, string | number]>([
    ['another property', 'Other', `00-${traceId}-${spanId}-01`],
    ['the older form of Diagnostic-Id', 'Diagnostic-Id', '|4bf92f35.'],
    ['a trace of zeros', 'traceparent', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['a span of zeros', 'traceparent', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['capital letters', 'traceparent', `00-${traceId.toUpperCase()}-${spanId}-01`],
    ['more behind it', 'traceparent', `00-${traceId}-${spanId}-01-x`],
    ['a number', 'traceparent', 7],
  ])('are not read from %s', (_what, name, value) => {
    expect(tracesOf([letter(name, value)])).toEqual([]);
  });

  test('are as many as a span can carry', () => {
    const many = Array.from({ length: 300 }, (_, i) =>
      letter('traceparent', `00-${traceId}-${String(i + 1).padStart(16, '0')}-01`),
    );
    const links = tracesOf(many);
    expect(links).toHaveLength(MAX_LINKS);
    // What Application Insights takes of one property.
    const text = JSON.stringify(links.map(({ traceId, spanId }) => ({ operation_Id: traceId, id: spanId })));
    expect(text.length).toBeLessThan(8192);
  });
});
