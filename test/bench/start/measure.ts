import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Bundle, buildApp, bundle } from '../../../build.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

/** What loading an app took: milliseconds, and bytes of memory of the process afterwards. */
const loadSchema = z.object({
  ms: z.number(),
  rss: z.number(),
  functions: z.array(z.string()),
  files: z.array(z.string()),
});
export type Load = z.infer<typeof loadSchema>;

/** Settings with which the app finds everything it asks for at its start, and connects to nothing. */
const SETTINGS = {
  AzureWebJobsStorage: 'UseDevelopmentStorage=true',
  ServiceBusConnection:
    'Endpoint=sb://127.0.0.1;SharedAccessKeyName=k;SharedAccessKey=a2V5;UseDevelopmentEmulator=true',
};

/** The office and the smallest function apps, built alike, each in a folder as it is deployed. */
export interface Apps {
  readonly office: Bundle;
  readonly hello: Bundle;
  readonly helloZod: Bundle;
  remove(): Promise<void>;
}

export async function buildApps(): Promise<Apps> {
  const folder = await mkdtemp(join(tmpdir(), 'office-start-'));
  const small = (name: string) => bundle(join(import.meta.dirname, `${name}.ts`), join(folder, name, 'dist'));
  const office = join(folder, 'office');
  await mkdir(office);
  for (const file of ['host.json', 'package.json', 'catalog.json']) await cp(join(ROOT, file), join(office, file));
  return {
    office: await buildApp(join(office, 'dist')),
    hello: await small('hello'),
    helloZod: await small('hello-zod'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Loads an app in a process of its own, which sees no other settings than those of the test. */
export async function load({ file }: Bundle): Promise<Load> {
  const script = join(import.meta.dirname, 'load.cjs');
  const env = { PATH: process.env.PATH, ...SETTINGS };
  const { stdout } = await promisify(execFile)(process.execPath, [script, file], { env });
  return loadSchema.parse(JSON.parse(stdout.slice(stdout.indexOf('{'))));
}
