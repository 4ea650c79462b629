/**
 * `npm run package -- <folder>`: builds the app and lays what is deployed into a folder, which is emptied first: everything that
 * `.funcignore` does not leave out. Nothing is installed or built where it is deployed to.
 */
import { cp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join, matchesGlob, resolve } from 'node:path';
import { buildApp } from '../build.ts';

const ROOT = resolve(import.meta.dirname, '..');

/** The files of the package: paths in the repository, sorted. `dist` must be built. */
export async function packedFiles(root: string): Promise<string[]> {
  const lines = (await readFile(join(root, '.funcignore'), 'utf8')).split(/\r?\n/);
  const patterns = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const isLeftOut = (path: string) => patterns.some((pattern) => matchesGlob(path, pattern));
  const packed: string[] = [];
  for (const entry of await readdir(root, { withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue;
    const inside = entry.isDirectory()
      ? await readdir(join(root, entry.name), { recursive: true, withFileTypes: true })
      : [entry];
    for (const file of inside) {
      if (!file.isFile()) continue;
      const path = join(file.parentPath, file.name)
        .slice(root.length + 1)
        .replaceAll('\\', '/');
      if (!isLeftOut(path)) packed.push(path);
    }
  }
  return packed.sort();
}

/** Builds, and lays the package into `folder`. Answers its files. */
export async function layPackage(folder: string): Promise<string[]> {
  const target = resolve(folder);
  // A slip such as `npm run package -- .` would empty the repository.
  if (ROOT.startsWith(target)) throw new Error(`${target} holds the repository`);
  await buildApp(join(ROOT, 'dist'));
  await rm(target, { recursive: true, force: true });
  const files = await packedFiles(ROOT);
  for (const file of files) {
    await mkdir(dirname(join(target, file)), { recursive: true });
    await cp(join(ROOT, file), join(target, file));
  }
  return files;
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) {
    console.error('usage: npm run package -- <folder>');
    process.exitCode = 2;
  } else {
    for (const file of await layPackage(folder)) console.log(file);
  }
}
