/**
 * What a compiled template would deploy, without Azure: expressions, loops, conditions and nested deployments, as far as the
 * templates of this repository need them. `npm run infra` compares it with what the Bicep CLI predicts.
 */
import { type Expression, isExpression, parseExpression } from './expression.ts';
import { type Fields, FUNCTIONS, fields, isFields, Later, list, text, type Value } from './functions.ts';

/** Where a deployment goes. */
export interface Place {
  readonly subscriptionId: string;
  readonly resourceGroup: string;
}

/** A resource as it would be deployed. */
export interface Resource {
  readonly id: string;
  readonly type: string;
  /** With the names of its parents: `account/default/letters`. */
  readonly name: string;
  /** Of what it extends; empty for others. */
  readonly scope: string;
  /** The whole declaration, evaluated. */
  readonly body: Fields;
}

/** What would be deployed, and what it would answer. */
export interface Deployed {
  readonly resources: readonly Resource[];
  readonly outputs: Fields;
}

const TENANT = '22222222-2222-2222-2222-222222222222';
const LOCATION = 'westeurope';
const MAX_ITEMS = 800;

interface Scope {
  readonly template: Fields;
  readonly place: Place;
  readonly deployment: string;
  readonly parameters: Fields;
  readonly variables: Map<string, Value>;
  readonly nested: Map<string, Deployed>;
  readonly lambda: Fields;
  readonly copy: Readonly<Record<string, number>>;
}

/** Evaluates a template for a resource group. `parameters` by name, without those that have defaults. Throws for errors. */
export function deploy(template: Fields, parameters: Fields, place: Place, deployment = 'office'): Deployed {
  const given: Record<string, Value> = {};
  const scope: Scope = {
    template,
    place,
    deployment,
    parameters: given,
    variables: new Map(),
    nested: new Map(),
    lambda: {},
    copy: {},
  };
  for (const [name, declared] of Object.entries(fields(template.parameters ?? {}))) {
    const value = parameters[name] ?? evaluate(fields(declared).defaultValue ?? null, scope);
    if (value === null) throw new Error(`parameter "${name}" is missing`);
    checkParameter(name, fields(declared), value);
    given[name] = value;
  }
  const unknown = Object.keys(parameters).filter((name) => !Object.hasOwn(given, name));
  if (unknown.length > 0) throw new Error(`there is no parameter "${unknown[0]}"`);
  const symbols = Object.keys(declarations(scope));
  const resources = symbols.flatMap((symbol) => instances(symbol, scope).flatMap((one) => resourcesOf(symbol, one)));
  const outputs = Object.entries(fields(template.outputs ?? {})).map(([name, output]) => [
    name,
    evaluate(fields(output).value ?? null, scope),
  ]);
  return { resources, outputs: Object.fromEntries(outputs) };
}

/** Resources by symbol; templates of the older form have a list. */
function declarations({ template }: Scope): Fields {
  const { resources = {} } = template;
  return Array.isArray(resources) ? Object.fromEntries(resources.entries()) : fields(resources);
}

function checkParameter(name: string, declared: Fields, value: Value): void {
  if (declared.allowedValues !== undefined && !list(declared.allowedValues).includes(value)) {
    throw new Error(`parameter "${name}" may not be ${text(value)}`);
  }
  const length = typeof value === 'string' || Array.isArray(value) ? value.length : undefined;
  if (length === undefined) return;
  if (length < Number(declared.minLength ?? 0) || length > Number(declared.maxLength ?? Number.POSITIVE_INFINITY)) {
    throw new Error(`parameter "${name}" has a wrong length: ${length}`);
  }
}

/** The scopes in which a resource is declared: one, or one for each round of its loop; none when its condition is false. */
function instances(symbol: string, scope: Scope): Scope[] {
  const declared = fields(declarations(scope)[symbol]);
  const rounds = declared.copy === undefined ? [scope] : roundsOf(fields(declared.copy), scope);
  return rounds.filter((round) => declared.condition === undefined || evaluate(declared.condition, round) === true);
}

function roundsOf(copy: Fields, scope: Scope): Scope[] {
  const count = Number(evaluate(copy.count ?? 0, scope));
  if (count > MAX_ITEMS) throw new Error(`a loop has ${count} rounds`);
  const name = text(copy.name);
  return Array.from({ length: count }, (_none, i) => ({ ...scope, copy: { ...scope.copy, [name]: i, '': i } }));
}

function resourcesOf(symbol: string, scope: Scope): readonly Resource[] {
  const declared = fields(declarations(scope)[symbol]);
  if (declared.existing === true) return [];
  if (declared.type === 'Microsoft.Resources/deployments') return nested(symbol, scope).resources;
  const { copy: _copy, condition: _condition, dependsOn: _dependsOn, ...rest } = declared;
  const body = fields(evaluate(rest, scope));
  const type = text(body.type);
  const name = text(body.name);
  const on = text(body.scope ?? '');
  return [{ id: idOf(scope.place, type, name, on), type, name, scope: on, body }];
}

function idOf({ subscriptionId, resourceGroup }: Place, type: string, name: string, scope: string): string {
  const base = scope === '' ? `/subscriptions/${subscriptionId}/resourceGroups/${resourceGroup}` : scope;
  const [provider, ...types] = type.split('/');
  const names = name.split('/');
  if (types.length !== names.length) throw new Error(`"${name}" is no name for ${type}`);
  return `${base}/providers/${provider}${types.map((part, i) => `/${part}/${names[i]}`).join('')}`;
}

function nested(symbol: string, scope: Scope): Deployed {
  const key = `${symbol}[${scope.copy['']}]`;
  const known = scope.nested.get(key);
  if (known !== undefined) return known;
  const declared = fields(declarations(scope)[symbol]);
  const properties = fields(declared.properties);
  const given = Object.entries(fields(properties.parameters ?? {})).flatMap(([name, parameter]) => {
    const value = fields(evaluate(parameter, scope)).value ?? null;
    return value === null ? [] : [[name, value] as const];
  });
  const place = {
    subscriptionId: text(evaluate(declared.subscriptionId ?? scope.place.subscriptionId, scope)),
    resourceGroup: text(evaluate(declared.resourceGroup ?? scope.place.resourceGroup, scope)),
  };
  const name = text(evaluate(declared.name ?? '', scope));
  if (name.length > 64) throw new Error(`the name of deployment ${name} is too long`);
  const deployed = deploy(fields(properties.template), Object.fromEntries(given), place, name);
  scope.nested.set(key, deployed);
  return deployed;
}

/** Evaluates whatever stands in a template: expressions in texts and in names of fields. */
function evaluate(value: Value, scope: Scope): Value {
  if (typeof value === 'string') {
    if (isExpression(value)) return resolve(parseExpression(value), scope);
    return value.startsWith('[[') ? value.slice(1) : value;
  }
  if (Array.isArray(value)) return value.map((one) => evaluate(one, scope));
  if (!isFields(value)) return value;
  const evaluated: Record<string, Value> = {};
  for (const [name, field] of Object.entries(value)) {
    if (name === 'copy' && Array.isArray(field)) {
      for (const loop of field) Object.assign(evaluated, loopOf(fields(loop), scope));
    } else evaluated[text(evaluate(name, scope))] = evaluate(field, scope);
  }
  return evaluated;
}

function loopOf(loop: Fields, scope: Scope): Fields {
  const rounds = roundsOf(loop, scope);
  return { [text(loop.name)]: rounds.map((round) => evaluate(loop.input ?? null, round)) };
}

function resolve(expression: Expression, scope: Scope): Value {
  if (expression.kind === 'value') return expression.value;
  if (expression.kind === 'member') {
    const of = resolve(expression.of, scope);
    const key = resolve(expression.key, scope);
    if (of instanceof Later) return new Later(`${of.path}.${text(key)}`);
    const found = Array.isArray(of) ? of[Number(key)] : fields(of)[text(key)];
    if (found === undefined) throw new Error(`there is no "${text(key)}" in ${JSON.stringify(of).slice(0, 200)}`);
    return found;
  }
  const special = SPECIAL[expression.name];
  if (special !== undefined) return special(expression.args, scope);
  const args = expression.args.map((arg) => resolve(arg, scope));
  const own = expression.name.includes('.') ? userFunction(expression.name, scope) : undefined;
  if (own !== undefined) return call(own, args, scope);
  const known = FUNCTIONS[expression.name];
  if (known === undefined) throw new Error(`unknown function "${expression.name}"`);
  return known(...args);
}

function userFunction(name: string, scope: Scope): Fields | undefined {
  const [namespace, member] = name.split('.');
  const declared = list(scope.template.functions ?? []).map(fields);
  const group = declared.find((one) => one.namespace === namespace);
  return group === undefined ? undefined : fields(fields(group.members)[member ?? '']);
}

/** A function sees its parameters and nothing else. */
function call(declared: Fields, args: readonly Value[], scope: Scope): Value {
  const names = list(declared.parameters ?? []).map((parameter) => text(fields(parameter).name));
  const parameters = Object.fromEntries(names.map((name, i) => [name, args[i] ?? null]));
  return evaluate(fields(declared.output).value ?? null, { ...scope, parameters, lambda: {}, copy: {} });
}

type Special = (args: readonly Expression[], scope: Scope) => Value;

function argument(args: readonly Expression[], index: number, scope: Scope): Value {
  const expression = args[index];
  return expression === undefined ? null : resolve(expression, scope);
}

/** Applies the lambda that is argument `index`. */
function applying(args: readonly Expression[], index: number, scope: Scope): (...values: Value[]) => Value {
  const lambda = args[index];
  if (lambda?.kind !== 'call' || lambda.name !== 'lambda') throw new Error('a lambda is missing');
  const names = lambda.args.slice(0, -1).map((name) => text(resolve(name, scope)));
  const body = lambda.args.at(-1);
  return (...values) => {
    const bound = Object.fromEntries(names.map((name, i) => [name, values[i] ?? null]));
    return argument([body as Expression], 0, { ...scope, lambda: { ...scope.lambda, ...bound } });
  };
}

/** `resourceId` and its kin: places may come first. */
function resourceId(given: readonly string[], { subscriptionId, resourceGroup }: Place): string {
  const type = given.findIndex((part) => part.includes('/'));
  const places = given.slice(0, type);
  const place = {
    subscriptionId: places.length === 2 ? (places[0] ?? '') : subscriptionId,
    resourceGroup: places.at(-1) ?? resourceGroup,
  };
  return idOf(place, given[type] ?? '', given.slice(type + 1).join('/'), '');
}

function variable(name: string, scope: Scope): Value {
  const known = scope.variables.get(name);
  if (known !== undefined) return known;
  const declared = fields(scope.template.variables ?? {});
  const loop = list(declared.copy ?? []).find((one) => fields(one).name === name);
  // A variable knows nothing of the loop or lambda that it is used in.
  const bare = { ...scope, lambda: {}, copy: {} };
  const value = loop === undefined ? declared[name] : loopOf(fields(loop), bare)[name];
  if (value === undefined) throw new Error(`there is no variable "${name}"`);
  const result = loop === undefined ? evaluate(value, bare) : value;
  scope.variables.set(name, result);
  return result;
}

/** Of a nested deployment its outputs, of anything else what is known later. `to` is a symbol, or an id. */
function reference(to: string, scope: Scope): Value {
  const declared = declarations(scope);
  const symbol = to.includes('/') ? deploymentWith(to, scope) : to;
  if (symbol === undefined) return new Later(to);
  if (declared[symbol] === undefined) throw new Error(`there is no resource "${symbol}"`);
  if (fields(declared[symbol]).type !== 'Microsoft.Resources/deployments') return new Later(symbol);
  const outputs = Object.entries(nested(symbol, scope).outputs).map(([name, value]) => [name, { value }]);
  return { outputs: Object.fromEntries(outputs) };
}

function deploymentWith(id: string, scope: Scope): string | undefined {
  const name = /\/Microsoft\.Resources\/deployments\/(.+)$/.exec(id)?.[1];
  const found = Object.entries(declarations(scope)).find(
    ([, declared]) => name !== undefined && evaluate(fields(declared).name ?? '', scope) === name,
  );
  return found?.[0];
}

const SPECIAL: Readonly<Record<string, Special>> = {
  copyIndex: (args, { copy }) => copy[args.length === 0 ? '' : text((args[0] as { value?: Value }).value)] ?? 0,
  deployment: (_args, { deployment }) => ({ name: deployment }),
  environment: () => ({
    name: 'AzureCloud',
    resourceManager: 'https://management.azure.com/',
    authentication: { loginEndpoint: 'https://login.microsoftonline.com/' },
    suffixes: { storage: 'core.windows.net' },
  }),
  filter: (args, scope) => {
    const keep = applying(args, 1, scope);
    return list(argument(args, 0, scope)).filter((one) => keep(one) === true);
  },
  if: (args, scope) => argument(args, argument(args, 0, scope) === true ? 1 : 2, scope),
  lambdaVariables: (args, scope) => scope.lambda[text(argument(args, 0, scope))] ?? null,
  map: (args, scope) => {
    const change = applying(args, 1, scope);
    return list(argument(args, 0, scope)).map((one, i) => change(one, i));
  },
  parameters: (args, scope) => {
    const name = text(argument(args, 0, scope));
    const value = scope.parameters[name];
    if (value === undefined) throw new Error(`there is no parameter "${name}"`);
    return value;
  },
  reduce: (args, scope) => {
    const add = applying(args, 2, scope);
    return list(argument(args, 0, scope)).reduce((all, one) => add(all, one), argument(args, 1, scope));
  },
  reference: (args, scope) => reference(text(argument(args, 0, scope)), scope),
  resourceGroup: (_args, { place }) => ({
    id: `/subscriptions/${place.subscriptionId}/resourceGroups/${place.resourceGroup}`,
    name: place.resourceGroup,
    location: LOCATION,
  }),
  resourceId: (args, scope) =>
    resourceId(
      args.map((_arg, i) => text(argument(args, i, scope))),
      scope.place,
    ),
  subscription: (_args, { place }) => ({ subscriptionId: place.subscriptionId }),
  subscriptionResourceId: (args, scope) =>
    `/subscriptions/${scope.place.subscriptionId}/providers/${text(argument(args, 0, scope))}/${text(argument(args, 1, scope))}`,
  tenant: () => ({ tenantId: TENANT }),
  variables: (args, scope) => variable(text(argument(args, 0, scope)), scope),
};
