/**
 * Ajv, loaded when the first schema is made ready: a catalog without schemas, which most are, must not wait for it at every start.
 * CommonJS, because only its `require` loads at a time of its own choosing without making the whole start wait for a promise.
 */
exports.loadAjv = () => require('./ajv.cjs');
