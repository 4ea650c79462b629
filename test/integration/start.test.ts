import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { until } from '../harness/office.ts';
import { type StartRun, startRun } from '../harness/startRun.ts';

const PATIENCE = 90_000;
const NOTHING = { processes: false, files: [] };

let run: StartRun | undefined;
function start(args: readonly string[], env: Record<string, string> = {}): StartRun {
  run = startRun(args, env);
  return run;
}
afterEach(() => run?.close());

test('--once tells the whole story, exits 0 and leaves nothing behind', { timeout: PATIENCE }, async () => {
  const { ended, out, errors, leftBehind } = start(['--once']);
  expect(await ended, `${out()}${errors()}`).toBe(0);
  const lines = out().split('\n');
  const told = [
    /^the office is open: http:\/\/127\.0\.0\.1:\d+\/api /,
    /^1\. Three orders reach billing/,
    /"messageId": "msg-2", "reason": "MaxDeliveryCountExceeded"/,
    /> GET \/api\/summary\?by=reason/,
    /"key": "UnsupportedCurrency", "count": 2/,
    /"key": "MaxDeliveryCountExceeded", "count": 1/,
    /> POST \/api\/sources\/billing-order-placed\/plans/,
    /> POST \/api\/plans\/\w+-\w+\/run {2}\(key: replay, Prefer: wait=30\)/,
    /^ +\{"confirm":2,"ramp":false\}$/,
    /"messageId": "msg-1", "replayCount": 1, "replayId": "\w+-\w+"/,
    /"returned": 2/,
    /"deliveryCount": 0/,
    /"messageId": "msg-3", "replayCount": 3/,
    /"code": "over-limit", "level": "warn", "letters": 2/,
    /"code": "DLO_PLAN_BLOCKED"/,
    /keeps letters for PT2S only/,
    /"fate": "expired"/,
    /^All of this was checked/,
  ];
  const missing = told.filter((pattern) => !lines.some((line) => pattern.test(line)));
  expect(missing).toEqual([]);
  expect(lines.filter(({ length }) => length > 100)).toEqual([]);
  expect(errors()).toBe('');
  expect(await leftBehind()).toEqual(NOTHING);
});

test('a step that is not as told ends it with 1 and says what was expected and seen', {
  timeout: PATIENCE,
}, async () => {
  // As if collecting were broken: the host answers 404 for a function that is switched off.
  const { ended, errors, leftBehind } = start(['--once'], { 'AzureWebJobs.collectNow.Disabled': 'true' });
  expect(await ended).toBe(1);
  expect(errors()).toMatch(/Not as told: POST \/sources\/billing-order-placed\/collect\s+expected:\s+200\s+seen:/);
  expect(await leftBehind()).toEqual(NOTHING);
});

test('an office that cannot work is not called open', { timeout: PATIENCE }, async () => {
  const { ended, out, errors, leftBehind } = start(['--no-story'], { DLO_LEASE_SECONDS: 'soon' });
  expect(await ended).toBe(1);
  expect(out()).toBe('');
  expect(errors()).toContain('DLO_LEASE_SECONDS');
  expect(await leftBehind()).toEqual(NOTHING);
});

test('Ctrl-C during the story ends everything and leaves nothing behind', { timeout: PATIENCE }, async () => {
  const { line, signal, ended, leftBehind } = start([]);
  await line('3. The dry run');
  signal('SIGINT', 'group');
  expect(await ended).toBe(130);
  expect(await leftBehind()).toEqual(NOTHING);
});

test('Ctrl-C while it opens leaves nothing behind', { timeout: PATIENCE }, async () => {
  const { files, out, signal, ended, leftBehind } = start([]);
  await until(() => files().length > 0 || undefined, 'storage to be started');
  expect(out()).toBe('');
  signal('SIGINT', 'group');
  expect(await ended).toBe(130);
  expect(await leftBehind()).toEqual(NOTHING);
});

test('killed without mercy, its children go by themselves and take their files along', {
  timeout: PATIENCE,
}, async () => {
  const { line, signal, leftBehind } = start(['--no-story']);
  await line('the office is open');
  signal('SIGKILL', 'first');
  expect(await leftBehind()).toEqual(NOTHING);
});

test('the office stays open, and the calls it prints work as they stand', { timeout: PATIENCE }, async () => {
  const { line, out, signal, ended, leftBehind } = start(['--no-story']);
  await line('Four calls to try');
  const calls = out().match(/^curl (?:.*\\\n)+.*/gm) ?? [];
  expect(calls).toHaveLength(4);
  expect(calls.map(statusOf)).toEqual([200, 200, 201, 200]);
  const [broker] = out().match(/^export ServiceBusConnection=(?:.*\\\n)+.*/m) ?? [];
  const drain = `${broker}\n"${process.execPath}" local/drain.ts billing-order-placed --dry-run`;
  expect(execFileSync('sh', ['-c', drain], { encoding: 'utf8' })).toContain('billing-order-placed: 0 held letters');
  signal('SIGTERM', 'first');
  expect(await ended).toBe(0);
  expect(await leftBehind()).toEqual(NOTHING);
});

test('unknown arguments are answered with the usage', () => {
  const { ended, errors } = start(['--fast']);
  return ended.then((code) => {
    expect(code).toBe(2);
    expect(errors()).toMatch(/^usage: npm start/);
  });
});

/** Runs a command line in a shell and answers the HTTP status its curl saw. */
function statusOf(command: string): number {
  const folder = mkdtempSync(join(tmpdir(), 'curl-'));
  try {
    writeFileSync(join(folder, '.curlrc'), 'silent\nwrite-out = "\\n%{http_code}"\n');
    if (spawnSync('curl', ['--version']).error) standInForCurl(folder);
    const env = { ...process.env, CURL_HOME: folder, PATH: `${process.env.PATH}:${folder}` };
    const output = execFileSync('sh', ['-c', command], { env, encoding: 'utf8' });
    return Number(output.split('\n').at(-1));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** For machines without curl: knows -H, -d and a URL. */
function standInForCurl(folder: string): void {
  const file = join(folder, 'curl');
  writeFileSync(
    file,
    `#!${process.execPath}
    const headers = {}; let body, url; const args = process.argv.slice(2);
    while (args.length) {
      const arg = args.shift();
      if (arg === '-H') { const [name, value] = args.shift().split(': '); headers[name] = value; }
      else if (arg === '-d') body = args.shift();
      else url = arg;
    }
    fetch(url, { headers, method: body ? 'POST' : 'GET', body })
      .then(async (answer) => process.stdout.write(await answer.text() + '\\n' + answer.status));`,
  );
  chmodSync(file, 0o755);
}
