/** Catalogs and parameters that between them use everything the templates read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fields } from './arm/functions.ts';
import { ROOT } from './compiled.ts';

/** An office to be deployed. */
export interface Scenario {
  readonly name: string;
  readonly catalog: Record<string, unknown>;
  readonly parameters: Fields;
}

/** The repository's own catalog. */
export const OWN = JSON.parse(readFileSync(join(ROOT, 'catalog.json'), 'utf8')) as Record<string, unknown>;

const owner = (team: string, contact = `${team}@example.org`) => ({ team, contact });

/** Two namespaces that belong to others, in their own resource groups, one of them in another subscription. */
const GUEST: Scenario = {
  name: 'a guest in two namespaces',
  catalog: {
    version: 1,
    office: 'guest',
    namespaces: {
      orders: { connection: 'OrdersBus' },
      shipping: { connection: 'ShippingBus', operationsPerSecond: 50 },
    },
    sources: [
      {
        name: 'invoices',
        namespace: 'orders',
        queue: 'Billing/Invoices',
        mode: 'defer',
        owner: owner('billing'),
        retainFor: 'P30D',
        alwaysReady: true,
        alert: { growthIn15Minutes: 5, severity: 1 },
        replay: { sandboxQueue: 'sandbox' },
      },
      {
        name: 'invoices-copy',
        namespace: 'orders',
        topic: 'Events',
        subscription: 'Copy',
        mode: 'defer',
        owner: owner('billing', 'Billing@example.org'),
        replay: { forwardQueue: 'Copy.In', sandboxQueue: 'Sandbox' },
        entity: { requiresSession: false, duplicateDetection: 'PT10M' },
      },
      {
        name: 'audit',
        namespace: 'orders',
        topic: 'events',
        subscription: 'audit',
        mode: 'observe',
        owner: owner('audit', 'channel #audit'),
        alwaysReady: true,
        replay: { replayQueue: 'copy.in' },
      },
      {
        name: 'parcels',
        namespace: 'shipping',
        queue: 'parcels',
        mode: 'defer',
        owner: owner('shipping`s "best"', 'shipping@example.org'),
        entity: { partitioned: true },
        alwaysReady: true,
        alert: { severity: 4 },
      },
      {
        name: 'labels',
        namespace: 'shipping',
        topic: 'labels',
        subscription: 'print',
        mode: 'defer',
        trigger: false,
        owner: owner('shipping'),
        alwaysReady: true,
      },
    ],
    rules: [{ name: 'odd', when: { reason: "[concat('a')]" }, category: 'poison', advice: 'investigate' }],
  },
  parameters: {
    existingNamespaces: {
      orders: { name: 'sb-orders', resourceGroup: 'rg-orders' },
      shipping: {
        name: 'sb-shipping',
        resourceGroup: 'rg-shipping',
        subscriptionId: '33333333-3333-3333-3333-333333333333',
      },
    },
    officeContact: 'operators@example.org',
    actionGroupIds: [
      '/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-duty/providers/Microsoft.Insights/actionGroups/duty',
    ],
    nodeVersion: '24',
    maximumInstanceCount: 40,
    authClientId: '44444444-4444-4444-4444-444444444444',
    tags: { 'cost-center': '42' },
  },
};

/** The same, in namespaces that are made for it. */
const TRIED: Scenario = {
  name: 'an office to be tried out, with every kind of entity',
  catalog: {
    ...GUEST.catalog,
    sources: [
      ...(GUEST.catalog.sources as object[]),
      {
        name: 'returns',
        namespace: 'orders',
        queue: 'returns',
        mode: 'observe',
        owner: owner('returns'),
        entity: { requiresSession: true, duplicateDetection: 'PT5M', deadLettersOnExpiry: false, lockDuration: 'PT2M' },
      },
      {
        name: 'copy-in',
        namespace: 'orders',
        queue: 'copy.in',
        mode: 'observe',
        owner: owner('billing'),
        entity: { maxDeliveryCount: 5 },
      },
    ],
  },
  parameters: { sendToTopics: false, environmentName: 'e'.repeat(64) },
};

/** A network of its own, with a private endpoint to one of the namespaces, which takes nothing else. */
const PRIVATE: Scenario = {
  name: 'an office with a network of its own',
  catalog: GUEST.catalog,
  parameters: {
    existingNamespaces: {
      orders: { name: 'sb-orders', resourceGroup: 'rg-orders', privateEndpoint: true },
      shipping: { name: 'sb-shipping', resourceGroup: 'rg-shipping' },
    },
    network: 'new',
    allowedAddresses: ['203.0.113.0/24', '198.51.100.7/32'],
  },
};

const SUBNETS =
  '/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-net/providers/Microsoft.Network/virtualNetworks/hub/subnets';

/** In subnets that are there already; the names of tables and namespaces are found by records that a policy makes. */
const HOSTED: Scenario = {
  name: 'an office in a network that is there',
  catalog: GUEST.catalog,
  parameters: {
    existingNamespaces: {
      orders: { name: 'sb-orders', resourceGroup: 'rg-orders', privateEndpoint: true },
      shipping: { name: 'sb-shipping', resourceGroup: 'rg-shipping' },
    },
    network: 'existing',
    appSubnetId: `${SUBNETS}/office`,
    endpointSubnetId: `${SUBNETS}/endpoints`,
    privateZoneIds: { blob: '/zones/blob', queue: '/zones/queue' },
  },
};

const EMPTY: Scenario = {
  name: 'an office without sources',
  catalog: { version: 1, office: 'empty', namespaces: { main: { connection: 'ServiceBusConnection' } }, sources: [] },
  parameters: {},
};

/** All of them. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "the repository's own catalog", catalog: OWN, parameters: {} },
  GUEST,
  TRIED,
  PRIVATE,
  HOSTED,
  EMPTY,
];
export { GUEST, HOSTED, PRIVATE, SUBNETS, TRIED };
