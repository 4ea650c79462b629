/** What infra/azuredeploy.json deploys. current.test.ts makes sure that it is what the Bicep files say. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, test } from 'vitest';
import { parseCatalog, type Source } from '../../shared/catalog.ts';
import { ROLES } from '../../shared/http/caller.ts';
import { openOffice } from '../../shared/open.ts';
import { targetOf } from '../../shared/plan/preflight.ts';
import { ARCHIVE_CONTAINER } from '../../shared/store/archive.ts';
import { storageConnection } from '../../shared/store/connection.ts';
import { RUNS_QUEUE } from '../../shared/store/runsQueue.ts';
import { type Expression, isExpression, parseExpression } from './arm/expression.ts';
import { type Fields, fields, Later, list, text, type Value } from './arm/functions.ts';
import type { Resource } from './arm/template.ts';
import { GUEST, HOSTED, OWN, PRIVATE, SCENARIOS, type Scenario, SUBNETS, TRIED } from './catalogs.ts';
import { committed, deployed, INFRA, PLACE, ROOT } from './compiled.ts';

const template = committed();
const all = SCENARIOS.map((scenario) => ({
  ...scenario,
  ...deployed(template, scenario.catalog, scenario.parameters),
  sources: sourcesOf(scenario),
}));
const of = (scenario: Scenario) => {
  const found = all.find(({ name }) => name === scenario.name);
  if (found === undefined) throw new Error(`nothing is deployed for ${scenario.name}`);
  return found;
};
const own = of({ name: "the repository's own catalog", catalog: OWN, parameters: {} });

/** The sources as the office itself understands them. */
function sourcesOf({ catalog }: Scenario): readonly Source[] {
  const connections = Object.values(catalog.namespaces as Record<string, { connection: string }>);
  const settings = connections.map(({ connection }) => [
    `${connection}__fullyQualifiedNamespace`,
    `${connection}.test`,
  ]);
  return parseCatalog(catalog, Object.fromEntries(settings)).sources;
}

const typed = (resources: readonly Resource[], type: string) => resources.filter((one) => one.type === type);
const only = (resources: readonly Resource[], type: string): Resource => {
  const [found, ...others] = typed(resources, type);
  if (found === undefined || others.length > 0) throw new Error(`${others.length + 1} resources of type ${type}`);
  return found;
};
const properties = ({ body }: Resource): Fields => fields(body.properties);
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const RECEIVER = '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0';
const SENDER = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39';
const OWN_ROLES: Readonly<Record<string, string>> = {
  'b7e6dc6d-f1e8-4753-8033-0f276bb0955b': 'Storage Blob Data Owner',
  '974c5e8b-45b9-4653-ba55-5f855dd0fb88': 'Storage Queue Data Contributor',
  '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3': 'Storage Table Data Contributor',
  '3913510d-42f4-4e42-8a64-420c390055eb': 'Monitoring Metrics Publisher',
};
const roleOf = (assignment: Resource) => text(properties(assignment).roleDefinitionId).split('/').at(-1) ?? '';

/** `receive <path>` and `send <path>` for everything that the office reads from and writes to, by its own rules. */
function needed(sources: readonly Source[], topics: boolean): Set<string> {
  const rights = new Set<string>();
  for (const source of sources) {
    const at = source.namespace.label;
    const add = (right: string, path: string) => rights.add(`${right} ${at} ${path}`.toLowerCase());
    add(
      'receive',
      source.of.kind === 'queue'
        ? `queues/${source.of.queue}`
        : `topics/${source.of.topic}/subscriptions/${source.of.subscription}`,
    );
    const target = targetOf(source);
    if (target !== undefined) {
      add('send', `queues/${target}`);
      add('receive', `queues/${target}`);
    }
    // The other one may have been the target before the catalog was changed.
    for (const queue of [source.replay.forwardQueue, source.replay.replayQueue]) {
      if (queue === undefined) continue;
      add('send', `queues/${queue}`);
      add('receive', `queues/${queue}`);
    }
    const sandbox = targetOf(source, 'sandbox');
    if (sandbox !== undefined) add('send', `queues/${sandbox}`);
    const topic = targetOf(source, 'topic');
    if (topics && topic !== undefined) add('send', `topics/${topic}`);
  }
  return rights;
}

/** The same, as granted. A tilde is a slash. */
function granted(resources: readonly Resource[], labelOf: (namespaceId: string) => string): string[] {
  return typed(resources, 'Microsoft.Authorization/roleAssignments').flatMap((assignment) => {
    const role = roleOf(assignment);
    if (role !== RECEIVER && role !== SENDER) return [];
    const [, namespace = '', path = ''] = /^(.*\/namespaces\/[^/]+)\/(.+)$/.exec(assignment.scope) ?? [];
    const entity = path.replaceAll('~', '/').toLowerCase();
    return [`${role === RECEIVER ? 'receive' : 'send'} ${labelOf(namespace)} ${entity}`];
  });
}

describe.each(all)('$name: rights', ({ resources, sources, parameters, catalog, outputs }) => {
  const labels = Object.keys(catalog.namespaces as object).sort();
  const names = list(outputs.SERVICE_BUS_NAMESPACES ?? []).map(text);
  const labelOf = (id: string) => labels[names.indexOf(id.split('/').at(-1) ?? '')] ?? `nowhere: ${id}`;

  test('on entities are exactly those that the office needs, each once', () => {
    const given = granted(resources, labelOf);
    expect(new Set(given)).toEqual(needed(sources, parameters.sendToTopics !== false));
    expect(new Set(given).size).toBe(given.length);
  });

  test('on its own resources are four, and there are no others', () => {
    const assignments = typed(resources, 'Microsoft.Authorization/roleAssignments');
    const rest = assignments.filter((one) => ![RECEIVER, SENDER].includes(roleOf(one)));
    expect(rest.map((one) => OWN_ROLES[roleOf(one)]).sort()).toEqual(Object.values(OWN_ROLES).sort());
    const scopes = rest.map(({ scope }) => scope);
    const storage = only(resources, 'Microsoft.Storage/storageAccounts').id;
    const insights = only(resources, 'Microsoft.Insights/components').id;
    expect(scopes.sort()).toEqual([insights, storage, storage, storage].sort());
  });

  test('are those of the identity alone, under names that differ', () => {
    const assignments = typed(resources, 'Microsoft.Authorization/roleAssignments');
    for (const assignment of assignments) {
      expect(properties(assignment).principalId).toEqual(new Later('identity.principalId'));
      expect(properties(assignment).principalType).toBe('ServicePrincipal');
    }
    expect(new Set(assignments.map(({ name }) => name)).size).toBe(assignments.length);
  });
});

test('a guest grants rights in the resource group and subscription of each namespace', () => {
  const scopes = typed(of(GUEST).resources, 'Microsoft.Authorization/roleAssignments').map(({ scope }) => scope);
  const within = (prefix: string) =>
    scopes.filter((scope) => scope.startsWith(`${prefix}/providers/Microsoft.ServiceBus/`));
  expect(within(`/subscriptions/${PLACE.subscriptionId}/resourceGroups/rg-orders`).length).toBeGreaterThan(0);
  expect(
    within('/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg-shipping').length,
  ).toBeGreaterThan(0);
});

describe('namespaces', () => {
  test('of others get nothing but rights', () => {
    expect(of(GUEST).resources.filter(({ type }) => type.startsWith('Microsoft.ServiceBus/'))).toEqual([]);
  });

  test.each([
    ['a label that is not among those given', { orders: { name: 'sb-orders', resourceGroup: 'rg-orders' } }],
    ['none given at all', {}],
  ])('that are to be there already, with %s, end the deployment', (_what, existingNamespaces) => {
    const parameters = { existingNamespaces, createServiceBus: false };
    expect(() => deployed(template, GUEST.catalog, parameters)).toThrow(/there is no "(?:orders|shipping)"/);
  });

  // Of names that differ in case only, the last one counts: to Service Bus they are the same.
  test('are made without keys where none are given, with the entities of the catalog', () => {
    const { resources } = of(TRIED);
    for (const namespace of typed(resources, 'Microsoft.ServiceBus/namespaces')) {
      expect(properties(namespace)).toMatchObject({ disableLocalAuth: true, minimumTlsVersion: '1.2' });
    }
    const made = resources.flatMap(({ type, name }) =>
      /namespaces\/(queues|topics)/.test(type) ? [name.split('/').slice(1).join('/')] : [],
    );
    expect(made.sort()).toEqual(
      [
        'Billing~Invoices',
        'events',
        'Events/Copy',
        'copy.in',
        'events/audit',
        'labels',
        'labels/print',
        'parcels',
        'returns',
        'Sandbox',
      ].sort(),
    );
  });

  test('get entities as the catalog describes them', () => {
    const { resources } = of(TRIED);
    const entity = (name: string) => {
      const found = resources.find(
        (one) => one.type.startsWith('Microsoft.ServiceBus/') && one.name.endsWith(`/${name}`),
      );
      return found === undefined ? undefined : properties(found);
    };
    expect(entity('returns')).toMatchObject({
      lockDuration: 'PT2M',
      requiresSession: true,
      requiresDuplicateDetection: true,
      duplicateDetectionHistoryTimeWindow: 'PT5M',
      deadLetteringOnMessageExpiration: false,
    });
    expect(entity('parcels')).toMatchObject({ enablePartitioning: true, deadLetteringOnMessageExpiration: true });
    // A source and the target of another one: what is known of both.
    expect(entity('copy.in')).toMatchObject({ maxDeliveryCount: 5, duplicateDetectionHistoryTimeWindow: 'PT10M' });
    expect(entity('Copy')).toMatchObject({ forwardTo: 'Copy.In', requiresSession: false });
    expect(entity('audit')).toMatchObject({ forwardTo: null });
  });
});

describe('the app settings', () => {
  const settingsOf = (resources: readonly Resource[]) => {
    const found = typed(resources, 'Microsoft.Web/sites/config').find(({ name }) => name.endsWith('/appsettings'));
    return found === undefined ? {} : properties(found);
  };
  /** Whether a setting is the same one, or says the same by identity: `X__…` for `X`. */
  const isSame = (name: string, other: string) => name === other || name.startsWith(`${other}__`);
  const sample = Object.keys((JSON.parse(read('local.settings.sample.json')) as { Values: object }).Values);
  /** Why the sample has what is not deployed. */
  const NOT_DEPLOYED = [
    'FUNCTIONS_WORKER_RUNTIME', // Flex Consumption has the runtime in the app itself and refuses the setting
    'DLO_ADMINISTRATION_URL', // of a development emulator
    'DLO_CATALOG', // the catalog is in the package
  ];

  test('that are deployed and those of the sample are the same', () => {
    const settings = Object.keys(settingsOf(own.resources));
    const missing = sample.filter((name) => !settings.some((one) => isSame(one, name)));
    expect(missing.sort()).toEqual(NOT_DEPLOYED.sort());
    expect(settings.filter((one) => !sample.some((name) => isSame(one, name)))).toEqual([]);
  });

  it.each(all)('open the office: $name', ({ resources, catalog, sources }) => {
    const given = Object.entries(settingsOf(resources)).map(([name, value]) => [name, text(value)]);
    const settings: Record<string, string> = Object.fromEntries(given);
    const office = openOffice({
      root: pathToFileURL(`${ROOT}/`),
      settings: { ...settings, ...OWN_CONNECTION },
      log: () => {},
    });
    expect(office.auth).toBe(settings.DLO_AUTH);
    for (const service of ['table', 'queue', 'blob'] as const) {
      const connection = storageConnection(settings, service);
      expect(connection).toMatchObject({
        kind: 'identity',
        url: expect.stringMatching(new RegExp(`^https://stdlo\\w+\\.${service}\\.core\\.windows\\.net$`)),
      });
    }
    const opened = parseCatalog(catalog, settings);
    expect(opened.sources.map(({ name }) => name)).toEqual(sources.map(({ name }) => name));
    for (const { host, resourceId } of opened.namespaces) {
      expect(host).toMatch(/^[a-z0-9-]+\.servicebus\.windows\.net$/);
      expect(resourceId).toMatch(
        /^\/subscriptions\/[\w-]+\/resourceGroups\/[\w-]+\/providers\/Microsoft\.ServiceBus\/namespaces\/[\w-]+$/,
      );
      expect(resourceId?.endsWith(`/${host.split('.')[0]}`)).toBe(true);
    }
  });
  /** The catalog of the repository is opened along with each. */
  const OWN_CONNECTION = { ServiceBusConnection__fullyQualifiedNamespace: 'sb-main.servicebus.windows.net' };

  it.each(all)('hold no secret: $name', ({ resources }) => {
    for (const [name, value] of Object.entries(settingsOf(resources))) {
      expect(`${name}=${text(value)}`).not.toMatch(/AccountKey|SharedAccessKey|Password|Secret|Endpoint=sb/i);
      if (name.endsWith('__credential')) expect(value).toBe('managedidentity');
    }
    expect(settingsOf(resources).APPLICATIONINSIGHTS_AUTHENTICATION_STRING).toMatch(/^ClientId=.+;Authorization=AAD$/);
  });
});

describe('nothing is open that need not be', () => {
  it.each(all)('storage: $name', ({ resources }) => {
    const account = only(resources, 'Microsoft.Storage/storageAccounts');
    expect(properties(account)).toMatchObject({
      allowSharedKeyAccess: false,
      allowBlobPublicAccess: false,
      minimumTlsVersion: 'TLS1_2',
      supportsHttpsTrafficOnly: true,
    });
    for (const container of typed(resources, 'Microsoft.Storage/storageAccounts/blobServices/containers')) {
      expect(properties(container)).toEqual({ publicAccess: 'None' });
    }
  });

  test('signals are not taken by key', () => {
    expect(properties(only(own.resources, 'Microsoft.Insights/components')).DisableLocalAuth).toBe(true);
    const workspace = properties(only(own.resources, 'Microsoft.OperationalInsights/workspaces'));
    expect(workspace.features).toEqual({ disableLocalAuth: true });
  });

  test('the app speaks TLS 1.2 or newer, and nobody publishes with a password', () => {
    const site = properties(only(own.resources, 'Microsoft.Web/sites'));
    expect(site).toMatchObject({
      httpsOnly: true,
      siteConfig: { minTlsVersion: '1.2', scmMinTlsVersion: '1.2', ftpsState: 'Disabled' },
    });
    const publishing = typed(own.resources, 'Microsoft.Web/sites/basicPublishingCredentialsPolicies');
    expect(publishing.map((one) => [one.name.split('/')[1], properties(one)])).toEqual([
      ['scm', { allow: false }],
      ['ftp', { allow: false }],
    ]);
    expect(site.functionAppConfig).toMatchObject({
      deployment: { storage: { authentication: { type: 'UserAssignedIdentity' } } },
    });
  });

  test('no template asks for a key, and none answers one', () => {
    const source = JSON.stringify(template);
    expect(source).not.toMatch(/list(?:Keys|AccountSas|ServiceSas|Secrets|ConnectionStrings)\(/i);
    expect(source).not.toMatch(/AccountKey=|SharedAccessKey|primaryKey|secureString/i);
    for (const { outputs } of all) {
      expect(Object.keys(outputs).sort()).toEqual(
        [
          'AZURE_FUNCTION_NAME',
          'AZURE_LOCATION',
          'IDENTITY_NAME',
          'SERVICE_BUS_NAMESPACES',
          'SERVICE_OFFICE_URI',
        ].sort(),
      );
      expect(JSON.stringify(outputs)).not.toMatch(/connectionstring|instrumentationkey|key=/i);
    }
  });
});

describe('the network', () => {
  const site = (resources: readonly Resource[]) => properties(only(resources, 'Microsoft.Web/sites'));
  const account = (resources: readonly Resource[]) => properties(only(resources, 'Microsoft.Storage/storageAccounts'));
  /** Each private endpoint: where it is, the service it leads to, and the zone with its record. */
  const endpoints = (resources: readonly Resource[]) =>
    typed(resources, 'Microsoft.Network/privateEndpoints').map((endpoint) => {
      const [connection, ...others] = list(properties(endpoint).privateLinkServiceConnections).map(fields);
      expect(others).toEqual([]);
      const { privateLinkServiceId, groupIds } = fields(connection?.properties);
      const records = typed(resources, 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups').filter(({ name }) =>
        name.startsWith(`${endpoint.name}/`),
      );
      const zones = records.flatMap((record) => list(properties(record).privateDnsZoneConfigs).map(fields));
      return {
        subnet: text(fields(properties(endpoint).subnet).id),
        to: text(privateLinkServiceId).split('/').at(-1),
        services: groupIds,
        zones: zones.map((zone) => text(fields(zone.properties).privateDnsZoneId).split('/').at(-1)),
      };
    });

  it.each([own, of(GUEST), of(TRIED)])('is none unless it is asked for: $name', ({ resources }) => {
    expect(resources.filter(({ type }) => type.startsWith('Microsoft.Network/'))).toEqual([]);
    expect(site(resources).virtualNetworkSubnetId).toBeNull();
    // Nothing is said: another value would take away what somebody has set by hand.
    expect(site(resources).siteConfig).toMatchObject({
      ipSecurityRestrictionsDefaultAction: null,
      ipSecurityRestrictions: null,
      scmIpSecurityRestrictionsUseMain: null,
    });
    expect(account(resources)).toMatchObject({
      publicNetworkAccess: 'Enabled',
      networkAcls: { defaultAction: 'Allow' },
    });
  });

  test('that is made has a subnet for the app and one for private endpoints, with zones in which they are found', () => {
    const { resources } = of(PRIVATE);
    const network = only(resources, 'Microsoft.Network/virtualNetworks');
    const [app, second] = list(properties(network).subnets).map(fields);
    expect(app).toMatchObject({
      name: 'app',
      properties: { delegations: [{ properties: { serviceName: 'Microsoft.App/environments' } }] },
    });
    expect(site(resources).virtualNetworkSubnetId).toBe(`${network.id}/subnets/app`);
    const subnet = `${network.id}/subnets/${text(second?.name)}`;
    const name = only(resources, 'Microsoft.Storage/storageAccounts').name;
    const expected = ['blob', 'queue', 'table'].map((service) => ({
      subnet,
      to: expect.any(String),
      services: [service],
      zones: [`privatelink.${service}.core.windows.net`],
    }));
    const bus = { subnet, to: 'sb-orders', services: ['namespace'], zones: ['privatelink.servicebus.windows.net'] };
    expect(endpoints(resources)).toEqual([...expected, bus]);
    expect(name).toMatch(/^stdlo/);
    const zones = typed(resources, 'Microsoft.Network/privateDnsZones').map((zone) => zone.name);
    expect(zones.toSorted()).toEqual([...new Set(endpoints(resources).flatMap((one) => one.zones))].toSorted());
    const links = typed(resources, 'Microsoft.Network/privateDnsZones/virtualNetworkLinks');
    expect(links.map((link) => link.name.split('/')[0]).toSorted()).toEqual(zones.toSorted());
    for (const link of links) expect(fields(properties(link).virtualNetwork).id).toEqual(network.id);
  });

  test('that is there is used, with records where zones are named', () => {
    const { resources } = of(HOSTED);
    expect(site(resources).virtualNetworkSubnetId).toBe(`${SUBNETS}/office`);
    expect(endpoints(resources).map(({ subnet, services, zones }) => [subnet, services, zones])).toEqual([
      [`${SUBNETS}/endpoints`, ['blob'], ['blob']],
      [`${SUBNETS}/endpoints`, ['queue'], ['queue']],
      [`${SUBNETS}/endpoints`, ['table'], []],
      [`${SUBNETS}/endpoints`, ['namespace'], []],
    ]);
    expect(typed(resources, 'Microsoft.Network/virtualNetworks')).toEqual([]);
    expect(typed(resources, 'Microsoft.Network/privateDnsZones')).toEqual([]);
  });

  it.each([of(PRIVATE), of(HOSTED)])('closes the storage to everybody else: $name', ({ resources }) => {
    expect(account(resources)).toMatchObject({
      publicNetworkAccess: 'Disabled',
      networkAcls: { defaultAction: 'Deny' },
    });
  });

  test('lets only the addresses in that are named, to the app and to its deployment', () => {
    expect(site(of(PRIVATE).resources).siteConfig).toMatchObject({
      ipSecurityRestrictionsDefaultAction: 'Deny',
      ipSecurityRestrictions: [
        { ipAddress: '203.0.113.0/24', action: 'Allow', priority: 100 },
        { ipAddress: '198.51.100.7/32', action: 'Allow', priority: 101 },
      ],
      scmIpSecurityRestrictionsUseMain: true,
    });
  });
});

describe('App Service authentication', () => {
  const authOf = (resources: readonly Resource[]) =>
    typed(resources, 'Microsoft.Web/sites/config').find(({ name }) => name.endsWith('/authsettingsV2'));

  test('is off unless there is an app registration', () => {
    expect(authOf(own.resources)).toBeUndefined();
  });

  test('lets only probes through without a token', () => {
    const auth = authOf(of(GUEST).resources);
    expect(auth && properties(auth)).toMatchObject({
      platform: { enabled: true },
      globalValidation: {
        requireAuthentication: true,
        unauthenticatedClientAction: 'Return401',
        excludedPaths: ['/api/health', '/api/openapi.json'],
      },
      identityProviders: {
        azureActiveDirectory: { enabled: true, registration: { clientId: GUEST.parameters.authClientId } },
      },
    });
  });

  test('goes by the roles that the manifest declares, each with an id of its own', () => {
    const roles = JSON.parse(read('infra/app-roles.json')) as { id: string; value: string; isEnabled: boolean }[];
    expect(roles.map(({ value }) => value)).toEqual(Object.values(ROLES));
    expect(new Set(roles.map(({ id }) => id)).size).toBe(roles.length);
    expect(roles.every(({ isEnabled }) => isEnabled)).toBe(true);
  });
});

describe('scaling', () => {
  const scaleOf = (resources: readonly Resource[]) =>
    fields(fields(properties(only(resources, 'Microsoft.Web/sites')).functionAppConfig).scaleAndConcurrency);
  const triggered = (sources: readonly Source[]) =>
    sources.filter(({ mode, trigger, entity }) => mode === 'defer' && trigger && !entity.partitioned);

  it.each(all)('keeps an instance for each trigger that asks for one: $name', ({ resources, sources }) => {
    const wanted = triggered(sources).filter(({ alwaysReady }) => alwaysReady);
    expect(scaleOf(resources).alwaysReady).toEqual(
      wanted.map(({ name }) => ({ name: `function:classify-${name}`, instanceCount: 1 })),
    );
  });

  it.each(all)(
    'has room for every scale group, unless it is told otherwise: $name',
    ({ resources, sources, parameters }) => {
      const files = readdirSync(join(ROOT, 'functions')).filter((name) => name.endsWith('.ts'));
      const own = files.flatMap((name) => read(`functions/${name}`).match(/app\.(?:timer|storageQueue)\(/g) ?? []);
      const groups = 1 + own.length + triggered(sources).length;
      expect(scaleOf(resources).maximumInstanceCount).toBe(parameters.maximumInstanceCount ?? groups + 4);
    },
  );

  test('the runtime is Node 22, or 24', () => {
    const runtime = (resources: readonly Resource[]) =>
      fields(properties(only(resources, 'Microsoft.Web/sites')).functionAppConfig).runtime;
    expect(runtime(own.resources)).toEqual({ name: 'node', version: '22' });
    expect(runtime(of(GUEST).resources)).toEqual({ name: 'node', version: '24' });
    expect(() => deployed(template, OWN, { nodeVersion: '20' })).toThrow('nodeVersion');
    expect(only(own.resources, 'Microsoft.Web/serverfarms').body.sku).toEqual({ name: 'FC1', tier: 'FlexConsumption' });
  });
});

describe('storage', () => {
  const names = (type: string) =>
    typed(own.resources, `Microsoft.Storage/storageAccounts/${type}`).map(({ name }) => name.split('/').at(-1));

  test('has every table and queue that the office uses', () => {
    const stores = readdirSync(join(ROOT, 'shared/store'))
      .map((file) => read(`shared/store/${file}`))
      .join('\n');
    const used = [...stores.matchAll(/new Table\([^,]+, '(\w+)'/g)].map(([, name]) => name);
    expect(used.length).toBeGreaterThan(4);
    expect(names('tableServices/tables')).toEqual(expect.arrayContaining(used));
    expect(names('queueServices/queues')).toEqual([RUNS_QUEUE, `${RUNS_QUEUE}-poison`]);
  });

  test('removes archived letters when their time is over, and nothing else', () => {
    const policy = fields(
      properties(only(own.resources, 'Microsoft.Storage/storageAccounts/managementPolicies')).policy,
    );
    const [rule, ...others] = list(policy.rules).map(fields);
    expect(others).toEqual([]);
    expect(fields(rule?.definition)).toMatchObject({
      filters: { prefixMatch: [`${ARCHIVE_CONTAINER}/`] },
      actions: { baseBlob: { delete: { daysAfterModificationGreaterThan: 400 } } },
    });
    expect(names('blobServices/containers')).toEqual(['app-package', ARCHIVE_CONTAINER]);
  });

  test('the app is deployed from its container', () => {
    const config = fields(properties(only(own.resources, 'Microsoft.Web/sites')).functionAppConfig);
    expect(text(fields(fields(config.deployment).storage).value)).toMatch(/\}app-package$/);
  });
});

describe.each(all)('$name: everywhere', ({ resources }) => {
  test('logs go to the workspace', () => {
    const workspace = only(resources, 'Microsoft.OperationalInsights/workspaces').id;
    const settings = typed(resources, 'Microsoft.Insights/diagnosticSettings');
    const loud =
      /^Microsoft\.(?:Web\/sites|ServiceBus\/namespaces|Storage\/storageAccounts\/(?:blob|queue|table)Services)$/;
    const logged = resources.filter(({ type }) => loud.test(type)).map(({ id }) => id);
    expect(settings.map(({ scope }) => scope).sort()).toEqual(logged.sort());
    for (const setting of settings) {
      expect(properties(setting).workspaceId).toBe(workspace);
      expect(list(properties(setting).logs).length).toBeGreaterThan(0);
    }
  });

  test('names keep to what Azure takes', () => {
    const rules: Record<string, RegExp> = {
      'Microsoft.Web/sites': /^(?=.{2,32}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])$/,
      'Microsoft.Web/serverfarms': /^[\w-]{1,60}$/,
      'Microsoft.Storage/storageAccounts': /^[a-z0-9]{3,24}$/,
      'Microsoft.ServiceBus/namespaces': /^(?=.{6,50}$)(?!.*-(?:sb|mgmt)$)[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])$/,
      'Microsoft.OperationalInsights/workspaces': /^(?=.{4,63}$)[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9]$/,
      'Microsoft.Insights/components': /^[\w().-]{1,255}$/,
      'Microsoft.Insights/actionGroups': /^[\w.-]{1,260}$/,
      'Microsoft.Insights/scheduledQueryRules': /^[\w.-]{1,260}$/,
      'Microsoft.Insights/metricAlerts': /^[\w.-]{1,260}$/,
      'Microsoft.Insights/workbooks': /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/,
      'Microsoft.ManagedIdentity/userAssignedIdentities': /^[A-Za-z0-9][\w-]{2,127}$/,
      'Microsoft.Authorization/roleAssignments': /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/,
    };
    for (const { type, name } of resources) {
      const rule = rules[type];
      if (rule !== undefined) expect(name).toMatch(rule);
    }
    const ids = resources.map(({ id }) => id.toLowerCase());
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('tags say whose it is', () => {
    const tagged = resources.filter(({ body }) => body.tags !== undefined);
    expect(tagged.length).toBeGreaterThan(8);
    for (const { body } of tagged) expect(fields(body.tags)['azd-env-name']).toBeTypeOf('string');
    expect(fields(only(resources, 'Microsoft.Web/sites').body.tags)['azd-service-name']).toBe('office');
  });
});

describe('the files with parameters', () => {
  const values = (file: string): Record<string, Value> => {
    const { parameters } = JSON.parse(read(file)) as { parameters: Record<string, { value: Value }> };
    return Object.fromEntries(Object.entries(parameters).map(([name, { value }]) => [name, value]));
  };

  it.each([
    'infra/main.parameters.json',
    ...readdirSync(join(INFRA, 'environments')).map((name) => `infra/environments/${name}`),
  ])('%s deploys', (file) => {
    expect(deployed(template, OWN, values(file)).resources.length).toBeGreaterThan(30);
  });

  test('test makes a namespace of its own, production does not', () => {
    expect(values('infra/environments/test.json').createServiceBus).toBe(true);
    expect(values('infra/environments/production.json').createServiceBus).toBe(false);
  });
});

// Azure evaluates lambdas before anything is there; the compiler does not mind.
test('no lambda asks for what is known only once a resource is there', () => {
  const asks = (expression: Expression, inLambda: boolean): boolean => {
    if (expression.kind === 'value') return false;
    if (expression.kind === 'member') return [expression.of, expression.key].some((one) => asks(one, inLambda));
    if (inLambda && expression.name === 'reference') return true;
    return expression.args.some((one) => asks(one, inLambda || expression.name === 'lambda'));
  };
  const expressions = [...JSON.stringify(template).matchAll(/"(\[(?:[^"\\]|\\.)*\])"/g)].map(
    ([, quoted]) => JSON.parse(`"${quoted}"`) as string,
  );
  const found = expressions.filter((one) => isExpression(one) && one.includes('lambda('));
  expect(found.length).toBeGreaterThan(10);
  expect(found.filter((one) => asks(parseExpression(one), false))).toEqual([]);
});

test('the templates need nothing from a registry', () => {
  const files = readdirSync(INFRA, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.bicep'));
  expect(files.length).toBeGreaterThan(8);
  for (const file of files) expect(read(`infra/${file}`)).not.toMatch(/'(?:br|ts)[:/]|^extension /m);
});
