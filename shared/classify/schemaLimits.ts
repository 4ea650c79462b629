/** What a JSON Schema in the catalog may not have, because a hostile body could make it take long. */

const MAX_SCHEMAS = 2000;

const REFUSED = ['$dynamicRef', '$recursiveRef', '$async'] as const;

/** Keywords whose value maps names to schemas. */
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', 'dependencies'] as const;
/** Keywords whose value is data, or definitions that count where they are referred to. */
const NO_SCHEMAS = ['enum', 'const', 'default', 'examples', '$defs', 'definitions'];

/** What is wrong with a schema, or `undefined`. */
export function schemaProblem(root: Record<string, unknown>): string | undefined {
  let parts = 0;
  const following = new Set<string>();

  const look = (value: unknown, path: string): string | undefined => {
    if (++parts > MAX_SCHEMAS) return `is too large: more than ${MAX_SCHEMAS} parts, references followed`;
    if (Array.isArray(value))
      return firstOf(
        value.map((item, i) => [item, `${path}[${i}]`] as const),
        look,
      );
    if (typeof value !== 'object' || value === null) return undefined;
    const schema = value as Readonly<Record<string, unknown>>;
    const { $ref } = schema;
    return (
      ownProblem(schema, path) ??
      (typeof $ref === 'string' ? follow($ref, at(path, '$ref')) : undefined) ??
      firstOf(partsOf(schema, path), look)
    );
  };

  const follow = (ref: string, path: string): string | undefined => {
    if (following.has(ref)) return `${path} refers to itself: recursive schemas are not supported`;
    const target = resolve(root, ref);
    if (target === undefined) return `${path} must refer into the same schema, such as #/$defs/address`;
    following.add(ref);
    const problem = look(target, path);
    following.delete(ref);
    return problem;
  };

  following.add('#');
  return look(root, '');
}

/** What is wrong with one schema, apart from its parts. */
function ownProblem(schema: Readonly<Record<string, unknown>>, path: string): string | undefined {
  for (const keyword of REFUSED) if (Object.hasOwn(schema, keyword)) return `${at(path, keyword)} is not supported`;
  if (path !== '' && typeof schema.$id === 'string') return `${at(path, '$id')} is not supported below the top`;
  if (schema.uniqueItems === true) {
    return `${at(path, 'uniqueItems')} is not supported: it compares every item with every other`;
  }
  const { pattern, patternProperties } = schema;
  const patterns: [string, string][] = typeof pattern === 'string' ? [['pattern', pattern]] : [];
  if (typeof patternProperties === 'object' && patternProperties !== null) {
    for (const name of Object.keys(patternProperties)) patterns.push(['patternProperties', name]);
  }
  for (const [keyword, text] of patterns) {
    const problem = patternProblem(text);
    if (problem !== undefined) return `${at(path, keyword)} ${problem}`;
  }
  return undefined;
}

function partsOf(schema: Readonly<Record<string, unknown>>, path: string): (readonly [unknown, string])[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (NO_SCHEMAS.includes(keyword)) return [];
    const isMap = (MAPS as readonly string[]).includes(keyword) && typeof value === 'object' && value !== null;
    if (!isMap) return [[value, at(path, keyword)] as const];
    return Object.entries(value).map(([name, part]) => [part, at(path, `${keyword}.${name}`)] as const);
  });
}

function firstOf(
  parts: readonly (readonly [unknown, string])[],
  look: (value: unknown, path: string) => string | undefined,
): string | undefined {
  for (const [part, path] of parts) {
    const problem = look(part, path);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function at(path: string, keyword: string): string {
  return path === '' ? keyword : `${path}.${keyword}`;
}

function resolve(root: unknown, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let value = root;
  for (const step of ref.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** Longest text that a pattern without its variable part can fit, characters. */
const MAX_FIXED = 64;
const LINEAR =
  'could hang on a hostile body; allowed are characters, classes and escapes with {n}, and once * + ? or {n,m} behind a leading ^';

/**
 * Why a regular expression cannot be trusted to run in linear time, or `undefined`. Without groups, alternatives and references,
 * and with one part of variable length at most, there is nothing to go back to: each length of that part is tried once.
 */
export function patternProblem(pattern: string): string | undefined {
  try {
    new RegExp(pattern, 'u');
  } catch {
    return 'is not a regular expression';
  }
  let rest = pattern.startsWith('^') ? pattern.slice(1) : pattern;
  if (rest.endsWith('$') && !rest.endsWith('\\$')) rest = rest.slice(0, -1);
  let fixed = 0;
  let variable = 0;
  while (rest !== '') {
    // A class, an escape, or a character that means itself.
    const atom =
      /^(?:\[(?:[^\]\\]|\\.)+\]|\\[dDwWsSnrt.^$*+?()[\]{}|/\\-]|\\p\{[A-Za-z_=]+\}|[^\\^$*+?()[\]{}|])/u.exec(
        rest,
      )?.[0];
    if (atom === undefined) return LINEAR;
    rest = rest.slice(atom.length);
    const quantifier = /^(?:[*+?]|\{(\d{1,4})(,\d{0,4})?\})\??/.exec(rest);
    if (quantifier === null) {
      fixed++;
      continue;
    }
    rest = rest.slice(quantifier[0].length);
    const isExact = quantifier[1] !== undefined && quantifier[2] === undefined;
    fixed += Number(quantifier[1] ?? 0);
    if (!isExact) variable++;
  }
  if (fixed > MAX_FIXED) return `is too long: more than ${MAX_FIXED} characters`;
  return variable > 1 || (variable === 1 && !pattern.startsWith('^')) ? LINEAR : undefined;
}
