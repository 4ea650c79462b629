/** What was seen where and when, kept as JSON beside the page that is made from it. */
import { readFile, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { Outcome } from './run.ts';
import { COLUMNS, type Column } from './target.ts';

const cell = z.intersection(
  z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('passed') }),
    z.object({ outcome: z.literal('failed'), seen: z.string() }),
    z.object({ outcome: z.literal('not-checkable'), why: z.string() }),
  ]),
  z.object({
    /** Day of the run, UTC. */
    on: z.iso.date(),
    /** What was tested: `Azure Standard, westeurope`. */
    target: z.string(),
    /** Of the office whose beliefs these are. */
    version: z.string(),
  }),
);
const columns = Object.keys(COLUMNS) as [Column, ...Column[]];
const schema = z.partialRecord(z.enum(columns), z.record(z.string(), cell));

/** The result of one belief on one broker. */
export type Cell = z.output<typeof cell>;
/** All results, by column and belief. */
export type Results = z.output<typeof schema>;

/** The file's results; none when there is no file yet. */
export async function readResults(file: URL): Promise<Results> {
  try {
    return schema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return {};
    throw error;
  }
}

/** The results with one run added: other columns, and beliefs that were not run, keep what they had. */
export function withRun(
  results: Results,
  column: Column,
  outcomes: ReadonlyMap<string, Outcome>,
  run: Pick<Cell, 'on' | 'target' | 'version'>,
): Results {
  const cells = { ...results[column] };
  for (const [id, outcome] of outcomes) cells[id] = { ...outcome, ...run };
  const inOrder = Object.entries(cells).sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...results, [column]: Object.fromEntries(inOrder) };
}

/** Writes the results. */
export async function writeResults(file: URL, results: Results): Promise<void> {
  await writeFile(file, resultsText(results));
}

/** The text of the file. */
export function resultsText(results: Results): string {
  return `${JSON.stringify(results, undefined, 2)}\n`;
}
