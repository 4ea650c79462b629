/**
 * `npm run build`: the app as CommonJS in `dist/`. `main.js`, `start.js` and the few files it requires are what a start loads: the functions'
 * names and triggers, the catalog and its schema. Everything else is in files that are loaded when they are first needed (the
 * office's work, the AMQP libraries, storage, identity, telemetry): what is loaded is also parsed, and of 3 MB that takes as
 * long as all the rest of a start. No file is loaded from node_modules.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type BuildOptions, build, type Metafile, type Plugin, type TransformOptions, transform } from 'esbuild';
import { z } from 'zod';
import { runCommand } from './cli/commandLine.ts';
import {
  APART,
  FUNCTIONS_LIBRARY,
  functionsLibraryApart,
  leaveOut,
  loadedApart,
  oneCopy,
  routesWrittenDown,
  zodInParts,
} from './packaging/plugins.ts';

const ROOT = import.meta.dirname;
const require = createRequire(import.meta.url);

/** What was built. */
export interface Bundle {
  /** Absolute path of `main.js`. */
  readonly file: string;
  /** Names of all files that belong to the package, `main.js` and `package.json` included. */
  readonly files: readonly string[];
  /** All of them together. */
  readonly bytes: number;
}

/** Builds the app into `folder`, which is emptied first. host.json and catalog.json are looked for in the folder above it. */
export async function buildApp(folder: string): Promise<Bundle> {
  const { ROUTE_TABLE } = await import('./functions/routeTable.ts');
  return bundle(join(ROOT, 'functions/index.ts'), folder, ROUTE_TABLE);
}

/** Bundles the function app behind `entry` as ours is bundled. */
export async function bundle(entry: string, folder: string, routes: readonly unknown[] = []): Promise<Bundle> {
  const target = resolve(folder);
  const { outputFiles, metafile } = await build({
    ...OPTIONS,
    entryPoints: { start: entry },
    outdir: target,
    plugins: [
      routesWrittenDown(ROOT, routes),
      functionsLibraryApart,
      loadedApart,
      leaveOut,
      oneCopy(ROOT),
      zodInParts(ROOT),
    ],
  });
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  // package.json says "module" for the sources; the bundle is not one.
  const files = new Map([['package.json', '{ "type": "commonjs" }\n']]);
  for (const { path, text } of outputFiles) {
    const name = basename(path);
    files.set(name, name.endsWith('.js') ? await toCommonJs(text, ownShare(metafile, name)) : text);
  }
  files.set('main.js', await bundleMain());
  files.set('unhealthy.js', await bundleApart('functions/unhealthy.ts', LOAD_TARGET, [functionsLibraryApart]));
  files.set(FUNCTIONS_LIBRARY, await bundleApart(require.resolve('@azure/functions'), LOAD_TARGET));
  for (const file of APART) {
    const name = basename(file).replace(/cjs$/, 'js');
    if (![...files.values()].some((text) => text.includes(`"./${name}"`))) continue;
    files.set(name, await bundleApart(file));
  }
  for (const [name, text] of files) await writeFile(join(target, name), text);
  const names = [...files.keys()].filter((name) => !name.endsWith('.txt'));
  const bytes = names.reduce((sum, name) => sum + Buffer.byteLength(files.get(name) ?? ''), 0);
  return { file: join(target, 'main.js'), files: names.toSorted(), bytes };
}

const OPTIONS = {
  bundle: true,
  write: false,
  metafile: true,
  absWorkingDir: ROOT,
  platform: 'node',
  target: 'node22',
  // Only ES modules can be split; they are made CommonJS afterwards, which loads faster and is what the worker's hook is made for.
  format: 'esm',
  splitting: true,
  chunkNames: '[name]-[hash]',
  mainFields: ['module', 'main'],
  minifySyntax: true,
  // The Functions worker gives it to the app; there is no such package to install.
  external: ['@azure/functions-core'],
  // A CommonJS file has no import.meta; its own address is what the sources mean by it.
  define: { 'import.meta.url': 'bundleUrl' },
  legalComments: 'external',
  logLevel: 'warning',
} as const satisfies BuildOptions;

/** The oldest Node.js that has to come as far as saying that it is too old. */
const LOAD_TARGET = 'node18';

/** The file that a package begins with. It asks for the others by their names. */
async function bundleMain(): Promise<string> {
  const { code } = await transform(await readFile(join(ROOT, 'packaging/main.cjs'), 'utf8'), {
    format: 'cjs',
    platform: 'node',
    target: LOAD_TARGET,
    define: { OLDEST_NODE: String(await oldestNode()) },
  });
  return code;
}

/** The oldest major version of Node.js that package.json promises. */
async function oldestNode(): Promise<number> {
  const { engines } = z
    .object({ engines: z.object({ node: z.string().regex(/^>=\d+$/) }) })
    .parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
  return Number(engines.node.slice(2));
}

/** A file in CommonJS with all that it requires. */
async function bundleApart(
  file: string,
  oldest: string = OPTIONS.target,
  plugins: readonly Plugin[] = [],
): Promise<string> {
  const { splitting: _s, chunkNames: _c, metafile: _m, define: _d, mainFields: _f, ...options } = OPTIONS;
  const { outputFiles } = await build({
    ...options,
    target: oldest,
    entryPoints: [resolve(ROOT, file)],
    plugins: [...plugins],
    format: 'cjs',
    minifyWhitespace: true,
    minifyIdentifiers: true,
    keepNames: true,
    legalComments: 'inline',
  });
  return outputFiles[0]?.text ?? '';
}

const BUNDLE_URL = 'const bundleUrl = require("node:url").pathToFileURL(__filename).href;';

/** What is ours stays readable, since nobody has a source map where it fails; names stay everywhere, as stacks show them. */
async function toCommonJs(text: string, own: number): Promise<string> {
  const ours: TransformOptions = {};
  const mixed: TransformOptions = { minifyWhitespace: true };
  const theirs: TransformOptions = { minifyWhitespace: true, minifyIdentifiers: true, keepNames: true };
  const { code } = await transform(text, {
    format: 'cjs',
    platform: 'node',
    target: 'node22',
    supported: { 'dynamic-import': false },
    minifySyntax: true,
    ...(own > 0.5 ? ours : own > 0 ? mixed : theirs),
    ...(/\bbundleUrl\b/.test(text) && { banner: BUNDLE_URL }),
  });
  return code;
}

/** How much of a file comes from the office's own sources, 0 to 1. */
function ownShare({ outputs }: Metafile, name: string): number {
  const inputs = Object.entries(outputs).find(([path]) => basename(path) === name)?.[1].inputs ?? {};
  const bytes = (ours: boolean) =>
    Object.entries(inputs)
      .filter(([path]) => /^(functions|shared)\//.test(path) === ours)
      .reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0);
  const own = bytes(true);
  return own === 0 ? 0 : own / (own + bytes(false));
}

if (import.meta.main) {
  const usage = 'usage: npm run build\n  builds the app as it is deployed into dist/, which is emptied first';
  process.exitCode = await runCommand(usage, process.argv.slice(2), async (args) => {
    parseArgs({ args, options: {} });
    const { file, files, bytes } = await buildApp(join(ROOT, 'dist'));
    console.log(`${file} and ${files.length - 1} files beside it: ${(bytes / 1e6).toFixed(2)} MB`);
    return 0;
  });
}
