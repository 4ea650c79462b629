/** How every command reads its line: `--help` prints how it is used and starts nothing, and what is wrong with a line is told. */

/** Exit code for a line that makes no sense. */
export const MISUSED = 2;

/** Something is wrong with a command line; the message says what. */
export class Misused extends Error {
  override readonly name = 'Misused';
}

/** Where a command writes; by default what it tells to stdout, and what is wrong to stderr. */
export interface Output {
  readonly say?: (line: string) => void;
  readonly complain?: (line: string) => void;
}

/**
 * Runs a command and gives its exit code: 0 for `--help` (or `-h`) among `args`, which prints `usage`; {@link MISUSED} with the
 * reason and `usage` when `act` throws {@link Misused} or what `parseArgs` throws; else what `act` gives or throws.
 */
export async function runCommand(
  usage: string,
  args: readonly string[],
  act: (args: string[]) => Promise<number>,
  { say = print, complain = warn }: Output = {},
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    say(usage);
    return 0;
  }
  try {
    return await act([...args]);
  } catch (error) {
    if (!isMisuse(error)) throw error;
    complain(`${error.message}\n${usage}`);
    return MISUSED;
  }
}

function isMisuse(error: unknown): error is Error {
  if (error instanceof Misused) return true;
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
}

const print = (line: string) => void process.stdout.write(`${line}\n`);
const warn = (line: string) => void process.stderr.write(`${line}\n`);
