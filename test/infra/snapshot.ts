/** Compares what the tests believe a template deploys with what the Bicep CLI predicts, which evaluates it as Azure does. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Fields, fields, isFields, list, text, type Value } from './arm/functions.ts';
import type { Scenario } from './catalogs.ts';
import { deployed, PLACE, withCatalog } from './compiled.ts';
import type { Compiler } from './compiler.ts';

/** Where the two differ, a line each; empty: nowhere. */
export async function differences(compiler: Compiler, template: Fields, scenario: Scenario): Promise<string[]> {
  const predicted = await predict(compiler, template, scenario);
  const believed = deployed(template, scenario.catalog, scenario.parameters).resources;
  const mine = new Map(believed.map(({ id, body }) => [id, body]));
  const lines: string[] = [];
  const unnamed: Fields[] = [];
  for (const resource of predicted) {
    const id = text(resource.id);
    // A name that depends on the cloud stays an expression in the prediction.
    if (id.startsWith('[')) {
      unnamed.push(resource);
      continue;
    }
    const body = mine.get(id);
    mine.delete(id);
    if (body === undefined) lines.push(`not believed: ${id}`);
    else lines.push(...differing(resource, body, id.split('/').slice(-2).join('/')));
  }
  for (const { type, id } of unnamed) {
    const [match] = [...mine].find(([, body]) => text(body.type) === text(type)) ?? [];
    if (match === undefined) lines.push(`not believed: ${text(id)}`);
    else mine.delete(match);
  }
  return [...lines, ...[...mine.keys()].map((id) => `not predicted: ${id}`)];
}

async function predict(compiler: Compiler, template: Fields, { catalog, parameters }: Scenario): Promise<Fields[]> {
  const folder = await mkdtemp(join(tmpdir(), 'snapshot-'));
  try {
    await writeFile(join(folder, 'main.json'), JSON.stringify(withCatalog(template, catalog)));
    await writeFile(join(folder, 'values.json'), JSON.stringify(parameters));
    const assigned = Object.keys(parameters).map(
      (name) => `param ${name} = loadJsonContent('values.json', '$.${name}')`,
    );
    const file = join(folder, 'main.bicepparam');
    await writeFile(file, ["using 'main.json'", ...assigned, ''].join('\n'));
    const place = ['--subscription-id', PLACE.subscriptionId, '--resource-group', PLACE.resourceGroup];
    const more = ['--location', 'westeurope', '--tenant-id', '22222222-2222-2222-2222-222222222222'];
    const options = ['--deployment-name', 'office', '--mode', 'overwrite'];
    const { code, stdout, stderr } = await compiler.run(['snapshot', file, ...place, ...more, ...options]);
    if (code !== 0) throw new Error(`the snapshot failed: ${stdout}${stderr}`.slice(0, 2000));
    const snapshot = fields(JSON.parse(await readFile(join(folder, 'main.snapshot.json'), 'utf8')) as Value);
    return list(snapshot.predictedResources).map(fields);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const NOT_COMPARED = new Set(['id', 'scope', 'subscriptionId', 'resourceGroup']);

function differing(predicted: Fields, believed: Fields, path: string): string[] {
  const names = new Set([...Object.keys(predicted), ...Object.keys(believed)]);
  return [...names]
    .filter((name) => !NOT_COMPARED.has(name) || path.includes('properties'))
    .flatMap((name) => differs(predicted[name] ?? null, believed[name] ?? null, `${path}.${name}`));
}

function differs(predicted: Value, believed: Value, path: string): string[] {
  // What is known only in Azure stays an expression in the prediction.
  if (typeof predicted === 'string' && predicted.startsWith('[')) return [];
  if (isFields(predicted) && isFields(believed)) return differing(predicted, believed, path);
  if (Array.isArray(predicted) && Array.isArray(believed)) {
    const longest = Math.max(predicted.length, believed.length);
    return Array.from({ length: longest }, (_none, i) => i).flatMap((i) =>
      differs(predicted[i] ?? null, believed[i] ?? null, `${path}[${i}]`),
    );
  }
  if (JSON.stringify(predicted) === JSON.stringify(believed)) return [];
  return [`${path}: predicted ${JSON.stringify(predicted)}, believed ${JSON.stringify(believed)}`.slice(0, 400)];
}
