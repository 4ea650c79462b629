/** The two versions of Ajv. */
export function loadAjv(): {
  Ajv: typeof import('ajv').Ajv;
  Ajv2020: typeof import('ajv/dist/2020.js').Ajv2020;
};
