/** How a command that tells something ends: with 0, with the exit code of a signal, or with 1 and what was not as told. */
import { inspect } from 'node:util';
import { type Stopped, stopSignal } from './signals.ts';
import { NotAsTold } from './story/check.ts';

/** Log lines that are kept, to be shown when something goes wrong. */
const KEPT_LINES = 15;

const complain = (line: string) => void process.stderr.write(`${line}\n`);

/**
 * Runs `act` until it ends or the process is told to stop, and gives the exit code. What `log` takes is shown at once when
 * `verbose`, else only its last lines when something goes wrong.
 */
export async function runToEnd(
  act: (signal: AbortSignal, log: (line: string) => void) => Promise<void>,
  verbose: boolean,
): Promise<number> {
  // A reader that goes away (`npm start | head`) is a wish to stop, too.
  process.stdout.on('error', () => process.kill(process.pid, 'SIGTERM'));
  const signal = stopSignal();
  const recent: string[] = [];
  const keep = (line: string) => {
    recent.push(line);
    if (recent.length > KEPT_LINES) recent.shift();
  };
  try {
    await act(signal, verbose ? complain : keep);
    return 0;
  } catch (error) {
    if (signal.aborted) return (signal.reason as Stopped).exitCode;
    for (const line of recent) complain(line);
    complain(error instanceof NotAsTold ? notAsTold(error) : `\n${inspect(error)}`);
    return 1;
  }
}

function notAsTold({ message, expected, seen }: NotAsTold): string {
  const show = (value: unknown) => inspect(value, { depth: 6, breakLength: 90 }).replaceAll('\n', '\n    ');
  return `\nNot as told: ${message}\n  expected:\n    ${show(expected)}\n  seen:\n    ${show(seen)}`;
}
