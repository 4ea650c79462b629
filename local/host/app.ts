/** Loads a function app and keeps what it registered. */
import { pathToFileURL } from 'node:url';
import type { LogLevel } from '@azure/functions';
import {
  type Binding,
  type Callback,
  type CoreApi,
  Disposable,
  type FunctionMetadata,
  installCoreModule,
  type LogCategory,
  type ProgrammingModel,
} from './core.ts';

const hookNames = ['appStart', 'appTerminate', 'preInvocation', 'postInvocation', 'log'] as const;
export type HookName = (typeof hookNames)[number];

/** A registered function with its trigger picked out. */
export interface LoadedFunction {
  name: string;
  metadata: FunctionMetadata;
  callback: Callback;
  triggerName: string;
  trigger: Binding;
}

/** Writes one log line of the app or of the host about it. */
export type AppLog = (level: LogLevel, category: LogCategory, message: string) => void;

export interface App {
  functions: LoadedFunction[];
  model: ProgrammingModel;
  runHooks(name: HookName, context: object): Promise<void>;
  /** Log hooks may change level and message before the line is written. They are synchronous. */
  runLogHooks(context: object): void;
}

/**
 * Loads the app whose entry is `entry` (absolute path; ES module, TypeScript or CommonJS).
 *
 * @throws Error naming the function and the reason when the entry throws, a registration is invalid, or nothing registers.
 *   The real worker answers such an app with zero functions and no error, which Azure shows as an empty app.
 */
export async function loadApp(entry: string, log: AppLog): Promise<App> {
  const hooks = new Map<HookName, Callback[]>(hookNames.map((name) => [name, []]));
  const functions = new Map<string, LoadedFunction>();
  let model: ProgrammingModel | undefined;
  let loading = true;

  const hooksOf = (name: HookName): Callback[] => hooks.get(name) ?? [];
  const api: CoreApi = {
    version: '3.10.0',
    hostVersion: '4.1036.0',
    Disposable,
    log,
    setProgrammingModel: (given) => {
      model = given;
    },
    getProgrammingModel: () => model,
    registerHook: (name, callback) => {
      const known = hookNames.find((one) => one === name);
      // The library probes for newer hooks this way: a RangeError marked as the system's means "not offered here".
      if (!known) {
        throw Object.assign(new RangeError(`Unrecognized hook "${name}"`), { isAzureFunctionsSystemError: true });
      }
      const list = hooksOf(known);
      list.push(callback);
      return new Disposable(() => void list.splice(list.indexOf(callback), 1));
    },
    registerFunction: (metadata, callback) => {
      if (!loading) throw new Error('A function can only be registered during app startup.');
      const loaded = toLoadedFunction(metadata, callback);
      const key = loaded.name.toLowerCase();
      if (functions.has(key)) throw new Error(`A function named "${loaded.name}" has already been registered.`);
      functions.set(key, loaded);
      return new Disposable(() => void functions.delete(key));
    },
  };
  installCoreModule(api);

  try {
    await import(pathToFileURL(entry).href);
  } catch (cause) {
    throw new Error(`The app's entry ${entry} failed to load: ${describe(cause)}`, { cause });
  }
  if (functions.size === 0 || !model) {
    throw new Error(`The app's entry ${entry} registered no functions.`);
  }

  const app: App = {
    functions: [...functions.values()],
    model,
    runHooks: async (name, context) => {
      for (const hook of hooksOf(name)) await hook(context);
    },
    runLogHooks: (context) => {
      for (const hook of hooksOf('log')) hook(context);
    },
  };
  await app.runHooks('appStart', { hookData: {} });
  loading = false;
  // Asking for the capabilities also locks `app.setup`, as in Azure.
  const capabilities = await model.getCapabilities({});
  if (capabilities.HttpUri) {
    throw new Error('app.setup({ enableHttpStream: true }) is not supported by the local host; bodies are buffered.');
  }
  return app;
}

function toLoadedFunction(metadata: FunctionMetadata, callback: Callback): LoadedFunction {
  const { name } = metadata;
  // The rule for names is the real host's.
  if (!/^[a-z][a-z0-9_-]{0,127}$/i.test(name) || name.toLowerCase() === 'host') {
    throw new Error(`"${name}" is not a valid function name: a letter, then letters, digits, "_" or "-", at most 128.`);
  }
  if (typeof callback !== 'function') throw new Error(`The handler of function "${name}" is not a function.`);
  const trigger = Object.entries(metadata.bindings).find(([, binding]) => /trigger$/i.test(binding.type));
  if (!trigger) throw new Error(`Function "${name}" has no trigger.`);
  for (const [bindingName, binding] of Object.entries(metadata.bindings)) {
    const isTrigger = bindingName === trigger[0];
    const isHttpResponse = binding.direction === 'out' && binding.type.toLowerCase() === 'http';
    if (!isTrigger && !isHttpResponse) {
      throw new Error(
        `Function "${name}" has the binding "${binding.type}" (${binding.direction}), unknown to this host.`,
      );
    }
  }
  return { name, metadata, callback, triggerName: trigger[0], trigger: trigger[1] };
}

/** The text of anything thrown, with its causes. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.message || error.name;
  return error.cause === undefined || own.includes(describe(error.cause)) ? own : `${own} (${describe(error.cause)})`;
}
