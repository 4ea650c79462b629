/** Route templates of HTTP functions, by the rules of ASP.NET Core routing (docs: "Routing in ASP.NET Core"). */

type Constraint = { text: string; accepts(value: string): boolean };

type Segment =
  | { kind: 'literal'; text: string }
  | { kind: 'parameter'; name: string; constraints: Constraint[]; optional: boolean; fallback: string | undefined }
  | { kind: 'catchAll'; name: string; constraints: Constraint[] };

/** A parsed template. `precedence` orders templates: the smaller (compared as text) is the more specific. */
export interface Route {
  segments: Segment[];
  precedence: string;
}

/**
 * Parses a template such as `sources/{source}/letters/{number:long}`. A segment is a literal or one parameter.
 *
 * @throws Error that says what is wrong.
 */
export function parseRoute(template: string): Route {
  const parts = template.split('/').filter((part) => part !== '');
  const segments = parts.map((part) => parseSegment(template, part));
  const names = segments.flatMap((segment) => (segment.kind === 'literal' ? [] : [segment.name.toLowerCase()]));
  if (new Set(names).size < names.length) throw new Error(`Route "${template}" names a parameter twice.`);
  segments.forEach((segment, index) => {
    const last = index === segments.length - 1;
    if (segment.kind === 'catchAll' && !last) throw new Error(`Route "${template}": a catch-all must come last.`);
    if (segment.kind === 'parameter' && segment.optional && !last) {
      throw new Error(`Route "${template}": only the last parameter can be optional.`);
    }
  });
  return { segments, precedence: segments.map(precedenceOf).join('') };
}

/** The parameters when `path` (still percent-encoded, no leading slash) fits, else undefined. */
export function matchRoute(route: Route, path: string[]): Record<string, string> | undefined {
  const values: Record<string, string> = {};
  for (const [index, segment] of route.segments.entries()) {
    const value = path[index];
    if (segment.kind === 'catchAll') {
      const rest = path.slice(index).join('/');
      if (!segment.constraints.every((constraint) => constraint.accepts(rest))) return undefined;
      if (rest !== '') values[segment.name] = rest;
      return values;
    }
    if (segment.kind === 'literal') {
      if (value?.toLowerCase() !== segment.text.toLowerCase()) return undefined;
    } else if (value === undefined || value === '') {
      if (segment.fallback !== undefined) values[segment.name] = segment.fallback;
      else if (!segment.optional) return undefined;
    } else {
      if (!segment.constraints.every((constraint) => constraint.accepts(value))) return undefined;
      values[segment.name] = value;
    }
  }
  return path.length > route.segments.length ? undefined : values;
}

/**
 * The decoded segments of a request path, a trailing slash ignored. Kestrel leaves `%2F` as it is, so a slash inside a
 * parameter reaches a function still encoded. Undefined when the encoding is broken.
 */
export function splitPath(pathname: string): string[] | undefined {
  const trimmed = pathname.replace(/^\//, '').replace(/\/$/, '');
  if (trimmed === '') return [];
  try {
    return trimmed.split('/').map((part) => decodeURIComponent(part.replace(/%2f/gi, '%252F')));
  } catch {
    return undefined;
  }
}

function parseSegment(template: string, part: string): Segment {
  if (!/[{}]/.test(part)) return { kind: 'literal', text: part };
  const match = /^\{(\*{0,2})([^{}*:=?]+)((?::[^{}=?]+)?)(?:(\?)|=([^{}]*))?\}$/.exec(part);
  if (!match) {
    throw new Error(`Route "${template}": "${part}" is not understood; a segment is plain text or one {parameter}.`);
  }
  const [, stars, name = '', constraintText = '', optional, fallback] = match;
  const constraints = splitConstraints(constraintText).map((text) => parseConstraint(template, text));
  if (stars) return { kind: 'catchAll', name, constraints };
  return { kind: 'parameter', name, constraints, optional: optional === '?', fallback };
}

function splitConstraints(text: string): string[] {
  return text.split(':').filter((one) => one !== '');
}

/** Digits per segment as ASP.NET's `RoutePrecedence` has them: literal 1, constrained 2, parameter 3, catch-all 4 and 5. */
function precedenceOf(segment: Segment): string {
  if (segment.kind === 'literal') return '1';
  if (segment.kind === 'catchAll') return segment.constraints.length > 0 ? '4' : '5';
  return segment.constraints.length > 0 ? '2' : '3';
}

const isInteger = (value: string) => /^[+-]?\d+$/.test(value);
const within = (value: string, low: bigint, high: bigint) =>
  isInteger(value) && BigInt(value.replace(/^\+/, '')) >= low && BigInt(value.replace(/^\+/, '')) <= high;

const plainConstraints: Record<string, (value: string) => boolean> = {
  int: (value) => within(value, -(2n ** 31n), 2n ** 31n - 1n),
  long: (value) => within(value, -(2n ** 63n), 2n ** 63n - 1n),
  guid: (value) => /^\{?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\}?$/i.test(value),
  alpha: (value) => /^[a-z]*$/i.test(value),
  bool: (value) => /^(true|false)$/i.test(value),
  decimal: (value) => /^[+-]?\d*\.?\d+$/.test(value),
  double: (value) => value.trim() !== '' && Number.isFinite(Number(value)),
  float: (value) => value.trim() !== '' && Number.isFinite(Number(value)),
};

const numberConstraints: Record<string, (value: string, ...limits: number[]) => boolean> = {
  min: (value, low = 0) => within(value, BigInt(low), 2n ** 63n - 1n),
  max: (value, high = 0) => within(value, -(2n ** 63n), BigInt(high)),
  range: (value, low = 0, high = 0) => within(value, BigInt(low), BigInt(high)),
  length: (value, low = 0, high = low) => value.length >= low && value.length <= high,
  minlength: (value, low = 0) => value.length >= low,
  maxlength: (value, high = 0) => value.length <= high,
};

function parseConstraint(template: string, text: string): Constraint {
  const plain = plainConstraints[text.toLowerCase()];
  if (plain) return { text, accepts: plain };
  const match = /^([a-z]+)\((-?\d+)(?:,\s*(-?\d+))?\)$/i.exec(text);
  const numeric = match && numberConstraints[(match[1] ?? '').toLowerCase()];
  if (!numeric) throw new Error(`Route "${template}": the constraint "${text}" is not known to the local host.`);
  const limits = [match[2], match[3]].filter((limit) => limit !== undefined).map(Number);
  return { text, accepts: (value) => numeric(value, ...limits) };
}
