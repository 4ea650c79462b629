/** Checks log queries with Microsoft's own parser, against the columns that the tables have. */
import { createRequire } from 'node:module';

/** The columns that are used, of what the Azure Monitor reference lists for the tables of Application Insights. */
const TABLES: Readonly<Record<string, string>> = {
  AppMetrics: '(TimeGenerated: datetime, Name: string, Properties: dynamic, Sum: real, ItemCount: int)',
  AppEvents: '(TimeGenerated: datetime, Name: string, Properties: dynamic)',
};

interface Diagnostics {
  readonly Count: number;
  getItem(index: number): { readonly Severity: string; readonly Message: string };
}

/** What is used of the library. It is transpiled from C#: constructors have numbers. */
interface Kusto {
  readonly KustoCode: { ParseAndAnalyze(query: string, globals: unknown): { GetDiagnostics(): Diagnostics } };
  readonly GlobalState: { readonly Default: { WithDatabase(database: unknown): unknown } };
  readonly Symbols: {
    readonly TableSymbol: { From(columns: string): { WithName(name: string): unknown } };
    readonly DatabaseSymbol: { readonly $ctor1: new (name: string, members: unknown[]) => unknown };
  };
}

let checker: ((query: string) => string[]) | undefined;
const checked = new Map<string, string[]>();

/** What is wrong with a query, a line each; empty: nothing. The first call loads the library, which takes a second. */
export function queryProblems(query: string): string[] {
  checker ??= open();
  const problems = checked.get(query) ?? checker(query);
  checked.set(query, problems);
  return problems;
}

function open(): (query: string) => string[] {
  const require = createRequire(import.meta.url);
  // Both put what they have on the global object.
  require('@kusto/language-service-next/bridge.min.js');
  require('@kusto/language-service-next/Kusto.Language.Bridge.min.js');
  const { KustoCode, GlobalState, Symbols } = (globalThis as unknown as { Kusto: { Language: Kusto } }).Kusto.Language;
  const tables = Object.entries(TABLES).map(([name, columns]) => Symbols.TableSymbol.From(columns).WithName(name));
  const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.$ctor1('logs', tables));
  return (query) => {
    const found = KustoCode.ParseAndAnalyze(query, globals).GetDiagnostics();
    return Array.from({ length: found.Count }, (_none, i) => {
      const { Severity, Message } = found.getItem(i);
      return `${Severity}: ${Message}`;
    });
  };
}
