import { expect, test } from 'vitest';
import { ROUTES } from '../../functions/register.ts';
import { ERRORS } from '../../shared/errors.ts';
import type { Route } from '../../shared/http/route.ts';
import { FOREIGN } from './foreign.ts';
import { filesOf, type Page, pages, parsePage, read } from './pages.ts';

const PAGES = pages();
const FILES = filesOf('**/*').concat(filesOf('.*'), filesOf('.ci/*'), filesOf('.github/**/*'));
const FOLDERS = new Set(FILES.flatMap((name) => name.split('/').map((_, i, all) => all.slice(0, i).join('/'))));
const TOP = new Set(FILES.filter((name) => name.includes('/')).map((name) => name.split('/')[0]));
const PACKAGE = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

/** Everything that is code or configuration, as one text: a name that is nowhere in it does not exist. */
const CODE = FILES.filter((name) => /\.(ts|json|bicep|ya?ml|kql|cs|csproj)$|^\.ci\//.test(name))
  .filter((name) => !/package-lock|^docs\/|^test\/docs\//.test(name))
  .map(read)
  .join('\n');

const SETTINGS = new Set(CODE.match(/\bDLO_[A-Z_]+\b/g));

/** What a page names that does not exist, one line each. */
function strangers(page: Page): string[] {
  const found: string[] = [];
  const note = (line: number, text: string, problem: string) => found.push(`${page.name}:${line}: ${text}: ${problem}`);
  for (const { text, line } of page.codes) {
    const problem = problemOf(text);
    if (problem !== undefined) note(line, text, problem);
  }
  for (const { text, line } of [...page.codes, ...page.blocks]) {
    for (const [script] of text.matchAll(/(?<=\bnpm (?:run )?)[a-z][a-z:-]*/g)) {
      if (!isNpm(script)) note(line, script, 'there is no such script in package.json');
    }
  }
  for (const [i, text] of page.text.split('\n').entries()) {
    for (const [name] of text.matchAll(/\bDLO_[A-Z_]*[A-Z]\b/g)) {
      if (!Object.hasOwn(ERRORS, name) && !SETTINGS.has(name)) note(i + 1, name, 'is neither an error nor a setting');
    }
  }
  return found;
}

/** npm's own commands that the pages use, and scripts. */
function isNpm(word: string): boolean {
  return ['ci', 'run', 'install', 'audit'].includes(word) || Object.hasOwn(PACKAGE.scripts, word);
}

function problemOf(code: string): string | undefined {
  const text = code.trim();
  if (FOREIGN.has(text)) return undefined;
  const route = /^(?:(?:GET|POST) )?(\/[\w{}./…-]*)(\?\S*)?$/.exec(text);
  if (route) return routeProblem(route[1] as string, new URLSearchParams(route[2] ?? ''));
  if (/\s/.test(text)) return undefined; // a sentence or a command line: commands have a check of their own
  const [folder] = text.split('/');
  if (text.includes('/') && TOP.has(folder ?? '')) return pathProblem(text);
  if (/^[\w-]+\/$/.test(text)) {
    return [...FOLDERS].some((name) => `/${name}/`.endsWith(`/${text}`)) ? undefined : 'there is no such folder';
  }
  if (/^[\w-]+\.(ts|json|md|ya?ml|bicep)$/.test(text)) {
    return FILES.some((name) => name === text || name.endsWith(`/${text}`)) ? undefined : 'there is no such file';
  }
  const parts = text.split('__');
  if (parts.length > 1)
    return parts.every((part) => isWord(part) || CODE.includes(`__${part}`)) ? undefined : 'is no setting';
  // Not values, patterns and placeholders. A dot in front: the end of a name.
  if (!/^(?:\.?[A-Za-z]|@[a-z])[\w.@/-]*$/.test(text)) return undefined;
  if (/^P(?:\d+D|T\d+[HMS])$/.test(text)) return undefined; // durations
  // `entity.lockDuration`: a field by its path.
  const isPath = /^\w+(?:\.\w+)+$/.test(text) && text.split('.').every(isWord);
  return isPath || isWord(text.replace(/^\.(?=[A-Za-z])/, '')) ? undefined : 'is nowhere in the code';
}

/** Whether it stands somewhere in the code, in comments too, and not only as a part of a longer name. */
function isWord(text: string): boolean {
  return new RegExp(`(?<![\\w-])${text.replaceAll(/[.$/]/g, '\\$&')}(?![\\w-])`).test(CODE);
}

function pathProblem(text: string): string | undefined {
  if (/[<*]/.test(text)) return filesOf(text.replaceAll(/<[^>]*>/g, '*')).length > 0 ? undefined : 'matches no file';
  const path = text.replace(/\/$/, '');
  return FILES.includes(path) || FOLDERS.has(path) ? undefined : 'there is no such file';
}

/** A route may be named in full, or by its end. `{source}` and the like are written as in OpenAPI. */
function routeProblem(path: string, query: URLSearchParams): string | undefined {
  if (path === '/api' || path.startsWith('/admin/')) return undefined;
  const wanted = path.replace(/^\/(?:api\/)?/, '');
  if (wanted === 'openapi.json') return undefined;
  const fitting = ROUTES.filter((one) => one.path === wanted || one.path.endsWith(`/${wanted}`));
  if (fitting.length === 0) return 'there is no such route';
  const unknown = [...query.keys()].filter((name) => !fitting.some((one) => knowsParameter(one, name)));
  return unknown.length === 0 ? undefined : `the route has no parameter ${unknown.join(', ')}`;
}

function knowsParameter({ query }: Route, name: string): boolean {
  const issues = query.safeParse({ [name]: '' }).error?.issues ?? [];
  return !issues.some(({ code }) => code === 'unrecognized_keys');
}

test.each(PAGES)('what $name names exists: files, routes, scripts, settings, codes, names', (page) => {
  expect(strangers(page)).toEqual([]);
});

test('names, files, routes, scripts and settings that do not exist are noticed', () => {
  const text = [
    'See `shared/nothing.ts`, `shared/plan/`, `local/story/*.ts` and `nothing.json`.',
    'Call `GET /sources/{source}/nothing`, `/plans?state=ready`, `/plans?nothing=1` or `/plans/{id}/run`, then `npm run nothing` and `npm test`.',
    'DLO_NOTHING, `DLO_LEASE_SECONDS`, DLO_PLAN_STATE; `no-such-finding-code`, `over-limit`, `keepRecordsForever`.',
  ].join('\n');
  expect(strangers(parsePage('page.md', text)).map((line) => line.split(': ')[1])).toEqual([
    'shared/nothing.ts',
    'nothing.json',
    'GET /sources/{source}/nothing',
    '/plans?nothing=1',
    'no-such-finding-code',
    'keepRecordsForever',
    'nothing',
    'DLO_NOTHING',
  ]);
});

test('every foreign name that is allowed is used', () => {
  const used = new Set(PAGES.flatMap(({ codes }) => codes.map(({ text }) => text.trim())));
  expect([...FOREIGN.keys()].filter((name) => !used.has(name))).toEqual([]);
});
