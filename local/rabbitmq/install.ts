/**
 * RabbitMQ servers for tests and for `npm start -- --rabbitmq`, made from Debian's packages where they are missing: 3.10 of
 * Debian 12 is installed, 4.0 of Debian 13 is unpacked into a folder of its own and run there, beside the machine's own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The versions that there are, oldest first. */
export const VERSIONS = ['3.10', '4.0'] as const;
export type Version = (typeof VERSIONS)[number];

/** A server that can be started. */
export interface Installed {
  readonly version: Version;
  /** The folder it sees as the root of the file system; `/` is the machine's own. */
  readonly root: string;
}

/** Why a version cannot be had here. */
export interface Unavailable {
  readonly version: Version;
  readonly why: string;
}

const SERVER = 'usr/lib/rabbitmq/bin/rabbitmq-server';
const SUITE = 'trixie';

/** Where servers of other Debian releases are kept: outside of the project, so that every checkout finds them. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'dead-letter-office', 'rabbitmq');
}

/**
 * The server of a version, installed first where it is missing and that is possible here. `log` takes what is being done, a
 * line each. Needs root and Debian's packages; where something is missing, the answer says what.
 */
export async function install(version: Version, log: (line: string) => void): Promise<Installed | Unavailable> {
  const root = version === '3.10' ? '/' : join(cacheFolder(), SUITE);
  if (!existsSync(join(root, SERVER))) {
    if (process.getuid?.() !== 0) return { version, why: 'it is not installed, and installing it needs root' };
    try {
      await (version === '3.10' ? installPackages(['rabbitmq-server'], log) : unpack(root, log));
    } catch (error) {
      return { version, why: error instanceof Error ? error.message : String(error) };
    }
  }
  const found = version === '3.10' ? await installedVersion() : version;
  return found === version ? { version, root } : { version, why: `this machine's packages have ${found}` };
}

/** Major and minor version of the machine's own server. */
async function installedVersion(): Promise<string> {
  const text = await run('dpkg-query', ['--show', '--showformat', '$' + '{Version}', 'rabbitmq-server']);
  return text.split('.').slice(0, 2).join('.');
}

/** Installs packages of the machine's own release; no service is started. */
async function installPackages(names: readonly string[], log: (line: string) => void): Promise<void> {
  log(`installing ${names.join(', ')}`);
  // Without a run level a package starts nothing when it is set up.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  await run('apt-get', ['update', '--quiet'], env);
  await run('apt-get', ['install', '--yes', '--quiet', '--no-install-recommends', ...names], env);
}

/** Unpacks a small Debian 13 with the server into `root`. */
async function unpack(root: string, log: (line: string) => void): Promise<void> {
  if (!existsSync('/usr/sbin/debootstrap')) await installPackages(['debootstrap'], log);
  const mirror = await mirrorOf();
  await mkdir(cacheFolder(), { recursive: true });
  // Whole or not at all: one that was interrupted must not be taken for a server.
  const unfinished = `${root}.${process.pid}`;
  log(`unpacking Debian ${SUITE} with rabbitmq-server, about a minute`);
  try {
    await run('debootstrap', ['--variant=minbase', '--include=rabbitmq-server', SUITE, unfinished, mirror]);
    await rename(unfinished, root).catch((error: unknown) => {
      if (!existsSync(join(root, SERVER))) throw error; // else somebody else was quicker
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Where this machine has its packages from. */
async function mirrorOf(): Promise<string> {
  const format = '$' + '(REPO_URI) $' + '(SUITE)';
  const lines = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages', 'Origin: Debian']);
  const places = lines.split('\n').map((line) => line.split(' '));
  const place = places.find(
    ([uri, suite]) => uri !== undefined && !/security|updates|backports/.test(`${uri} ${suite}`),
  );
  if (place?.[0] === undefined) throw new Error('apt knows no place for Debian packages');
  return place[0];
}

/** Runs a program and gives what it printed. Throws with its last words when it fails or is not there. */
async function run(program: string, args: readonly string[], env = process.env): Promise<string> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  let complaint = '';
  child.stdout.on('data', (bytes: Buffer) => {
    printed += bytes.toString();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    complaint += bytes.toString();
  });
  const [code] = await once(child, 'close');
  if (code !== 0) {
    const last = `${complaint}\n${printed}`.trim().split('\n').slice(-5).join('; ');
    throw new Error(`${program} ${args[0]} failed: ${last}`);
  }
  return printed;
}
