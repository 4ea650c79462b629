/**
 * Finds a Bicep compiler: the one that the variable BICEP names, `bicep` on the path, that of `az`, or that of NuGet, which is
 * kept in a cache outside the repository.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

/** The version that infra/azuredeploy.json is compiled with. */
export const BICEP_VERSION = '0.49.2';

/** A Bicep compiler. */
export interface Compiler {
  /** Path of its program. */
  readonly program: string;
  readonly version: string;
  /** Runs one of its commands. */
  run(args: readonly string[]): Promise<Ran>;
}

/** How a command ended, and what it said. */
export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'darwin-x64': 'osx-x64',
  'darwin-arm64': 'osx-arm64',
  'win32-x64': 'win-x64',
  'win32-arm64': 'win-arm64',
};
const EXE = process.platform === 'win32' ? 'bicep.exe' : 'bicep';

/** The first compiler that is there and answers; fetches nothing. `undefined` when there is none. */
export async function findCompiler(): Promise<Compiler | undefined> {
  const azure = process.env.AZURE_CONFIG_DIR ?? join(homedir(), '.azure');
  const places = [process.env.BICEP, 'bicep', join(azure, 'bin', EXE), cached()];
  for (const program of places) {
    const compiler = program ? await tried(program) : undefined;
    if (compiler !== undefined) return compiler;
  }
  return undefined;
}

/**
 * Fetches the compiler from NuGet into the cache, by `dotnet restore` and the package sources that the machine knows. Answers
 * why there is none when that cannot be done.
 */
export async function fetchCompiler(): Promise<Compiler | string> {
  const rid = PACKAGES[`${process.platform}-${process.arch}`];
  if (rid === undefined) return `NuGet has no compiler for ${process.platform} on ${process.arch}`;
  const folder = await mkdtemp(join(tmpdir(), 'bicep-'));
  try {
    const project = join(folder, 'compiler.csproj');
    const download = `<PackageDownload Include="Azure.Bicep.CommandLine.${rid}" Version="[${BICEP_VERSION}]" />`;
    const framework =
      '<TargetFramework>netstandard2.0</TargetFramework><DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>';
    const properties = `<PropertyGroup>${framework}<AutoReferenceNetStandard>false</AutoReferenceNetStandard></PropertyGroup>`;
    await writeFile(
      project,
      `<Project Sdk="Microsoft.NET.Sdk">${properties}<ItemGroup>${download}</ItemGroup></Project>`,
    );
    await mkdir(cache(), { recursive: true });
    const restored = await run('dotnet', ['restore', project, '--packages', cache(), '--nologo', '-v', 'quiet']);
    if (restored === undefined) return 'there is no dotnet to fetch one from NuGet with';
    if (restored.code !== 0)
      return `NuGet does not give one: ${`${restored.stdout}${restored.stderr}`.trim().slice(0, 400)}`;
    const program = cached();
    if (program === undefined) return 'NuGet has none for this machine';
    await chmod(program, 0o755);
    return (await tried(program)) ?? `what NuGet gave does not run: ${program}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function cache(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dead-letter-office', 'nuget');
}

function cached(): string | undefined {
  const rid = PACKAGES[`${process.platform}-${process.arch}`];
  return rid && join(cache(), `azure.bicep.commandline.${rid}`, BICEP_VERSION, 'tools', EXE);
}

async function tried(program: string): Promise<Compiler | undefined> {
  const version = await run(program, ['--version']);
  const found = /Bicep CLI version (\d+\.\d+\.\d+)/.exec(version?.stdout ?? '')?.[1];
  if (found === undefined) return undefined;
  return {
    program,
    version: found,
    async run(args) {
      const ran = await run(program, args);
      if (ran === undefined) throw new Error(`${program} is gone`);
      return ran;
    },
  };
}

/** `undefined` when there is no such program. */
async function run(program: string, args: readonly string[]): Promise<Ran | undefined> {
  const env = {
    ...process.env,
    DOTNET_NOLOGO: '1',
    DOTNET_CLI_TELEMETRY_OPTOUT: '1',
    DOTNET_SKIP_FIRST_TIME_EXPERIENCE: '1',
  };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  }
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, ...said };
  } catch {
    return undefined;
  }
}
