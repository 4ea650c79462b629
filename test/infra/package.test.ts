/** What azd and the pipeline deploy. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { layPackage, packedFiles } from '../../infra/package.ts';
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
  test('is what .funcignore leaves, folders included', async () => {
    write('.funcignore', '# a comment\n.*\n*.md\ndist/*.map\nsrc\n');
    for (const path of [
      'host.json',
      'README.md',
      '.env',
      'dist/main.js',
      'dist/main.js.map',
      'dist/parts/a.js',
      'src/a.ts',
    ])
      write(path);
    expect(await packedFiles(folder)).toEqual(['dist/main.js', 'dist/parts/a.js', 'host.json']);
  });

  test('is never laid over the repository', async () => {
    await expect(layPackage(ROOT)).rejects.toThrow('holds the repository');
    await expect(layPackage(join(ROOT, '..'))).rejects.toThrow('holds the repository');
    expect(existsSync(join(ROOT, 'catalog.json'))).toBe(true);
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
