/** The compiled template, and what it deploys for other catalogs and parameters. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Fields, fields, isFields, type Value } from './arm/functions.ts';
import { type Deployed, deploy, type Place } from './arm/template.ts';
import type { Compiler } from './compiler.ts';

/** The repository. */
export const ROOT = resolve(import.meta.dirname, '../..');
/** The folder with the templates. */
export const INFRA = join(ROOT, 'infra');
/** The compiled template that is committed. */
export const COMMITTED = join(INFRA, 'azuredeploy.json');

/** Where the tests deploy to. */
export const PLACE: Place = { subscriptionId: '11111111-1111-1111-1111-111111111111', resourceGroup: 'rg-office' };

/** Compiles infra/main.bicep. Throws with what the compiler says when it says anything. */
export async function compile(compiler: Compiler): Promise<Fields> {
  const { code, stdout, stderr } = await compiler.run(['build', join(INFRA, 'main.bicep'), '--stdout', '--no-restore']);
  if (code !== 0 || stderr.trim() !== '') throw new Error(`infra/main.bicep does not compile clean:\n${stderr}`);
  return fields(JSON.parse(stdout) as Value);
}

/** The compiled template that is committed. */
export function committed(): Fields {
  return fields(JSON.parse(readFileSync(COMMITTED, 'utf8')) as Value);
}

/** A template without what a compiler says of itself. */
export function withoutGenerator(value: Value): Value {
  if (Array.isArray(value)) return value.map(withoutGenerator);
  if (!isFields(value)) return value;
  const rest = Object.entries(value).filter(([name]) => name !== '_generator');
  return Object.fromEntries(rest.map(([name, field]) => [name, withoutGenerator(field)]));
}

/** The same template for another catalog: the compiler puts the file into a variable. */
export function withCatalog(template: Fields, catalog: unknown): Fields {
  const variables = fields(template.variables);
  const name = /^\[variables\('(.+)'\)\]$/.exec(String(variables.catalog))?.[1];
  if (name === undefined || variables[name] === undefined) throw new Error('the template has no catalog');
  return { ...template, variables: { ...variables, [name]: escaped(catalog as Value) } };
}

/** A text that begins with a bracket would be an expression. */
function escaped(value: Value): Value {
  if (typeof value === 'string') return value.startsWith('[') ? `[${value}` : value;
  if (Array.isArray(value)) return value.map(escaped);
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, escaped(field)]));
}

/** What is deployed for a catalog and parameters. */
export function deployed(template: Fields, catalog: unknown, parameters: Fields = {}): Deployed {
  return deploy(withCatalog(template, catalog), parameters, PLACE);
}
