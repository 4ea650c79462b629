/**
 * Loads the function app whose entry is the first argument as the Functions worker does, and tells what that took, as JSON: `ms`
 * for the entry and all it requires, `rss` in bytes afterwards, the names of the functions and of the files that were loaded.
 * With a function's name as the second argument also what it answers, as `health` or whatever its name is. Plain JavaScript, so that
 * nothing else is loaded into the process.
 */
const Module = require('node:module');
const { basename } = require('node:path');
const { performance } = require('node:perf_hooks');

const functions = [];
const callbacks = new Map();
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
  registerFunction(metadata, callback) {
    functions.push(metadata.name);
    callbacks.set(metadata.name, callback);
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
(async () => {
  const [, , , asked] = process.argv;
  const answer = asked && { [asked]: await callbacks.get(asked)({}, { invocationId: 'request' }) };
  process.stdout.write(JSON.stringify({ ms, rss, functions, files, ...answer }), () => process.exit(0));
})();
