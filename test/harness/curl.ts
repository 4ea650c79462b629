/** Runs command lines with curl in them, as they stand in a page, also on machines without curl. */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** How a command line ended. `status` is the HTTP status of the last curl in it. */
export interface ShellRun {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
  readonly status: number | undefined;
}

const MARK = 'http-status:';

/** Runs a command line in a shell, in the repository, with `env` beside the environment. */
export async function runShell(command: string, env: Readonly<Record<string, string>> = {}): Promise<ShellRun> {
  const folder = mkdtempSync(join(tmpdir(), 'curl-'));
  try {
    writeFileSync(join(folder, '.curlrc'), `silent\nwrite-out = "\\n${MARK}%{http_code}"\n`);
    if (spawnSync('curl', ['--version']).error) standIn(folder);
    const options = {
      cwd: join(import.meta.dirname, '../..'),
      env: { ...process.env, CURL_HOME: folder, PATH: `${process.env.PATH}:${folder}`, ...env },
    };
    return await new Promise((resolve) => {
      execFile('sh', ['-ec', command], options, (error, stdout, stderr) => {
        const [, status] = new RegExp(`.*${MARK}(\\d+)`, 's').exec(stdout) ?? [];
        resolve({
          code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1,
          out: stdout.replaceAll(new RegExp(`\\n?${MARK}\\d+`, 'g'), ''),
          errors: stderr,
          status: status === undefined ? undefined : Number(status),
        });
      });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Knows -H, -d, -X, flags without a value, and a URL. */
function standIn(folder: string): void {
  const file = join(folder, 'curl');
  writeFileSync(
    file,
    `#!${process.execPath}
    const headers = {}; let body, method, url; const args = process.argv.slice(2);
    while (args.length) {
      const arg = args.shift();
      if (arg === '-H') { const [name, value] = args.shift().split(': '); headers[name] = value; }
      else if (arg === '-d') body = args.shift();
      else if (arg === '-X') method = args.shift();
      else if (!arg.startsWith('-')) url = arg;
    }
    fetch(url, { headers, method: method ?? (body ? 'POST' : 'GET'), body })
      .then(async (answer) => process.stdout.write(await answer.text() + '\\n${MARK}' + answer.status));`,
  );
  chmodSync(file, 0o755);
}
