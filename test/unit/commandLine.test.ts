import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '../..');
const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
/** The commands that are programs of this project: all but those of other tools. */
const OWN = Object.entries(scripts).flatMap(([name, script]) => {
  const file = /^node (\S+\.ts)$/.exec(script)?.[1];
  return file === undefined ? [] : [[name, file] as const];
});

async function run(file: string, ...args: string[]) {
  const child = spawn(process.execPath, [file, ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code, stdout, stderr };
}

describe('every command', () => {
  it('is known by this test, or belongs to another tool', () => {
    const others = Object.keys(scripts).filter((name) => !OWN.some(([own]) => own === name));
    expect(others.toSorted()).toEqual(['check', 'format', 'test', 'test:long']);
  });

  it.each(OWN)('prints how it is used, and starts nothing: %s', async (name, file) => {
    const { code, stdout, stderr } = await run(file, '--help');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const call = name === 'start' ? 'npm start' : `npm run ${name}`;
    // Nothing but the usage: whatever else it did would have been told.
    expect(stdout).toMatch(new RegExp(`^usage: ${call}[ \n]`));
    for (const line of stdout.trimEnd().split('\n').slice(1)) expect(line).toMatch(/^ {2}/);
  });

  it.each(OWN)('tells an option that it does not know, and ends with 2: %s', async (_, file) => {
    const { code, stdout, stderr } = await run(file, '--no-such-option');
    expect(code).toBe(2);
    expect(stdout + stderr).toContain("'--no-such-option'");
    expect(stdout + stderr).toContain('usage: npm ');
  });
});
