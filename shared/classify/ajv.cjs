/** Ajv as the app uses it; a file of its own in the package, so that a start need not read it. */
exports.Ajv = require('ajv').Ajv;
exports.Ajv2020 = require('ajv/dist/2020.js').Ajv2020;
