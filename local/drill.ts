/** `npm run drill`: ten minutes of practice in less than one. Opens an office of its own, plays the drill on it, and ends. */
import { parseArgs } from 'node:util';
import { runCommand } from '../cli/commandLine.ts';
import { runToEnd } from './ending.ts';
import { aborted } from './signals.ts';

const USAGE = `usage: npm run drill -- [--verbose]
  ends with 0 when all was as told, else with 1 and what was expected and seen
  --verbose   shows the log of host, app and broker`;

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function run(signal: AbortSignal, log: (line: string) => void): Promise<void> {
  const [{ openLocalOffice }, { CATALOG, CONFIG }] = await Promise.all([
    import('./office.ts'),
    import('./drill/queues.ts'),
  ]);
  // By default a run that waits looks again every 5 s; nobody wants to wait for that in a drill.
  const settings = { DLO_RETRY_SECONDS: '0.5' };
  const office = await openLocalOffice({ catalog: CATALOG, config: CONFIG, settings, log, signal });
  try {
    print(`the office is open: ${office.url} (after ${(performance.now() / 1000).toFixed(1)} s)`);
    const ended = office.ended.then(() => {
      throw new Error('the app ended by itself');
    });
    await Promise.race([play(office, log), ended, aborted(signal)]);
    print(`\nAll of this was checked while it was told, in ${Math.round(performance.now() / 1000)} s.`);
  } finally {
    await office.close();
  }
}

async function play(
  office: Awaited<ReturnType<typeof import('./office.ts')['openLocalOffice']>>,
  log: (line: string) => void,
) {
  const [{ ServiceBusClient }, { openCompany }, { playDrill }, { Desk }, { WIDTH, wrap }] = await Promise.all([
    import('@azure/service-bus'),
    import('./drill/company.ts'),
    import('./drill/scenes.ts'),
    import('./story/desk.ts'),
    import('./story/print.ts'),
  ]);
  const client = new ServiceBusClient(office.broker);
  const company = openCompany(client, log);
  let steps = 0;
  try {
    await playDrill({
      desk: new Desk(office, print),
      company,
      step: (title) => {
        for (const line of wrap(`${++steps}. ${title}`, WIDTH))
          print(line.startsWith(`${steps}. `) ? `\n${line}` : `   ${line}`);
      },
      tell: (text) => {
        for (const line of wrap(text, WIDTH - 3)) print(`   ${line}`);
      },
    });
  } finally {
    await company.close();
    await client.close();
  }
}

async function main(args: string[]): Promise<number> {
  const { verbose = false } = parseArgs({ args, options: { verbose: { type: 'boolean' } } }).values;
  return runToEnd(run, verbose);
}

process.exit(await runCommand(USAGE, process.argv.slice(2), main));
