/** Bodies against JSON Schemas of the catalog. Ajv does the work; what could make it slow on a hostile body is refused at load. */
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv';
import type { Violation } from './evidence.ts';
import { loadAjv } from './loadAjv.cjs';
import { schemaProblem } from './schemaLimits.ts';

/** The first places where a value does not fit; empty when it fits. */
export type PayloadCheck = (value: unknown) => readonly Violation[];

/** A body that had to be JSON and is not. */
export const NOT_JSON: Violation = { path: '$', problem: 'json' };

const MAX_TOLD = 5;

const DRAFT_7 = 'http://json-schema.org/draft-07/schema';
const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema';

const OPTIONS: Options = {
  strict: true,
  // Schemas in the wild leave `type` out where others imply it; that is no mistake.
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  // `format` is an annotation, as 2020-12 has it: its checks are many regular expressions of many hands.
  validateFormats: false,
  logger: false,
  // Half the time to make one ready, and bodies are small.
  code: { optimize: false },
};

/**
 * Makes a schema ready (2020-12, or draft-07 where `$schema` says so). Throws an `Error` that says what is wrong with it.
 */
export function compilePayload(schema: Record<string, unknown>): PayloadCheck {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const check = compile(schema);
  compiled.set(schema, check);
  return check;
}

/** The catalog's check makes each ready once already; that takes milliseconds. */
const compiled = new WeakMap<Record<string, unknown>, PayloadCheck>();

function compile(schema: Record<string, unknown>): PayloadCheck {
  const problem = schemaProblem(schema);
  if (problem !== undefined) throw new Error(problem);
  const first = validator(schema, false);
  const all = validator(schema, true);
  return (value) => {
    if (first(value)) return [];
    // Every one of a thousand wrong items would be told: only small bodies are asked for more than the first.
    const failed = isSmall(value) && !all(value) ? all : first;
    return toViolations(failed.errors ?? []);
  };
}

function validator(schema: Record<string, unknown>, allErrors: boolean): ValidateFunction {
  const version = typeof schema.$schema === 'string' ? schema.$schema.replace(/#$/, '') : DRAFT_2020;
  if (version !== DRAFT_2020 && version !== DRAFT_7) {
    throw new Error(`$schema must be ${DRAFT_2020} or ${DRAFT_7}#`);
  }
  const ajv = ajvOf(version, allErrors);
  // Its name is of no use here, and two sources may use the same.
  const { $id: _name, ...nameless } = schema;
  const validate = ajv.compile(nameless);
  ajv.removeSchema(nameless);
  return validate;
}

const instances = new Map<string, Ajv>();

/** One for all schemas of a kind: each has to make the schema of schemas ready first, which takes longer than most of these. */
function ajvOf(version: typeof DRAFT_2020 | typeof DRAFT_7, allErrors: boolean): Ajv {
  const key = `${version} ${allErrors}`;
  let ajv = instances.get(key);
  if (ajv === undefined) {
    // What the first validator was made of need not be checked for the second.
    const options = { ...OPTIONS, allErrors, validateSchema: !allErrors };
    const { Ajv, Ajv2020 } = loadAjv();
    ajv = version === DRAFT_7 ? new Ajv(options) : new Ajv2020(options);
    instances.set(key, ajv);
  }
  return ajv;
}

/** Whether a JSON value has few parts. */
function isSmall(value: unknown): boolean {
  let left = 500;
  const open: unknown[] = [value];
  while (open.length > 0) {
    if (--left < 0) return false;
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    const parts = Object.values(next);
    if (parts.length > left) return false;
    for (const part of parts) open.push(part);
  }
  return true;
}

function toViolations(errors: readonly ErrorObject[]): Violation[] {
  const told = new Map<string, Violation>();
  for (const error of errors) {
    const violation = { path: pathOf(error), problem: error.keyword };
    const key = `${violation.path} ${violation.problem}`;
    if (!told.has(key)) told.set(key, violation);
    if (told.size >= MAX_TOLD) break;
  }
  return [...told.values()];
}

/** The place as a path. A missing field is told by its own name; a name that may be data (an address as a key) as `*`. */
function pathOf({ instancePath, params }: ErrorObject): string {
  const steps = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const missing: unknown = (params as { missingProperty?: unknown }).missingProperty;
  if (typeof missing === 'string') steps.push(missing);
  let path = '';
  for (const step of steps) {
    if (/^\d{1,9}$/.test(step)) path += `[${step}]`;
    else path += `${path === '' ? '' : '.'}${/^[A-Za-z_][\w-]{0,63}$/.test(step) ? step : '*'}`;
  }
  return path === '' ? '$' : path.slice(0, 300);
}
