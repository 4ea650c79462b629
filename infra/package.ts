/**
 * `npm run package -- <folder>`: builds the app and lays what is deployed into a folder, which is emptied first. Only what is listed
 * here goes in, whatever else lies in the checkout. Nothing is installed or built where it is deployed to.
 */
import { cp, mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { buildApp } from '../build.ts';
import { Misused, runCommand } from '../cli/commandLine.ts';

const ROOT = resolve(import.meta.dirname, '..');

/** What goes into the package beside the built files, which have a folder of their own. */
export const PACKED = ['catalog.json', 'host.json', 'package.json'];
const BUILT = 'dist';

/**
 * Builds, and lays the package of the checkout at `root` into `folder`. Answers its files: paths in the package, sorted. Throws
 * when the folder holds anything but a package: it is emptied, and a slip such as `npm run package -- infra` would be dear.
 */
export async function layPackage(folder: string, root = ROOT): Promise<string[]> {
  const target = resolve(folder);
  await assertOurs(target, root);
  const { files: built } = await buildApp(join(root, BUILT));
  await rm(target, { recursive: true, force: true });
  const files = [...PACKED, ...built.map((name) => `${BUILT}/${name}`)].toSorted();
  for (const file of files) {
    await mkdir(dirname(join(target, file)), { recursive: true });
    await cp(join(root, file), join(target, file));
  }
  return files;
}

/** Throws unless `target` is new, empty, or a package that was laid before. */
async function assertOurs(target: string, root: string): Promise<void> {
  const real = await realpath(target).catch(() => target);
  const inside = relative(real, await realpath(root));
  if (inside.split(sep)[0] !== '..') throw new Misused(`${target} holds the repository`);
  const there = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    if (error.code === 'ENOTDIR') throw new Misused(`${target} is no folder`);
    throw error;
  });
  const strange = there.find((name) => name !== BUILT && !PACKED.includes(name));
  if (strange !== undefined) {
    throw new Misused(`${target} is emptied first, and holds "${strange}", which is no part of a package`);
  }
}

if (import.meta.main) {
  const usage = 'usage: npm run package -- <folder>\n  lays what is deployed into the folder, which is emptied first';
  process.exitCode = await runCommand(usage, process.argv.slice(2), async (args) => {
    const [folder, ...more] = parseArgs({ args, allowPositionals: true, options: {} }).positionals;
    if (folder === undefined || more.length > 0) throw new Misused('one folder is needed');
    for (const file of await layPackage(folder)) console.log(file);
    return 0;
  });
}
