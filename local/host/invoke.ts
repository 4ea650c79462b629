/** Runs functions the way the Node worker does, and knows which runs are under way. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { LogLevel } from '@azure/functions';
import { type App, describe, type LoadedFunction } from './app.ts';
import type { CoreInvocationContext, InvocationResponse, LogCategory, TypedData } from './core.ts';

/** What a trigger hands to a function. */
export interface Invocation {
  data: TypedData;
  metadata?: Record<string, TypedData>;
  /** W3C trace context of whatever caused the run; a new trace is begun without it. */
  traceParent?: string | undefined;
  traceState?: string | undefined;
}

export interface Invoker {
  /** Runs the function to its end. Throws what the function, or a hook, threw. */
  invoke(target: LoadedFunction, invocation: Invocation): Promise<InvocationResponse>;
  /** Waits until nothing runs. */
  idle(): Promise<void>;
}

export type WriteLog = (level: LogLevel, source: string, message: string) => void;

/** Builds the invoker of `app`; `log` receives the functions' own lines and the host's word on every failure. */
export function createInvoker(app: App, log: WriteLog): Invoker {
  const running = new Set<Promise<unknown>>();

  return {
    invoke: (target, invocation) => {
      const run = runOnce(app, log, target, invocation);
      running.add(run);
      const forget = () => running.delete(run);
      run.then(forget, forget);
      return run;
    },
    idle: async () => {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

async function runOnce(
  app: App,
  log: WriteLog,
  target: LoadedFunction,
  invocation: Invocation,
): Promise<InvocationResponse> {
  const invocationId = randomUUID();
  let invocationContext: unknown;
  const coreContext: CoreInvocationContext = {
    invocationId,
    metadata: target.metadata,
    request: {
      invocationId,
      inputData: [{ name: target.triggerName, data: invocation.data }],
      triggerMetadata: { ...invocation.metadata, ...systemMetadata(target.name) },
      traceContext: {
        traceParent: invocation.traceParent ?? newTraceParent(),
        traceState: invocation.traceState ?? '',
      },
    },
    log: (level, category, message) => {
      const line: {
        hookData: object;
        level: LogLevel;
        category: LogCategory;
        message: string;
        invocationContext: unknown;
      } = { hookData: {}, level, category, message, invocationContext };
      app.runLogHooks(line);
      log(line.level, target.name, line.message);
    },
  };

  // This order is the worker's (its InvocationHandler): pre hooks may swap inputs and handler, post hooks result and error.
  try {
    const model = app.model.getInvocationModel(coreContext);
    const { context, inputs } = await model.getArguments();
    invocationContext = context;
    const hookData = {};
    const before = { hookData, invocationContext: context, inputs, functionCallback: target.callback };
    await inState(coreContext, 'preInvocationHooks', () => app.runHooks('preInvocation', before));

    const after: { hookData: object; invocationContext: unknown; inputs: unknown[]; result: unknown; error: unknown } =
      {
        hookData,
        invocationContext: context,
        inputs: before.inputs,
        result: null,
        error: null,
      };
    await inState(coreContext, 'invocation', async () => {
      try {
        after.result = await model.invokeFunction(context, before.inputs, before.functionCallback);
      } catch (error) {
        after.error = error ?? new Error('The function threw nothing.');
      }
    });
    await inState(coreContext, 'postInvocationHooks', () => app.runHooks('postInvocation', after));
    if (after.error !== null && after.error !== undefined) throw after.error;
    return await model.getResponse(context, after.result);
  } catch (error) {
    log('error', target.name, `failed: ${describe(error)}`);
    throw error;
  }
}

async function inState(
  context: CoreInvocationContext,
  state: CoreInvocationContext['state'],
  work: () => Promise<void>,
): Promise<void> {
  context.state = state;
  try {
    await work();
  } finally {
    context.state = undefined;
  }
}

/** The host's `sys` binding data, which reaches every function that is not HTTP or timer as `triggerMetadata.sys`. */
function systemMetadata(name: string): Record<string, TypedData> {
  const sys = { MethodName: name, UtcNow: new Date().toISOString(), RandGuid: randomUUID() };
  return { sys: { json: JSON.stringify(sys) } };
}

function newTraceParent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
}
