/**
 * The contract between `@azure/functions` and the process that runs it. In Azure the Node worker offers it as the built-in
 * module `@azure/functions-core`; the library looks that module up once, with `require`, and falls into its test mode when
 * it is missing. Only the parts this host uses are typed here (seen in the library's source, version 4.16).
 */
import Module from 'node:module';
import type { HttpRequest, InvocationContext, LogLevel } from '@azure/functions';

/** One value on its way between host and function; exactly one member is set. */
export interface TypedData {
  string?: string;
  json?: string;
  bytes?: Uint8Array;
  int?: number;
  double?: number;
  http?: HttpData;
}

/** An HTTP request on its way in, or a response on its way out. */
export interface HttpData {
  method?: string;
  url?: string;
  nullableHeaders?: Record<string, { value: string }>;
  nullableQuery?: Record<string, { value: string }>;
  nullableParams?: Record<string, { value: string }>;
  statusCode?: string;
  headers?: Record<string, string>;
  cookies?: HttpCookie[];
  body?: TypedData;
}

/** A response cookie as the library hands it over. */
export interface HttpCookie {
  name: string;
  value: string;
  domain?: { value: string };
  path?: { value: string };
  expires?: { value: { seconds: number } };
  secure?: { value: boolean };
  httpOnly?: { value: boolean };
  sameSite?: 'none' | 'lax' | 'strict' | 'explicitNone';
  maxAge?: { value: number };
}

/** A trigger, input or output binding: its own options lie beside `type` and `direction`. */
export interface Binding extends Record<string, unknown> {
  type: string;
  direction: 'in' | 'out';
}

export interface FunctionMetadata {
  name: string;
  bindings: Record<string, Binding>;
  retryOptions?: unknown;
}

export type Callback = (...args: unknown[]) => unknown;

export interface InvocationRequest {
  invocationId: string;
  inputData: { name: string; data: TypedData }[];
  triggerMetadata: Record<string, TypedData>;
  traceContext: { traceParent: string; traceState: string };
}

export interface InvocationResponse {
  outputData?: { name: string; data: TypedData }[];
  returnValue?: TypedData | null;
}

export interface CoreInvocationContext {
  invocationId: string;
  request: InvocationRequest;
  metadata: FunctionMetadata;
  state?: 'preInvocationHooks' | 'invocation' | 'postInvocationHooks' | undefined;
  log(level: LogLevel, category: LogCategory, message: string): void;
}

export type LogCategory = 'user' | 'system' | 'customMetric';

export interface InvocationModel {
  getArguments(): Promise<{ context: InvocationContext; inputs: (HttpRequest | unknown)[] }>;
  invokeFunction(context: InvocationContext, inputs: unknown[], callback: Callback): Promise<unknown>;
  getResponse(context: InvocationContext, result: unknown): Promise<InvocationResponse>;
}

export interface ProgrammingModel {
  name: string;
  version: string;
  getInvocationModel(context: CoreInvocationContext): InvocationModel;
  getCapabilities(capabilities: Record<string, string>): Promise<Record<string, string>>;
}

/** What the library calls while an app loads and runs. */
export interface CoreApi {
  version: string;
  hostVersion: string;
  setProgrammingModel(model: ProgrammingModel): void;
  getProgrammingModel(): ProgrammingModel | undefined;
  registerHook(name: string, callback: Callback): Disposable;
  registerFunction(metadata: FunctionMetadata, callback: Callback): Disposable;
  log(level: LogLevel, category: LogCategory, message: string): void;
  Disposable: typeof Disposable;
}

/** Undoes a registration. */
export class Disposable {
  #undo: () => void;

  constructor(undo: () => void) {
    this.#undo = undo;
  }

  static from(...all: { dispose(): unknown }[]): Disposable {
    return new Disposable(() => {
      for (const one of all) one.dispose();
    });
  }

  dispose(): void {
    this.#undo();
    this.#undo = () => {};
  }
}

let installed = false;

/**
 * Makes `require('@azure/functions-core')` answer `api` in this process. Must run before `@azure/functions` is first used,
 * since the library keeps what it found. Works for CommonJS and for ES modules, because the library itself is CommonJS.
 *
 * @throws when a host is already installed: the library keeps its registrations for the life of the process.
 */
export function installCoreModule(api: CoreApi): void {
  if (installed) {
    throw new Error(
      'A host already runs in this process. @azure/functions can load one app a process: start another one.',
    );
  }
  installed = true;
  const prototype = Module.prototype as unknown as { require(this: unknown, id: string): unknown };
  const original = prototype.require;
  prototype.require = function require(id) {
    return id === '@azure/functions-core' ? api : original.call(this, id);
  };
}
