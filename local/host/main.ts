/**
 * The local host as a process:
 *
 *     node local/host/main.ts --root . --entry functions/index.ts [--port 0] [--hostname 127.0.0.1] [--settings file.json]
 *       [--keys file.json] [--no-timers] [--exit-with-parent]
 *
 * Prints one line of JSON on stdout once it is open, `{"ready":true,"url":...,"keys":...,"functions":[...]}`; everything
 * else, the app's own output included, goes to stderr. Exits with 1 and the reason when the app does not load. Stops on
 * SIGTERM and SIGINT, and with `--exit-with-parent` when its stdin closes, so that a killed parent leaves no orphan.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { readJson } from '../../cli/jsonFile.ts';
import { type HostOptions, parseKeys, startHost } from './index.ts';

async function readOptions(): Promise<HostOptions & { exitWithParent: boolean }> {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      root: { type: 'string', default: '.' },
      entry: { type: 'string' },
      port: { type: 'string', default: '0' },
      hostname: { type: 'string', default: '127.0.0.1' },
      settings: { type: 'string' },
      keys: { type: 'string' },
      timers: { type: 'boolean', default: true },
      'exit-with-parent': { type: 'boolean', default: false },
    },
  });
  if (!values.entry) throw new Error('--entry is missing: the path of the app, such as functions/index.ts.');
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`--port ${values.port} is not a port.`);
  const root = resolve(values.root);
  return {
    root,
    entry: values.entry,
    port,
    hostname: values.hostname,
    timers: values.timers,
    exitWithParent: values['exit-with-parent'],
    ...(values.settings ? { settings: parseSettings(await readJson(resolve(values.settings))) } : {}),
    ...(values.keys ? { keys: parseKeys(await readJson(resolve(values.keys))) } : {}),
  };
}

function parseSettings(value: unknown): Record<string, string> {
  const parsed = z.record(z.string(), z.string()).safeParse(value);
  if (!parsed.success) throw new Error(`--settings must be a table of strings: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

async function main(): Promise<void> {
  // Stdout belongs to the ready line alone; what the app prints is log.
  const writeReady = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;

  const { exitWithParent, ...options } = await readOptions();
  // The worker makes the app's folder the current one before it loads the app.
  process.chdir(options.root);
  const starting = startHost({ ...options, log: (line) => process.stderr.write(`${line}\n`) });

  const stop = async () => {
    const host = await starting.catch(() => undefined);
    await host?.close();
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  if (exitWithParent) process.stdin.resume().once('close', stop).once('end', stop);

  const host = await starting;
  writeReady(`${JSON.stringify({ ready: true, url: host.url, keys: host.keys, functions: host.functions })}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
