import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runShell } from '../harness/curl.ts';
import { openTestOffice, type TestOffice, until } from '../harness/office.ts';
import { commandsOf, treatmentOf } from './commands.ts';
import { pages, read } from './pages.ts';

const COMMANDS = pages().flatMap(({ name, blocks }) =>
  blocks
    .filter(({ language }) => language === 'sh')
    .flatMap((block) => commandsOf(block).map((command) => ({ page: name, line: block.line, command }))),
);

test('of every command line in the pages it is known how it is checked', () => {
  expect(COMMANDS.filter(({ command }) => treatmentOf(command) === undefined)).toEqual([]);
});

test('every shell block can be parsed by a shell', () => {
  for (const { name, blocks } of pages()) {
    const script = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
    if (script.length === 0) continue;
    expect(() => execFileSync('sh', ['-n', '-c', script.join('\n')], { stdio: 'pipe' }), name).not.toThrow();
  }
});

test('a command that is said to be run elsewhere is run there', () => {
  for (const { page, line, command } of COMMANDS) {
    const treatment = treatmentOf(command);
    if (treatment?.kind === 'elsewhere') expect(read(treatment.file), `${page}:${line}`).toMatch(treatment.where);
  }
});

const LOOK = 'npm run drain -- "$SOURCE"';

/** What the page of operating shows as the output of {@link LOOK}, with as many letters as there are in `out`. */
function outputShown(source: string, out: string): string[] {
  const [, shown = ''] = /\n\n((?: {4}.*\n)+)/.exec(read('docs/operate.md').split(LOOK).at(-1) ?? '') ?? [];
  const lines = shown.trimEnd().split('\n');
  expect(lines[0]).toBe(`    ${source}: 2 held letters.`);
  const count = /: (\d+) held letters/.exec(out)?.[1] ?? '';
  return lines.map((line) => line.slice(4).replace(/: 2(?=;| held)/, `: ${count}`));
}

const RUN = COMMANDS.filter(({ command }) => treatmentOf(command)?.kind === 'run');

describe('against an open office', () => {
  const source = 'billing-order-placed';
  const queue = 'billing.order-placed';
  let office: TestOffice;
  const env: Record<string, string> = { SOURCE: source, ME: 'on-call' };

  beforeAll(async () => {
    const catalog = z.object({ sources: z.array(z.record(z.string(), z.unknown())) });
    const { sources } = catalog.parse(JSON.parse(read('catalog.json')));
    const topics = { 'order-placed': { notification: {} } };
    office = await openTestOffice({
      sources,
      topics,
      queues: { 'notification.order-placed.replay': {}, [queue]: { DeadLetteringOnMessageExpiration: true } },
    });
    const { read: READ_KEY, body: BODY_KEY, replay: REPLAY_KEY, discard: DISCARD_KEY } = office.keys;
    const OFFICE = `${office.process.url}/api`;
    Object.assign(env, { OFFICE, READ_KEY, BODY_KEY, REPLAY_KEY, DISCARD_KEY });
    env.ServiceBusConnection = office.broker.connectionString;
    env.DLO_ADMINISTRATION_URL = `http://127.0.0.1:${office.broker.adminPort}`;
  });
  afterAll(() => office?.close());

  const plans = async (state: string) =>
    (await office.get<{ plans: { id: string }[] }>(`plans?source=${source}&state=${state}`)).plans;

  /** Runs of earlier commands are ended, all but that of `spared`: the pages tell of one at a time. */
  async function endRuns(spared?: string): Promise<void> {
    await until(async () => {
      const active = [...(await plans('running')), ...(await plans('observing'))].filter(({ id }) => id !== spared);
      for (const { id } of active) await office.call('replay', 'POST', `plans/${id}/cancel`);
      return active.length === 0;
    }, 'earlier runs to be over');
  }

  /** The pages count on two letters that can be planned: what an earlier command moved dies again. */
  async function twoLetters(): Promise<void> {
    await office.deadLetterAll(queue);
    const missing = 2 - office.broker.messages(`${queue}/$DeadLetterQueue`).length;
    if (missing > 0) await office.deadLetters(missing, queue, source);
    else await office.held(2, queue, source);
  }

  /** Where there happen to be more than two letters, the number of the plan is repeated and not that of the page. */
  async function confirmed(command: string): Promise<string> {
    if (!command.includes('"confirm": 2') || env.PLAN === undefined) return command;
    const { counts } = await office.getPlan(env.PLAN);
    return command.replace('"confirm": 2', `"confirm": ${counts.pending}`);
  }

  /** The key of a cause, as a reader would take it from a list. */
  async function aCause(): Promise<string> {
    const { groups } = await office.get<{ groups: { fingerprint: string }[] }>('groups');
    return groups[0]?.fingerprint ?? '';
  }

  // In the order of the pages: a plan that was made above is run below.
  test.each(RUN)('$page:$line: $command', async ({ command }) => {
    // What is cancelled must still be there: the run that was resumed before may have come to its end by now.
    const isCancel = command.includes('/cancel"');
    await endRuns(isCancel ? undefined : env.PLAN);
    if (/\/plans" |\$CAUSE|\$NUMBER/.test(command)) await twoLetters();
    if (command.includes('$NUMBER')) env.NUMBER = (await office.letters(source))[0]?.sequenceNumber ?? '';
    if (command.includes('$CAUSE')) env.CAUSE = await aCause();
    if (isCancel) await twoLetters();
    const own = isCancel ? { ...env, PLAN: (await office.plan({}, source)).id } : env;
    const { code, status, out, errors } = await runShell(await confirmed(command), own);
    expect(code, `${out}${errors}`).toBe(0);
    if (status !== undefined) expect(String(status), out).toMatch(/^20\d$/);
    const [, plan] = /"id":"(\d{8}t\d{6}-[a-z2-7]{8})"/.exec(out) ?? [];
    if (plan !== undefined) env.PLAN = plan;
    if (command === LOOK) for (const shown of outputShown(source, out)) expect(out).toContain(shown);
  });

  test('there are commands that were run', () => {
    expect(RUN.length).toBeGreaterThan(10);
  });
});
