/** The template functions that the templates of this repository use. They throw for what they do not know. */
import { guid, uniqueString } from './hash.ts';

/** What is known only once a resource is there: `reference('site').defaultHostName`. */
export class Later {
  readonly path: string;
  constructor(path: string) {
    this.path = path;
  }
}

/** A value of a template. */
export type Value = string | number | boolean | null | Later | readonly Value[] | Fields;
export interface Fields {
  readonly [name: string]: Value;
}

export const isFields = (value: Value | undefined): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Later);

/** A list. Throws for anything else. */
export function list(value: Value | undefined): readonly Value[] {
  if (!Array.isArray(value)) throw new Error(`not a list: ${JSON.stringify(value)}`);
  return value;
}

/** An object. Throws for anything else. */
export function fields(value: Value | undefined): Fields {
  if (!isFields(value)) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value;
}

/** A text, as `string()` makes it. */
export function text(value: Value | undefined): string {
  if (typeof value === 'string') return value;
  if (value instanceof Later) return `{${value.path}}`;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value === null || value === undefined) return '';
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}

function number(value: Value | undefined): number {
  if (typeof value !== 'number') throw new Error(`not a number: ${JSON.stringify(value)}`);
  return value;
}

const isTrue = (value: Value | undefined) => value === true;

function size(value: Value | undefined): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return Object.keys(fields(value)).length;
}

function same(a: Value | undefined, b: Value | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Objects are merged field by field, deeply, and null takes nothing away; lists are joined without doubles. */
function union(a: Value, b: Value): Value {
  if (Array.isArray(a)) {
    const all: Value[] = [];
    for (const one of [...a, ...list(b)]) if (!all.some((known) => same(known, one))) all.push(one);
    return all;
  }
  const merged: Record<string, Value> = { ...fields(a) };
  for (const [name, value] of Object.entries(fields(b))) {
    const before = merged[name];
    if (isFields(before) && isFields(value)) merged[name] = union(before, value);
    else if (before === undefined || value !== null) merged[name] = value;
  }
  return merged;
}

/** Functions of values alone. */
export const FUNCTIONS: Readonly<Record<string, (...args: Value[]) => Value>> = {
  add: (a, b) => number(a) + number(b),
  and: (...all) => all.every(isTrue),
  coalesce: (...all) => all.find((value) => value !== null) ?? null,
  contains: (whole, part) =>
    typeof whole === 'string'
      ? whole.includes(text(part))
      : Array.isArray(whole)
        ? whole.some((one) => same(one, part))
        : Object.hasOwn(fields(whole), text(part)),
  createArray: (...all) => all,
  createObject: (...all) =>
    Object.fromEntries(all.flatMap((name, i) => (i % 2 === 0 ? [[text(name), all[i + 1] ?? null]] : []))),
  empty: (value) => value === null || size(value) === 0,
  equals: (a, b) => same(a, b),
  false: () => false,
  first: (value) => (typeof value === 'string' ? (value[0] ?? '') : (list(value)[0] ?? null)),
  flatten: (value) => list(value).flatMap((one) => list(one)),
  format: (form, ...args) => text(form).replace(/\{(\d+)\}/g, (_all, i) => text(args[Number(i)])),
  greater: (a, b) => number(a) > number(b),
  guid: (...parts) => guid(parts.map(text)),
  items: (value) =>
    Object.entries(fields(value))
      // By key, and case makes no difference.
      .sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
      .map(([key, one]) => ({ key, value: one })),
  join: (value, by) => list(value).map(text).join(text(by)),
  length: (value) => size(value),
  max: (...all) => Math.max(...all.map(number)),
  min: (...all) => Math.min(...all.map(number)),
  not: (value) => value !== true,
  null: () => null,
  or: (...all) => all.some(isTrue),
  replace: (whole, part, by) => text(whole).replaceAll(text(part), () => text(by)),
  string: (value) => text(value),
  sub: (a, b) => number(a) - number(b),
  substring: (whole, from, count) => text(whole).slice(number(from), number(from) + number(count)),
  take: (value, count) => (typeof value === 'string' ? value : list(value)).slice(0, number(count)),
  toLower: (value) => text(value).toLowerCase(),
  true: () => true,
  tryGet: (value, key) => {
    if (value === null) return null;
    const found = Array.isArray(value) ? value[number(key)] : fields(value)[text(key)];
    return found ?? null;
  },
  union: (first, ...others) => others.reduce(union, union(first ?? null, Array.isArray(first) ? [] : {})),
  uniqueString: (...parts) => uniqueString(parts.map(text)),
};
