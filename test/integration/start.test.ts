import { afterEach, expect, test } from 'vitest';
import { notPrinted } from '../docs/shown.ts';
import { runShell } from '../harness/curl.ts';
import { until } from '../harness/office.ts';
import { type StartRun, startRun } from '../harness/startRun.ts';

const PATIENCE = 90_000;
/** What follows when the office stays open, which `--once` does not. */
const OPEN = '\nThe office stays open: http://127.0.0.1:1/api. Ctrl-C closes it and leaves nothing behind.\n';
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
  expect(notPrinted('README.md', 'the office is open', `${out()}${OPEN}`)).toEqual([]);
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
  const statuses: (number | undefined)[] = [];
  for (const call of calls) statuses.push((await runShell(call)).status);
  expect(statuses).toEqual([200, 200, 201, 200]);
  const [broker] = out().match(/^export ServiceBusConnection=(?:.*\\\n)+.*/m) ?? [];
  const drain = `${broker}\n"${process.execPath}" cli/drain.ts billing-order-placed --dry-run`;
  expect((await runShell(drain)).out).toContain('billing-order-placed: 0 held letters');
  signal('SIGTERM', 'first');
  expect(await ended).toBe(0);
  expect(await leftBehind()).toEqual(NOTHING);
});

test('unknown arguments are answered with the usage', () => {
  const { ended, errors } = start(['--fast']);
  return ended.then((code) => {
    expect(code).toBe(2);
    expect(errors()).toMatch(/^usage: npm start/m);
  });
});
