/** Paths to one value in a JSON body: `order.lines[0].sku`, `$.order["odd name"]`. No wildcards: a path is as many steps as it has. */

/** A name or an index, step by step. */
export type JsonPath = readonly (string | number)[];

const MAX_STEPS = 32;

/** Parses a path; `undefined` when it is none. */
export function parseJsonPath(text: string): JsonPath | undefined {
  const steps: (string | number)[] = [];
  let rest = text.startsWith('$') ? text.slice(1) : text === '' || text.startsWith('[') ? text : `.${text}`;
  while (rest !== '') {
    const match =
      /^\.([A-Za-z_$][\w$-]{0,255})/.exec(rest) ?? /^\[(\d{1,9})\]/.exec(rest) ?? /^\["([^"\\]{1,256})"\]/.exec(rest);
    if (match?.[1] === undefined || steps.length >= MAX_STEPS) return undefined;
    steps.push(match[0].startsWith('[') && !match[0].startsWith('["') ? Number(match[1]) : match[1]);
    rest = rest.slice(match[0].length);
  }
  return steps.length === 0 ? undefined : steps;
}

/** The value there, or `undefined`. Only own fields are followed. */
export function valueAt(json: unknown, path: JsonPath): unknown {
  let value = json;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof step === 'number'))
      return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}
