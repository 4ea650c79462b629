/** What azd and the pipeline deploy. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { layPackage } from '../../infra/package.ts';
import { fields } from './arm/functions.ts';
import { OWN } from './catalogs.ts';
import { committed, deployed, ROOT } from './compiled.ts';

const folder = mkdtempSync(join(tmpdir(), 'package-'));
afterAll(() => rmSync(folder, { recursive: true }));
const write = (path: string, content = '') => {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), content);
};

describe('the package', () => {
  test('is what is listed and what was built, whatever else lies in the checkout', async () => {
    for (const path of ['host.json', 'package.json', 'catalog.json']) write(path, '{}');
    const others = ['coverage/secret.pem', 'secret.pem', 'dist/secret.pem', 'dist/old.js', '.env', 'notes.json'];
    for (const path of others) write(path);
    const laid = await layPackage(join(folder, 'out'), folder);
    expect(laid.filter((path) => !path.startsWith('dist/'))).toEqual(['catalog.json', 'host.json', 'package.json']);
    expect(laid).toEqual(expect.arrayContaining(['dist/main.js', 'dist/start.js', 'dist/package.json']));
    expect(laid.filter((path) => others.includes(path))).toEqual([]);
    const there = readdirSync(join(folder, 'out'), { recursive: true, withFileTypes: true });
    expect(there.filter((entry) => entry.isFile())).toHaveLength(laid.length);
  });

  test('is never laid over the repository', async () => {
    await expect(layPackage(ROOT)).rejects.toThrow('holds the repository');
    await expect(layPackage(join(ROOT, '..'))).rejects.toThrow('holds the repository');
    expect(existsSync(join(ROOT, 'catalog.json'))).toBe(true);
  });

  test('is laid over another package, and over nothing else', async () => {
    await expect(layPackage(join(folder, 'out'), folder)).resolves.toContain('dist/main.js');
    for (const other of ['coverage', 'dist']) {
      await expect(layPackage(join(folder, other), folder)).rejects.toThrow('is no part of a package');
    }
    expect(existsSync(join(folder, 'coverage/secret.pem'))).toBe(true);
    await expect(layPackage(join(folder, 'secret.pem'), folder)).rejects.toThrow('is no folder');
    symlinkSync(ROOT, join(folder, 'link'));
    await expect(layPackage(join(folder, 'link'))).rejects.toThrow('holds the repository');
  });
});

describe('azure.yaml', () => {
  const { services, requiredVersions, infra } = parse(readFileSync(join(ROOT, 'azure.yaml'), 'utf8')) as {
    services: Record<string, { project: string; dist: string; host: string; language: string; remoteBuild: boolean }>;
    requiredVersions: { azd: string };
    infra: { path: string; module: string };
  };
  const [[name, service] = ['', undefined], ...others] = Object.entries(services);

  test('names the service as the template tags the app', () => {
    expect(others).toEqual([]);
    const site = deployed(committed(), OWN).resources.find(({ type }) => type === 'Microsoft.Web/sites');
    expect(site && fields(site.body.tags)['azd-service-name']).toBe(name);
    expect(existsSync(join(ROOT, infra.path, `${infra.module}.bicep`))).toBe(true);
    expect(existsSync(join(ROOT, infra.path, `${infra.module}.parameters.json`))).toBe(true);
  });

  test('deploys a package that is built here: nothing is built or installed on the other side', () => {
    expect(service).toMatchObject({ host: 'function', language: 'js', remoteBuild: false });
    const project = join(ROOT, service?.project ?? '');
    const { scripts, ...rest } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as Record<
      string,
      unknown
    > & {
      scripts: { build: string };
    };
    expect(scripts.build).toContain(`npm run --prefix ../.. package -- ${service?.project}/${service?.dist}`);
    // azd installs these; and it takes a .funcignore there for what the package leaves out.
    expect(rest).not.toHaveProperty('dependencies');
    expect(existsSync(join(project, '.funcignore'))).toBe(false);
    expect(requiredVersions.azd).toBe('>= 1.23.12');
  });
});
