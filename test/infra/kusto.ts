/**
 * Checks log queries with Microsoft's own parser, against the columns that the tables have. In a process of its own: the
 * library is transpiled from C#, large, and leaves things on the global object.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { z } from 'zod';

/** The columns that are used, of what the Azure Monitor reference lists for the tables of Application Insights. */
const TABLES: Readonly<Record<string, string>> = {
  AppMetrics: '(TimeGenerated: datetime, Name: string, Properties: dynamic, Sum: real, ItemCount: int)',
  AppEvents: '(TimeGenerated: datetime, Name: string, Properties: dynamic)',
};

const textsSchema = z.array(z.string());

/** What is wrong with each of the queries, a line each; empty: nothing. Takes seconds, most of them to load the library. */
export function queryProblems(queries: readonly string[]): Map<string, string[]> {
  const input = JSON.stringify(queries);
  const { status, stdout, stderr } = spawnSync(process.execPath, [import.meta.filename], { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the parser failed: ${stderr}`);
  const problems = z.array(textsSchema).parse(JSON.parse(stdout));
  return new Map(queries.map((query, i) => [query, problems[i] ?? []]));
}

interface Diagnostics {
  readonly Count: number;
  getItem(index: number): { readonly Severity: string; readonly Message: string };
}

/** What is used of the library. Constructors have numbers. */
interface Kusto {
  readonly KustoCode: { ParseAndAnalyze(query: string, globals: unknown): { GetDiagnostics(): Diagnostics } };
  readonly GlobalState: { readonly Default: { WithDatabase(database: unknown): unknown } };
  readonly Symbols: {
    readonly TableSymbol: { From(columns: string): { WithName(name: string): unknown } };
    readonly DatabaseSymbol: { readonly $ctor1: new (name: string, members: unknown[]) => unknown };
  };
}

function check(queries: readonly string[]): string[][] {
  const require = createRequire(import.meta.url);
  // Both put what they have on the global object.
  require('@kusto/language-service-next/bridge.min.js');
  require('@kusto/language-service-next/Kusto.Language.Bridge.min.js');
  const { KustoCode, GlobalState, Symbols } = (globalThis as unknown as { Kusto: { Language: Kusto } }).Kusto.Language;
  const tables = Object.entries(TABLES).map(([name, columns]) => Symbols.TableSymbol.From(columns).WithName(name));
  const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.$ctor1('logs', tables));
  return queries.map((query) => {
    const found = KustoCode.ParseAndAnalyze(query, globals).GetDiagnostics();
    return Array.from({ length: found.Count }, (_none, i) => {
      const { Severity, Message } = found.getItem(i);
      return `${Severity}: ${Message}`;
    });
  });
}

if (import.meta.main) {
  process.stdout.write(JSON.stringify(check(textsSchema.parse(JSON.parse(readFileSync(0, 'utf8'))))));
}
