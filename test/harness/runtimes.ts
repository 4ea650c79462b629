/** Versions of Node.js beside the one that runs the tests: found on this machine, or brought by `npm run runtimes`. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** Where `npm run runtimes` puts them: npm leaves it alone, and `npm ci` empties it. */
export const RUNTIMES = resolve(import.meta.dirname, '../../node_modules/.runtimes');

/** What the tests want: the majors that package.json promises, and one older, which has to be refused. */
export const WANTED = [20, 22, 24] as const;

const EXECUTABLE = process.platform === 'win32' ? 'node.exe' : 'bin/node';
const found = new Map<number, string | undefined>();

/** Path of a Node.js of major version `major`, or `undefined` when there is none here. */
export function nodeOf(major: number): string | undefined {
  if (!found.has(major))
    found.set(
      major,
      candidates(major).find((path) => majorOf(path) === major),
    );
  return found.get(major);
}

function candidates(major: number): string[] {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const onPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name));
  const brought = join(RUNTIMES, 'node_modules', `node-${major}`, EXECUTABLE);
  return [process.execPath, brought, ...onPath].filter((path) => existsSync(path));
}

function majorOf(path: string): number {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return Number.parseInt(stdout?.slice(1) ?? '', 10);
}

/** One line about the majors that are not here, or `undefined`. */
export function leftOut(): string | undefined {
  const missing = WANTED.filter((major) => nodeOf(major) === undefined);
  return missing.length === 0
    ? undefined
    : `Left out: the package on Node.js ${missing.join(' and ')}, which is not here. \`npm run runtimes\` brings it.`;
}
