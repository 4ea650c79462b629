/**
 * Loads the function app whose entry is the first argument as the Functions worker does, and tells what that took, as JSON: `ms`
 * for the entry and all it requires, `rss` in bytes afterwards, the names of the functions and of the files that were loaded.
 * Plain JavaScript, so that nothing else is loaded into the process.
 */
const Module = require('node:module');
const { basename } = require('node:path');
const { performance } = require('node:perf_hooks');

const functions = [];
class Disposable {
  dispose() {}
}
let model;
// What local/host/core.ts describes.
const core = {
  version: '3.10.0',
  hostVersion: '4.1036.0',
  Disposable,
  log() {},
  setProgrammingModel(given) {
    model = given;
  },
  getProgrammingModel: () => model,
  registerHook: () => new Disposable(),
  registerFunction(metadata) {
    functions.push(metadata.name);
    return new Disposable();
  },
};
const original = Module.prototype.require;
Module.prototype.require = function (id) {
  return id === '@azure/functions-core' ? core : original.call(this, id);
};

const before = new Set(Object.keys(require.cache));
const began = performance.now();
require(process.argv[2]);
const ms = performance.now() - began;
const { rss } = process.memoryUsage();
const files = Object.keys(require.cache)
  .filter((file) => !before.has(file))
  .map((file) => basename(file));
process.stdout.write(JSON.stringify({ ms, rss, functions, files }), () => process.exit(0));
