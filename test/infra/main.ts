/**
 * `npm run infra -- [--write] [--offline]`: compiles the templates in infra/ with every warning an error, and compares
 * infra/azuredeploy.json with them. Without a compiler it fetches one through NuGet; with `--offline` it fetches none, and ends
 * with 0 when none is there. `--write` formats the templates and writes azuredeploy.json anew.
 *
 * Ends with 0 when all is clean, 1 when not, 2 for wrong arguments, 3 when there is no compiler.
 */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { runCommand } from '../../cli/commandLine.ts';
import type { Fields } from './arm/functions.ts';
import { SCENARIOS } from './catalogs.ts';
import { COMMITTED, committed, compile, deployed, INFRA, ROOT, withoutGenerator } from './compiled.ts';
import { BICEP_VERSION, type Compiler, fetchCompiler, findCompiler } from './compiler.ts';
import { differences } from './snapshot.ts';

const USAGE = `usage: npm run infra -- [--write] [--offline]
  --write    formats the templates and writes infra/azuredeploy.json anew
  --offline  fetches no compiler; ends with 0 when none is there`;
const FAILED = 1;
const NO_COMPILER = 3;

async function main(args: readonly string[]): Promise<number> {
  const options = { write: { type: 'boolean' }, offline: { type: 'boolean' } } as const;
  const { values } = parseArgs({ args: [...args], options });
  const found = await findCompiler();
  if (found === undefined && values.offline) {
    say('there is no Bicep compiler here: nothing was compiled, the tests judge infra/azuredeploy.json');
    return 0;
  }
  const compiler = found ?? (await fetchCompiler());
  if (typeof compiler === 'string') {
    say(`there is no Bicep compiler, and ${compiler}`);
    say('install one ("az bicep install"), or name its program in the variable BICEP');
    return NO_COMPILER;
  }
  say(`Bicep ${compiler.version}: ${compiler.program}`);
  if (values.write) await compiler.run(['format', '--pattern', join(INFRA, '**/*.bicep')]);
  const problems = [...(await lint(compiler)), ...(await unformatted(compiler))];
  const template = await compile(compiler).catch((error: Error) => {
    problems.push(error.message);
    return undefined;
  });
  if (template !== undefined) {
    if (values.write) await writeFile(COMMITTED, `${JSON.stringify(template, undefined, 2)}\n`);
    problems.push(...currency(compiler, template), ...(await predictions(compiler, template)));
  }
  for (const problem of problems) say(problem);
  say(problems.length === 0 ? 'clean' : `${problems.length} problems`);
  return problems.length === 0 ? 0 : FAILED;
}

/** Whatever the linter says. */
async function lint(compiler: Compiler): Promise<string[]> {
  const { stdout, stderr } = await compiler.run(['lint', '--pattern', join(INFRA, '**/*.bicep'), '--no-restore']);
  return [...new Set(`${stdout}\n${stderr}`.split('\n'))]
    .filter((line) => / : (Error|Warning|Info) /.test(line))
    .map((line) => line.replace(`${ROOT}/`, ''));
}

/** The compiler formats a copy. */
async function unformatted(compiler: Compiler): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'format-'));
  try {
    await cp(INFRA, folder, { recursive: true });
    await compiler.run(['format', '--pattern', join(folder, '**/*.bicep')]);
    const files = (await readdir(INFRA, { recursive: true })).filter((name) => name.endsWith('.bicep'));
    const problems: string[] = [];
    for (const name of files) {
      const [is, ought] = await Promise.all([INFRA, folder].map((base) => readFile(join(base, name), 'utf8')));
      if (is !== ought) problems.push(`infra/${name} is not formatted: npm run infra -- --write`);
    }
    return problems;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Another version of the compiler may write the same differently: then what counts is what is deployed. */
function currency({ version }: Compiler, template: Fields): string[] {
  const meanings = (of: Fields) => SCENARIOS.map(({ catalog, parameters }) => deployed(of, catalog, parameters));
  const isSame =
    version === BICEP_VERSION
      ? isDeepStrictEqual(withoutGenerator(template), withoutGenerator(committed()))
      : isDeepStrictEqual(meanings(template), meanings(committed()));
  return isSame ? [] : ['infra/azuredeploy.json is not current: npm run infra -- --write'];
}

/** The tests evaluate the template themselves; here is who tells whether they do it right. */
async function predictions(compiler: Compiler, template: Fields): Promise<string[]> {
  const problems: string[] = [];
  for (const scenario of SCENARIOS) {
    const found = await differences(compiler, template, scenario);
    say(`${found.length === 0 ? 'ok' : 'FAILED'} what is deployed for ${scenario.name} is what the compiler predicts`);
    problems.push(...found);
  }
  return problems;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = await runCommand(USAGE, process.argv.slice(2), main);
