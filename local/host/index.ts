/**
 * A small stand-in for the Azure Functions host, for laptops and tests: it loads an app through the real `@azure/functions`
 * and runs its HTTP, timer, storage queue and Service Bus functions. It is not a product; what it leaves out it refuses.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadSettings, type Settings } from '../../cli/settings.ts';
import { handleAdmin } from './admin.ts';
import { describe, type LoadedFunction, loadApp } from './app.ts';
import { isDisabled, resolveBinding } from './bindingSettings.ts';
import { type HostJson, readHostJson } from './hostJson.ts';
import { createHttpApp, defaultBodyLimit, type HttpFunction, respond, toHttpFunction } from './http.ts';
import { createInvoker, type Invocation, type WriteLog } from './invoke.ts';
import { completeKeys, type HostKeys } from './keys.ts';
import { createQueueTrigger, queueInvocation } from './queueTrigger.ts';
import { serviceBusInvocation } from './serviceBusMessage.ts';
import { createServiceBusTrigger } from './serviceBusTrigger.ts';
import { runTimer, type TimerFunction, timerData, toTimerFunction } from './timers.ts';

export { type HostKeys, parseKeys } from './keys.ts';

export interface HostOptions {
  /** Folder with host.json, and local.settings.json if there is one. */
  root: string;
  /** The app's entry, absolute or relative to `root`. */
  entry: string;
  /** App settings that win over the environment and local.settings.json. All of them are put into `process.env`. */
  settings?: Record<string, string>;
  /** 0, the default, takes a free port. */
  port?: number;
  hostname?: string;
  /** Random when absent; functions without a key get a random one. */
  keys?: HostKeys;
  /** False leaves the timers' schedules (and `runOnStartup`) out; they can still be run by hand. */
  timers?: boolean;
  /** Longest wait between polls of an empty storage queue, milliseconds. Default 1000. */
  longestQueuePoll?: number;
  log?: (line: string) => void;
}

/** A function as the host sees it. `route` includes the prefix. */
export interface FunctionInfo {
  name: string;
  type: string;
  route?: string;
  methods?: string[];
  authLevel?: string;
  disabled?: true;
}

export interface RunningHost {
  url: string;
  keys: HostKeys;
  functions: FunctionInfo[];
  /** Runs a function that is not HTTP now, waits for its end, and throws what it threw. */
  run(name: string, input?: unknown): Promise<void>;
  /** Stops the triggers, lets running functions end (at most 10 seconds), runs appTerminate hooks, closes everything. */
  close(): Promise<void>;
}

const graceMs = 10_000;

/** One function made ready: how to start its trigger, and what a run by hand gets. */
interface Ready {
  info: FunctionInfo;
  target: LoadedFunction;
  http?: HttpFunction;
  listen?: (signal: AbortSignal) => Promise<void>;
  byHand?: (input: unknown) => Invocation;
}

/**
 * Loads the app and starts its triggers. Resolves once HTTP is open; a broker or storage that is down is waited for behind it.
 *
 * @throws Error with function name and reason when the app, a binding, a setting or host.json is wrong, or the port is taken.
 *   One host a process: the library keeps its registrations, so a second call throws.
 */
export async function startHost(options: HostOptions): Promise<RunningHost> {
  const root = resolve(options.root);
  const write = options.log ?? ((line) => console.error(line));
  const log: WriteLog = (level, source, message) =>
    write(`${new Date().toISOString()} ${level} [${source}] ${message}`);

  const hostJson = await readHostJson(root);
  const settings = await loadSettings(root, options.settings ?? {}, process.env);
  const app = await loadApp(resolve(root, options.entry), (level, _category, message) => log(level, 'app', message));
  const invoker = createInvoker(app, log);
  const keys = completeKeys(
    options.keys,
    app.functions.map((one) => one.name),
  );

  const prepared = await Promise.allSettled(
    app.functions.map((target) => prepare(target, { settings, hostJson, options, invoker, log })),
  );
  const failures = prepared.flatMap((one) => (one.status === 'rejected' ? [describe(one.reason)] : []));
  if (failures.length > 0) throw new Error(failures.join('\n'));
  const ready = prepared.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));

  const find = (name: string) => ready.find((one) => one.target.name.toLowerCase() === name.toLowerCase());
  const run = async (name: string, input?: unknown): Promise<void> => {
    const found = find(name);
    if (!found?.byHand) throw new Error(`There is no function "${name}" that can be run by hand.`);
    await invoker.invoke(found.target, found.byHand(input));
  };

  const serveFunction = createHttpApp({
    functions: ready.flatMap((one) => one.http ?? []),
    disabled: new Set(ready.flatMap((one) => (one.info.disabled ? [one.target.name] : []))),
    keys,
    bodyLimit: Number(settings.get('FUNCTIONS_REQUEST_BODY_SIZE_LIMIT') ?? defaultBodyLimit),
    invoker,
  });
  const admin = { keys, run, typeOf: (name: string) => find(name)?.info.type };
  const server = createServer((request, response) => {
    const served = handleAdmin(admin, request, response).then((handled) =>
      handled ? undefined : serveFunction(request, response),
    );
    served.catch((error) => {
      log('error', 'http', `${request.method} ${request.url}: ${describe(error)}`);
      if (response.headersSent) response.destroy();
      else respond(response, 500);
    });
  });
  await new Promise<void>((opened, failed) => {
    server.once('error', failed);
    server.listen(options.port ?? 0, options.hostname ?? '127.0.0.1', opened);
  });

  const stopping = new AbortController();
  const listening = ready.map(async (one) => {
    try {
      await one.listen?.(stopping.signal);
    } catch (error) {
      log('error', one.target.name, `its trigger stopped: ${describe(error)}`);
    }
  });

  const { address, port, family } = server.address() as AddressInfo;
  const closeOnce = async () => {
    const closed = new Promise<void>((done) => server.close(() => done()));
    stopping.abort();
    const ended = Promise.all([...listening, invoker.idle()]).then(() => true);
    const late = delay(graceMs, false, { ref: false });
    if (!(await Promise.race([ended, late]))) {
      log('warning', 'host', `functions or triggers had not ended after ${graceMs} ms; they are left behind`);
    }
    await app.runHooks('appTerminate', { hookData: {} });
    // Answers under way still go out; a connection that lingers does not hold up the stop.
    server.closeIdleConnections();
    await Promise.race([closed, delay(500, undefined, { ref: false })]);
    server.closeAllConnections();
    await closed;
  };
  let closing: Promise<void> | undefined;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    keys,
    functions: ready.map((one) => one.info),
    run,
    close: () => {
      closing ??= closeOnce();
      return closing;
    },
  };
}

interface PrepareContext {
  settings: Settings;
  hostJson: HostJson;
  options: HostOptions;
  invoker: ReturnType<typeof createInvoker>;
  log: WriteLog;
}

async function prepare(loaded: LoadedFunction, context: PrepareContext): Promise<Ready> {
  const { settings, hostJson, options, invoker, log } = context;
  const disabled = isDisabled(loaded.name, settings);
  const base = { name: loaded.name, type: loaded.trigger.type, ...(disabled ? { disabled: true as const } : {}) };
  try {
    if (disabled && base.type !== 'httpTrigger') return { info: base, target: loaded };
    const target = { ...loaded, trigger: resolveBinding(loaded.name, loaded.trigger, settings) };
    const ready: Ready = { info: base, target };
    const triggerOptions = { settings, invoker, log };
    if (loaded.metadata.retryOptions) log('warning', loaded.name, 'the local host does not apply its retry policy');

    switch (base.type) {
      case 'httpTrigger': {
        const http = toHttpFunction(target, hostJson.extensions.http.routePrefix);
        ready.http = http;
        ready.info = { ...base, route: http.template, methods: http.methods, authLevel: http.authLevel };
        break;
      }
      case 'timerTrigger': {
        const timer: TimerFunction = toTimerFunction(target);
        if (options.timers !== false) ready.listen = (signal) => runTimer(timer, invoker, signal);
        ready.byHand = () => ({ data: timerData(timer, new Date()) });
        break;
      }
      case 'queueTrigger': {
        const longestPoll = options.longestQueuePoll ?? 1000;
        const queues = hostJson.extensions.queues;
        ready.listen = (await createQueueTrigger(target, { ...triggerOptions, options: queues, longestPoll })).listen;
        ready.byHand = (input) => queueInvocation(toText(input));
        break;
      }
      case 'serviceBusTrigger': {
        const serviceBus = hostJson.extensions.serviceBus;
        ready.listen = (await createServiceBusTrigger(target, { ...triggerOptions, options: serviceBus })).listen;
        ready.byHand = (input) => serviceBusInvocation(toText(input));
        break;
      }
      default:
        throw new Error(`the trigger "${base.type}" is unknown to the local host.`);
    }
    return ready;
  } catch (cause) {
    const text = describe(cause);
    throw new Error(text.includes(`"${loaded.name}"`) ? text : `Function "${loaded.name}": ${text}`, { cause });
  }
}

/** The input of a run by hand, as text: a string as it is, anything else as JSON. */
function toText(input: unknown): string {
  if (input === undefined) return '';
  return typeof input === 'string' ? input : JSON.stringify(input);
}
