/** `docs/conformance.md`, made from the beliefs and the results. */
import type { Belief } from './belief.ts';
import type { Cell, Results } from './record.ts';
import { COLUMNS, type Column } from './target.ts';

const HEAD = `# What the office believes of Service Bus

Everything the office promises rests on how Azure Service Bus behaves: that a dead-lettered message keeps its number,
that a letter can be deferred in a dead-letter queue, that a lock can be settled from another connection, and so on. Some of
it Microsoft documents, some of it was seen by others, some of it is only likely. Each belief here is one sentence with one
test, in \`test/conform/beliefs/\`, which runs through the official client and the office's own links against any broker:

\`\`\`sh
npm run conform                                       # the local broker
npm run conform -- "<connection string>" --name "Azure Standard, westeurope"
npm run conform -- "<connection string>" --only B07   # one belief; or several: --only B07,B20
npm run conform -- "<connection string>" --entities entities.json
npm run conform -- --emulator-config > Config.json    # entities for Microsoft's emulator
\`\`\`

A run makes its own entities, named \`dlo-conform-…\`, and removes them; that takes a key with the right to manage. Without it,
name entities in a file such as \`{ "plain": "my-queue", "topic": "my-topic" }\`; \`test/conform/shapes.ts\` says how each must be
set up. **Named entities are emptied.** A run writes this page anew from \`docs/conformance.json\` and keeps the results of other
brokers. On a real namespace it takes some ten minutes, as locks and windows are waited out, and costs a few thousand operations.

**No belief counts as true of Azure before its cell says so.** Until then it is what the office was built on.
`;

/** The page. */
export function pageOf(beliefs: readonly Belief[], results: Results): string {
  const columns = Object.entries(COLUMNS) as [Column, string][];
  const rows = beliefs.map(({ id, belief, source }) => [
    id,
    belief,
    source,
    ...columns.map(([column]) => cellText(column, results[column]?.[id])),
  ]);
  const head = ['', 'Belief', 'Source', ...columns.map(([, title]) => title)];
  return [
    HEAD,
    tally(beliefs, columns, results),
    '',
    rowText(head),
    rowText(head.map(() => '---')),
    ...rows.map(rowText),
    '',
  ].join('\n');
}

/** What stands in a cell. */
export function cellText(column: Column, cell: Cell | undefined): string {
  if (cell === undefined) return column === 'standard' || column === 'premium' ? 'not yet run on Azure' : 'not yet run';
  const where = cell.target === COLUMNS[column] ? '' : `, ${cell.target}`;
  const when = `${cell.on}, ${cell.version}${where}`;
  if (cell.outcome === 'passed') return `passed (${when})`;
  if (cell.outcome === 'failed') return `**FAILED** (${when}): ${cell.seen}`;
  return `not checkable here (${when}): ${cell.why}`;
}

function tally(beliefs: readonly Belief[], columns: readonly [Column, string][], results: Results): string {
  const lines = columns.map(([column, title]) => {
    const cells = beliefs.flatMap(({ id }) => results[column]?.[id] ?? []);
    const count = (outcome: Cell['outcome']) => cells.filter((cell) => cell.outcome === outcome).length;
    if (cells.length === 0) return `- ${title}: ${cellText(column, undefined)}`;
    const failed = count('failed') > 0 ? `, **${count('failed')} failed**` : '';
    const not = count('not-checkable') > 0 ? `, ${count('not-checkable')} not checkable` : '';
    return `- ${title}: ${count('passed')} of ${beliefs.length} passed${failed}${not}`;
  });
  return lines.join('\n');
}

function rowText(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`;
}
