/**
 * `npm run build`: the app as one CommonJS file, `dist/main.js`. A function app starts by reading its files from a network
 * share; one file instead of some thousands is most of a cold start.
 */
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const ROOT = import.meta.dirname;

/** What was built. */
export interface Bundle {
  /** Absolute path of `main.js`. */
  readonly file: string;
  readonly bytes: number;
}

/** Builds the app into `folder`, which is emptied first. host.json and catalog.json are looked for in the folder above it. */
export async function buildApp(folder: string): Promise<Bundle> {
  const target = resolve(folder);
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  const file = join(target, 'main.js');
  await build({
    entryPoints: [join(ROOT, 'functions/index.ts')],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node22',
    format: 'cjs',
    // The Functions worker gives it to the app; there is no such package to install.
    external: ['@azure/functions-core'],
    // A CommonJS file has no import.meta; its own address is what the sources mean by it.
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: 'const bundleUrl = require("node:url").pathToFileURL(__filename).href;' },
    sourcemap: true,
    sourcesContent: false,
    legalComments: 'external',
    logLevel: 'warning',
  });
  // package.json says "module" for the sources; the bundle is not one.
  await writeFile(join(target, 'package.json'), '{ "type": "commonjs" }\n');
  return { file, bytes: (await stat(file)).size };
}

if (import.meta.main) {
  const { file, bytes } = await buildApp(join(ROOT, 'dist'));
  console.log(`${file}: ${(bytes / 1_048_576).toFixed(2)} MiB`);
}
