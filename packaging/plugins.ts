/** How the build resolves and reads what the app is made of. */
import { readFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { Plugin } from 'esbuild';
import { isLeftOut, standIn } from './leftOut.ts';

/** Leaves out what the app never comes to. */
export const leaveOut: Plugin = {
  name: 'leave-out',
  setup(build) {
    build.onResolve({ filter: /^[a-z@]/ }, ({ path }) =>
      isLeftOut(path) ? { path, namespace: 'left-out' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({ contents: standIn(path), loader: 'js' }));
    // The machine's id is not for telemetry, and would be read with a program of the system.
    build.onLoad({ filter: /[\\/]machine-id[\\/]getMachineId\.js$/ }, () => ({
      contents: 'export const getMachineId = async () => undefined;',
      loader: 'js',
    }));
  },
};

/** Families of packages of which the tree has copies in two module formats or in neighbouring versions. */
const FAMILIES = /^@(azure|typespec|opentelemetry)\//;
/** Exact pins bring these in two or three versions of the same minor line; the app's own tree has the newest. */
const VERSIONED =
  /^@opentelemetry\/(api-logs|context-async-hooks|core|instrumentation|resources|sdk-logs|sdk-metrics|sdk-trace|sdk-trace-base|sdk-trace-node|semantic-conventions)$/;

/** One copy of each package: what CommonJS asks for with `require` is given the ES module that the others have. */
export function oneCopy(root: string): Plugin {
  const again = Symbol('resolved by this plugin');
  return {
    name: 'one-copy',
    setup(build) {
      build.onResolve({ filter: FAMILIES }, async ({ path, kind, importer, resolveDir, pluginData }) => {
        if (pluginData === again || path.startsWith('@azure/functions')) return undefined;
        const found = await build.resolve(path, {
          kind: kind === 'require-call' || kind === 'require-resolve' ? 'import-statement' : kind,
          importer,
          resolveDir: VERSIONED.test(path) ? root : resolveDir,
          pluginData: again,
        });
        if (found.errors.length > 0) return undefined;
        return { path: found.path, sideEffects: found.sideEffects, external: found.external };
      });
    },
  };
}

/**
 * Imports zod as a namespace, of which what is not used can be dropped: `{ z }` is one object with everything, languages of
 * messages included, and takes three times as long to load.
 */
export function zodInParts(root: string): Plugin {
  return {
    name: 'zod-in-parts',
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        if (!path.startsWith(root) || path.includes(`${sep}node_modules${sep}`)) return undefined;
        const text = await readFile(path, 'utf8');
        return { contents: text.replace("import { z } from 'zod';", "import * as z from 'zod';"), loader: 'ts' };
      });
    },
  };
}

/** Puts the table of routes in place of the file that makes it, so that a start does not load every route. */
export function routesWrittenDown(root: string, table: readonly unknown[]): Plugin {
  const file = join(root, 'functions', 'routeTable.ts');
  return {
    name: 'routes-written-down',
    setup(build) {
      build.onLoad({ filter: /routeTable\.ts$/ }, ({ path }) =>
        path === file ? { contents: `export const ROUTE_TABLE = ${JSON.stringify(table)};`, loader: 'js' } : undefined,
      );
    },
  };
}

/** The library of Azure Functions in the package: what a start needs and what says why there is none share it. */
export const FUNCTIONS_LIBRARY = 'azureFunctions.js';

/** Leaves the library of Azure Functions to the file that has it. */
export const functionsLibraryApart: Plugin = {
  name: 'functions-library-apart',
  setup(build) {
    build.onResolve({ filter: /^@azure\/functions$/ }, () => ({ path: `./${FUNCTIONS_LIBRARY}`, external: true }));
  },
};

/** Files in CommonJS that are loaded by a `require` where they are needed; each becomes a file beside the others. */
export const APART = ['shared/classify/ajv.cjs'];

/** Leaves the `require` of a file that is loaded apart as it is. */
export const loadedApart: Plugin = {
  name: 'loaded-apart',
  setup(build) {
    build.onResolve({ filter: /^\.\/.*\.cjs$/ }, ({ path, kind }) =>
      kind === 'require-call' && APART.some((file) => file.endsWith(path.slice(1)))
        ? { path: path.replace(/cjs$/, 'js'), external: true }
        : undefined,
    );
  },
};
