/** Alerts and workbook: who is woken by what, and whether the queries ask for signals that there are. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { EVENTS, METRICS } from '../../shared/signals.ts';
import { type Fields, fields, list, text, type Value } from './arm/functions.ts';
import type { Resource } from './arm/template.ts';
import { GUEST, OWN, SCENARIOS } from './catalogs.ts';
import { committed, deployed, INFRA } from './compiled.ts';
import { queryProblems } from './kusto.ts';

const template = committed();
const all = SCENARIOS.map((scenario) => ({
  ...scenario,
  resources: deployed(template, scenario.catalog, scenario.parameters).resources,
}));
const resourcesFor = (catalog: unknown) => all.find((one) => one.catalog === catalog)?.resources ?? [];

interface Entry {
  name: string;
  owner: { team: string; contact: string };
  retainFor?: string;
  runbook?: string;
  alert?: { growthIn15Minutes?: number; severity?: number };
}
const entries = (catalog: Record<string, unknown>) => catalog.sources as Entry[];

const typed = (resources: readonly Resource[], type: string) =>
  resources.filter((one) => one.type === `Microsoft.Insights/${type}`);
const properties = ({ body }: Resource): Fields => fields(body.properties);
const rules = (resources: readonly Resource[]) => typed(resources, 'scheduledQueryRules');
const criterion = (rule: Resource): Fields => fields(list(fields(properties(rule).criteria).allOf)[0]);
const queryOf = (rule: Resource) => text(criterion(rule).query);
const ruleNamed = (resources: readonly Resource[], name: string) => {
  const found = rules(resources).find((rule) => rule.name === name);
  if (found === undefined) throw new Error(`there is no rule ${name}`);
  return found;
};
/** Mail addresses of the groups that a rule tells. */
function mails(rule: Resource, resources: readonly Resource[]): string[] {
  const ids = list(fields(properties(rule).actions).actionGroups);
  const groups = typed(resources, 'actionGroups').filter(({ id }) => ids.includes(id));
  return groups.flatMap((group) => list(properties(group).emailReceivers).map((one) => text(fields(one).emailAddress)));
}

const KNOWN = new Set<string>([...Object.values(METRICS), ...Object.values(EVENTS)]);
/** Names of signals in a query: whatever `Name` is compared with. */
const signalsIn = (query: string) =>
  [...query.matchAll(/\bName (?:==|in) \(?((?:"[^"]*"(?:, )?)+)/g)].flatMap(([, names = '']) =>
    [...names.matchAll(/"([^"]*)"/g)].map(([, name = '']) => name),
  );

describe.each(all)('$name', ({ resources, catalog, parameters }) => {
  it('wakes the owner of each source when its dead letters grow by as many as the catalog says', () => {
    for (const { name, alert, owner } of entries(catalog)) {
      const rule = ruleNamed(resources, `dlo-growth-${name}`);
      expect(criterion(rule)).toMatchObject({
        metricMeasureColumn: 'growth',
        timeAggregation: 'Maximum',
        operator: 'GreaterThanOrEqual',
        threshold: alert?.growthIn15Minutes ?? 50,
      });
      expect(properties(rule)).toMatchObject({ severity: alert?.severity ?? 2, windowSize: 'PT15M', enabled: true });
      expect(queryOf(rule)).toContain(`source in ("${name}")`);
      expect(mails(rule, resources)).toEqual(owner.contact.includes('@') ? [owner.contact.toLowerCase()] : []);
    }
  });

  it('has the other alerts of an owner over all their sources, and only theirs', () => {
    for (const contact of new Set(entries(catalog).map(({ owner }) => owner.contact.toLowerCase()))) {
      const theirs = entries(catalog).filter(({ owner }) => owner.contact.toLowerCase() === contact);
      const quoted = (sources: Entry[]) => `source in (${sources.map(({ name }) => `"${name}"`).join(', ')})`;
      const halted = rules(resources).filter(
        (rule) => rule.name.startsWith('dlo-halted-') && queryOf(rule).includes(quoted(theirs)),
      );
      expect(halted).toHaveLength(1);
      const kept = theirs.filter(({ retainFor }) => retainFor !== undefined);
      const retention = rules(resources).filter(
        (rule) => rule.name.startsWith('dlo-retention-') && queryOf(rule).includes(quoted(kept)),
      );
      expect(retention).toHaveLength(kept.length > 0 ? 1 : 0);
      for (const rule of retention)
        expect(criterion(rule)).toMatchObject({ metricMeasureColumn: 'percent', threshold: 50 });
    }
    const owners = new Set(entries(catalog).map(({ owner }) => owner.contact.toLowerCase()));
    expect(rules(resources).filter(({ name }) => name.startsWith('dlo-halted-'))).toHaveLength(owners.size);
  });

  it('wakes those who run the office when nobody has looked, also when nothing was heard at all', () => {
    const silence = ruleNamed(resources, 'dlo-silence');
    const names = entries(catalog)
      .map(({ name }) => `"${name}"`)
      .join(', ');
    // The rows come from the catalog, so they are there without any signal.
    expect(queryOf(silence)).toContain(`datatable(source: string) [${names}]\n| join kind=leftouter looked on source`);
    expect(queryOf(silence)).toContain('isnull(newest) or newest < ago(15m)');
    expect(criterion(silence)).toMatchObject({
      timeAggregation: 'Count',
      operator: 'GreaterThanOrEqual',
      threshold: 1,
    });
    const first = entries(catalog)[0]?.owner.contact;
    const contact = parameters.officeContact ?? first?.toLowerCase();
    expect(mails(silence, resources)).toEqual(contact === undefined ? [] : [contact]);
  });

  it('tells failing classification and failing cleanups', () => {
    expect(criterion(ruleNamed(resources, 'dlo-classifier'))).toMatchObject({
      timeAggregation: 'Total',
      metricMeasureColumn: 'errors',
      threshold: 1,
    });
    const expiry = ruleNamed(resources, 'dlo-expiry');
    expect(criterion(expiry)).toMatchObject({
      timeAggregation: 'Total',
      metricMeasureColumn: 'failures',
      threshold: 2,
    });
    expect(properties(expiry).windowSize).toBe('PT1H');
  });

  it('asks for signals that there are', () => {
    for (const rule of rules(resources)) {
      expect(signalsIn(queryOf(rule)).length).toBeGreaterThan(0);
      for (const name of signalsIn(queryOf(rule))) expect(KNOWN).toContain(name);
      expect(queryOf(rule)).not.toContain('{{');
    }
  });

  it('measures and splits by what the query answers', () => {
    for (const rule of rules(resources)) {
      const { query, metricMeasureColumn, dimensions } = criterion(rule);
      const answered = text(query).split('| project ').at(-1) ?? '';
      const used = [
        ...(metricMeasureColumn ? [metricMeasureColumn] : []),
        ...list(dimensions ?? []).map((one) => fields(one).name),
      ];
      for (const column of used) expect(answered).toMatch(new RegExp(`\\b${text(column)}\\b`));
    }
  });

  it('never fires because there is a dead letter', () => {
    for (const rule of [...rules(resources), ...typed(resources, 'metricAlerts')]) {
      const { operator, threshold } = criterion(rule);
      expect(Number(threshold) + (operator === 'GreaterThan' ? 1 : 0)).toBeGreaterThan(0);
      // A count of letters, not of failures.
      if (/growth|backstop/.test(rule.name)) expect(Number(threshold)).toBeGreaterThan(1);
    }
  });

  it('has the platform metric as a backstop only, for what is in the subscription', () => {
    const places = fields(parameters.existingNamespaces ?? {});
    const sources = catalog.sources as { namespace?: string }[];
    const labels = Object.keys(catalog.namespaces as object).filter((label) => {
      const place = places[label];
      const isHere = place === undefined || fields(place).subscriptionId === undefined;
      return isHere && sources.some(({ namespace = label }) => namespace === label);
    });
    const alerts = typed(resources, 'metricAlerts');
    expect(alerts.map(({ name }) => name).sort()).toEqual(labels.map((label) => `dlo-backstop-${label}`).sort());
    for (const alert of alerts) {
      expect(criterion(alert)).toMatchObject({
        metricName: 'DeadletteredMessages',
        operator: 'GreaterThan',
        threshold: 10_000,
      });
    }
  });

  it('tells the groups that are given as well', () => {
    for (const rule of rules(resources)) {
      const told = list(fields(properties(rule).actions).actionGroups);
      const also: readonly Value[] = list(parameters.actionGroupIds ?? []);
      expect(also.every((id) => told.includes(id))).toBe(true);
      // More are refused by Azure Monitor.
      expect(told.length).toBeLessThanOrEqual(5);
    }
    for (const group of typed(resources, 'actionGroups'))
      expect(text(properties(group).groupShortName).length).toBeLessThanOrEqual(12);
  });
});

test('an owner who is written twice is told once', () => {
  const groups = typed(resourcesFor(GUEST.catalog), 'actionGroups');
  const receivers = groups.flatMap((group) => list(properties(group).emailReceivers));
  const addresses = receivers.map((one) => text(fields(one).emailAddress));
  expect(addresses.sort()).toEqual(['billing@example.org', 'operators@example.org', 'shipping@example.org']);
  // The fourth has a contact that is no mail address.
  expect(groups).toHaveLength(4);
});

interface Item {
  name: string;
  content: { query?: string; parameters?: { name: string; query?: string }[] };
}
const contentFor = (resources: readonly Resource[]) => {
  const [workbook] = typed(resources, 'workbooks');
  if (workbook === undefined) throw new Error('there is no workbook');
  const { serializedData } = properties(workbook);
  return JSON.parse(text(serializedData)) as { items: Item[]; fallbackResourceIds: string[] };
};
const queries = (items: readonly Item[]) =>
  items.flatMap(({ name, content }) => [
    ...(content.query === undefined ? [] : [[name, content.query] as const]),
    ...(content.parameters ?? []).flatMap((one) => (one.query === undefined ? [] : [[one.name, one.query] as const])),
  ]);

describe('the workbook', () => {
  const ROWS = /parse_json\(```(.*?)```\)/;

  it.each(all)('has a row for each source: $name', ({ resources, catalog }) => {
    const { items } = contentFor(resources);
    const [, rows = ''] = ROWS.exec(items.find(({ name }) => name === 'sources')?.content.query ?? '') ?? [];
    expect(JSON.parse(rows)).toEqual(
      entries(catalog).map(({ name, owner, runbook, alert }) => ({
        source: name,
        team: owner.team.replaceAll('`', ''),
        runbook: runbook ?? '',
        wakesAt: alert?.growthIn15Minutes ?? 50,
      })),
    );
  });

  it.each(all)('asks for signals that there are: $name', ({ resources }) => {
    const { items, fallbackResourceIds } = contentFor(resources);
    expect(fallbackResourceIds).toEqual([expect.stringContaining('/Microsoft.OperationalInsights/workspaces/')]);
    for (const [name, query] of queries(items)) {
      for (const signal of signalsIn(query)) expect(KNOWN).toContain(signal);
      expect([name, query]).not.toEqual([name, expect.stringContaining('{{')]);
    }
  });

  test('shows what the office tells: letters, causes, runs, removals, the oldest', () => {
    const shown = new Set(queries(contentFor(resourcesFor(OWN)).items).flatMap(([, query]) => signalsIn(query)));
    const { classifierErrors: _classifier, expiryFailures: _expiry, ...metrics } = METRICS;
    expect([...shown].sort()).toEqual([...Object.values(metrics), ...Object.values(EVENTS)].sort());
  });
});

test('every query file is used', () => {
  const used = readdirSync(INFRA, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.bicep'))
    .map((name) => readFileSync(join(INFRA, name), 'utf8'))
    .join('\n');
  for (const name of readdirSync(join(INFRA, 'queries'))) expect(used).toContain(`../queries/${name}`);
});

describe('Kusto', () => {
  // Of alerts with several sources, with one, and with none at all.
  const alerts = all.flatMap(({ name, resources }) =>
    rules(resources).map((rule) => [`${rule.name} of ${name}`, queryOf(rule)]),
  );
  const workbook = queries(contentFor(resourcesFor(GUEST.catalog)).items).map(([name, query]) => {
    return [`${name} in the workbook`, query.replaceAll('{Sources}', '"*"').replaceAll('{TimeRange:grain}', '5m')];
  });
  const asked = [...alerts, ...workbook].map(([name = '', query = '']) => [query, name] as const);
  const once = [...new Map(asked)].map(([query, name]) => [name, query] as const);
  const wrong = ['AppMetrics | where Nome == 1', 'AppMetric | take 1', 'AppMetrics | summarise count()'];

  let problems = new Map<string, string[]>();
  // Seconds, and more of them where others are at work.
  beforeAll(() => {
    problems = queryProblems([...once.map(([, query]) => query), ...wrong]);
  }, 300_000);

  test.each(once)('understands %s', (_name, query) => {
    expect(problems.get(query)).toEqual([]);
  });

  test.each(wrong)('does not understand %s', (query) => {
    expect(problems.get(query)).not.toEqual([]);
  });
});
