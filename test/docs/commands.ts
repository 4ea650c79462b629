/** Command lines in the pages' shell blocks, and what is done with each. */
import type { Block } from './pages.ts';
import { isKnownTool } from './tools.ts';

/** The command lines of a block: comments left out, continued lines joined. */
export function commandsOf({ text }: Block): string[] {
  const joined = text.replaceAll(/\\\n\s*/g, ' ');
  return joined
    .split('\n')
    .map((line) => line.replace(/(?:^|\s)#(?= ).*$/, '').trim())
    .filter((line) => line !== '');
}

/** How a command line is checked. */
export type Treatment =
  /** Run against an open office. */
  | { readonly kind: 'run' }
  /** Too heavy to be run twice: `where` has what runs it, in a file of that name. */
  | { readonly kind: 'elsewhere'; readonly file: string; readonly where: RegExp }
  | { readonly kind: 'glue' }
  /** Cannot be run here, without Azure or a tool that is signed in: its name and its flags are known. */
  | { readonly kind: 'tool' };

/** Commands that other tests or the pipeline run. */
const ELSEWHERE: readonly (readonly [command: RegExp, file: string, where: RegExp])[] = [
  [/^npm ci$/, '.ci/run', /^npm ci\b/m],
  [/^npm run package -- package$/, '.github/workflows/check.yml', /npm run package -- package$/m],
  [/^npm run check$/, '.ci/run', /^npm run check$/m],
  [/^npm start(?: -- --once)?$/, 'test/integration/start.test.ts', /start\(\['--once'\]\)/],
  [/^npm run drill$/, 'test/docs/drill.test.ts', /startRun\(\[\], \{\}, 'drill'\)/],
  [/^npm test$/, '.ci/run', /^npm test\b/m],
  [/^npm run build$/, 'test/integration/bundle.test.ts', /build/],
  [/^npm run conform(?: -- .*)?$/, 'test/conform/conform.test.ts', /runBelief/],
  [/^npm run archive -- (?:list|show|save|send) .*$/, 'test/integration/archive.test.ts', /run\(\.\.\.call, '--yes'/],
  [/^npm run broker(?: -- .*)?$/, 'test/broker/command.test.ts', /main\.ts/],
];

/** Parts of a loop: what stands in it is looked at by itself. */
const GLUE = /^(?:for \w+ in .*; do|done)$/;

/** What is done with a command line; `undefined`: nobody has decided. */
export function treatmentOf(command: string): Treatment | undefined {
  if (/^curl\s/.test(command) || /^npm run drain\b/.test(command)) return { kind: 'run' };
  if (GLUE.test(command)) return { kind: 'glue' };
  for (const [pattern, file, where] of ELSEWHERE) {
    if (pattern.test(command)) return { kind: 'elsewhere', file, where };
  }
  return isKnownTool(command) ? { kind: 'tool' } : undefined;
}
