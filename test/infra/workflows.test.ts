/** The pipeline: GitHub's own schema of workflows, and rules of ours. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { INFRA, ROOT } from './compiled.ts';

const FOLDER = join(ROOT, '.github/workflows');
const files = readdirSync(FOLDER);
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

const permissions = z.record(z.string(), z.enum(['read', 'write', 'none']));
const step = z.object({
  name: z.string().optional(),
  uses: z.string().optional(),
  run: z.string().optional(),
  env: z.record(z.string(), z.string()).default({}),
  with: z.record(z.string(), z.unknown()).default({}),
});
const job = z.object({
  uses: z.string().optional(),
  environment: z.unknown().optional(),
  permissions: permissions.optional(),
  'timeout-minutes': z.number().optional(),
  steps: z.array(step).default([]),
});
/** What the rules look at. */
const workflowSchema = z.object({ permissions, jobs: z.record(z.string(), job) });
const workflows = files.map((name) => ({ name, ...workflowSchema.parse(parse(read(name))) }));
const jobs = workflows.flatMap(({ name, jobs }) =>
  Object.entries(jobs).map(([id, one]) => ({ where: `${name} ${id}`, ...one })),
);
const steps = jobs.flatMap(({ where, steps }) =>
  steps.map((one, i) => ({ where: `${where} ${one.name ?? i}`, ...one })),
);

type Parser = typeof import('@actions/workflow-parser');

describe("GitHub's schema", () => {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-parser-'));
  let parser: Parser;
  // It imports JSON in a way that Node refuses: so it is bundled first.
  beforeAll(async () => {
    const outfile = join(folder, 'parser.mjs');
    await build({
      entryPoints: ['@actions/workflow-parser'],
      absWorkingDir: ROOT,
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
    });
    parser = (await import(pathToFileURL(outfile).href)) as Parser;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  async function problems(name: string, content: string): Promise<string[]> {
    const { context, value } = parser.parseWorkflow({ name, content }, new parser.NoOperationTraceWriter());
    const found = context.errors.getErrors().map(({ message }) => message);
    if (value === undefined || found.length > 0) return found;
    const { errors = [] } = await parser.convertWorkflowTemplate(context, value);
    return errors.map(({ Message }) => Message);
  }

  it.each(files)('takes %s', async (name) => {
    expect(await problems(name, read(name))).toEqual([]);
  });

  it.each([
    ['an unknown field', 'jobs:\n  a:\n    runs-on: x\n    timeout: 1\n    steps: [{ run: x }]'],
    ['a step that both runs and uses', 'jobs:\n  a:\n    runs-on: x\n    steps: [{ run: x, uses: y }]'],
    ['an expression that cannot be read', 'jobs:\n  a:\n    runs-on: x\n    steps: [{ run: "\u0024{{ github. }}" }]'],
    ['a job that needs one that is not there', 'jobs:\n  a:\n    runs-on: x\n    needs: b\n    steps: [{ run: x }]'],
  ])('refuses %s', async (_what, text) => {
    expect(await problems('wrong.yml', `on: push\n${text}\n`)).not.toEqual([]);
  });
});

describe('the rules', () => {
  const used = [...jobs, ...steps].flatMap(({ where, uses }) => (uses === undefined ? [] : [{ where, uses }]));

  it.each(used)('$where uses $uses: a commit, with its version beside it, or a file of ours', ({ uses }) => {
    if (uses.startsWith('./')) {
      expect(existsSync(join(ROOT, uses))).toBe(true);
      return;
    }
    expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
    const lines = files.flatMap((name) => read(name).split('\n')).filter((line) => line.includes(uses));
    for (const line of lines) expect(line).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('one action has one version', () => {
    const versions = new Map<string, Set<string>>();
    for (const { uses } of used) {
      const [action = '', commit] = uses.split('@');
      if (commit !== undefined) versions.set(action, (versions.get(action) ?? new Set()).add(commit));
    }
    for (const commits of versions.values()) expect(commits.size).toBe(1);
  });

  it.each(workflows)('$name may read the repository, and jobs no more than they need', ({ permissions, jobs }) => {
    expect(permissions).toEqual({ contents: 'read' });
    for (const { permissions: more = {}, steps, uses } of Object.values(jobs)) {
      const writes = Object.entries(more).filter(([, access]) => access === 'write');
      // To sign in to Azure, and for nothing else.
      for (const [name] of writes) expect(name).toBe('id-token');
      const signsIn = steps.some((one) => one.uses?.startsWith('azure/login@')) || uses !== undefined;
      expect(writes.length > 0).toBe(signsIn);
    }
  });

  it.each(jobs.filter(({ uses }) => uses === undefined))('$where ends by itself', (one) => {
    expect(one['timeout-minutes']).toBeGreaterThan(0);
    expect(one['timeout-minutes']).toBeLessThanOrEqual(60);
  });

  it.each(jobs)('$where signs in within an environment, which says who has to agree', ({ steps, environment }) => {
    if (steps.some(({ uses }) => uses?.startsWith('azure/login@'))) expect(environment).toBeTypeOf('string');
  });

  it.each(steps.filter(({ uses }) => uses?.startsWith('azure/login@')))('$where signs in without a secret', (one) => {
    expect(Object.keys(one.with).sort()).toEqual(['client-id', 'subscription-id', 'tenant-id']);
    for (const value of Object.values(one.with)) expect(value).toMatch(/^\$\{\{ vars\.\w+ \}\}$/);
  });

  it.each(steps.filter(({ uses }) => uses?.startsWith('actions/checkout@')))('$where leaves no token behind', (one) => {
    expect(one.with['persist-credentials']).toBe(false);
  });

  // What stands in an expression could be a command; what stands in a variable cannot.
  it.each(steps.filter(({ run }) => run !== undefined))('$where runs no text from outside', ({ run }) => {
    expect(run).not.toContain('${{');
  });

  test('there are no secrets, and the one key that is fetched is masked before it is used', () => {
    for (const name of files) expect(read(name)).not.toMatch(/secrets\.|inherit/);
    const keys = steps.filter(({ run = '' }) => /keys list|connectionString/i.test(run));
    expect(keys).toHaveLength(1);
    for (const { run = '' } of keys) {
      const [fetched, masked, spent] = [/keys list/, /::add-mask::/, /conform\/main\.ts/].map((part) =>
        run.search(part),
      );
      expect(fetched).toBeGreaterThanOrEqual(0);
      expect(masked).toBeGreaterThan(fetched ?? 0);
      expect(spent).toBeGreaterThan(masked ?? 0);
      expect(run).not.toMatch(/set -x|echo "\$connection|npm run/);
    }
  });

  test('what is deployed was checked, and goes to production only when test and conform are well', () => {
    const deploy = parse(read('deploy.yml')) as { jobs: Record<string, { needs?: string | string[]; uses: string }> };
    expect(Object.entries(deploy.jobs).map(([id, { needs }]) => [id, needs])).toEqual([
      ['check', undefined],
      ['test', 'check'],
      ['conform', 'test'],
      ['production', ['test', 'conform']],
    ]);
  });

  test('the smoke test asks for the health of the office, after each way of deploying', () => {
    for (const name of ['deploy-to.yml', 'rollback.yml']) {
      expect(read(name)).toMatch(/config-zip[\s\S]+curl --fail-with-body [^\n]*"\$URI\/health"/);
    }
  });

  test('every environment that is deployed to has its parameters', () => {
    const environments = [...read('deploy.yml').matchAll(/environment: (\w+)/g)].map(([, name]) => name);
    expect([...new Set(environments)].sort()).toEqual(['production', 'test']);
    for (const name of environments) expect(existsSync(join(INFRA, `environments/${name}.json`))).toBe(true);
  });

  test('the scripts that are run are there', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    for (const { run = '' } of steps) {
      for (const [, script = ''] of run.matchAll(/npm run (\w+)/g)) expect(scripts).toHaveProperty(script);
      for (const [path] of run.matchAll(/[\w./-]+\.(?:ts|bicep)\b/g)) expect(existsSync(join(ROOT, path))).toBe(true);
    }
  });
});
