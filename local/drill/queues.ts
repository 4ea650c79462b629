/** The company of the drill: four queues, each with a consumer on another framework. All of them charge cards. */
import type { Framework } from './deaths.ts';

/** A queue that the office watches, and who consumes it. */
export interface Watched {
  /** Its name in the catalog. */
  readonly source: string;
  readonly queue: string;
  readonly framework: Framework;
  readonly team: string;
  readonly messageType: string;
  /** Messages that are waiting when the payment API goes down. */
  readonly messages: number;
}

export const CHECKOUT: Watched = {
  source: 'checkout-orders',
  queue: 'checkout.orders',
  framework: 'MassTransit',
  team: 'checkout',
  messageType: 'Contoso.Checkout.OrderPlaced',
  messages: 9,
};

/** Every queue; the first is the one that is mended first. */
export const QUEUES: readonly Watched[] = [
  CHECKOUT,
  {
    source: 'subscription-renewals',
    queue: 'subscriptions.renewals',
    framework: 'Wolverine',
    team: 'subscriptions',
    messageType: 'Contoso.Subscriptions.RenewalDue',
    messages: 7,
  },
  {
    source: 'invoices-due',
    queue: 'invoices.due',
    framework: 'NServiceBus',
    team: 'invoicing',
    messageType: 'Contoso.Invoicing.InvoiceDue',
    messages: 6,
  },
  {
    source: 'refunds-requested',
    queue: 'refunds.requested',
    framework: 'plain .NET',
    team: 'refunds',
    messageType: 'Contoso.Refunds.RefundRequested',
    messages: 5,
  },
];

/** Orders of checkout that no outage has to do with: their amount is not a number. */
export const BROKEN = 3;

const LOCK = 'PT1M';
const MAX_DELIVERIES = 3;

/** The drill's catalog. */
export const CATALOG = {
  version: 1,
  office: 'drill',
  namespaces: { main: { connection: 'ServiceBusConnection' } },
  sources: QUEUES.map(({ source, queue, team }) => ({
    name: source,
    queue,
    mode: 'defer',
    owner: { team, contact: `${team}@example.org` },
    runbook: `https://example.org/runbooks/${source}`,
    retainFor: 'P14D',
    entity: {
      lockDuration: LOCK,
      maxDeliveryCount: MAX_DELIVERIES,
      duplicateDetection: false,
      requiresSession: false,
      deadLettersOnExpiry: true,
    },
  })),
};

/** The drill's broker, in the format of Microsoft's emulator. */
export const CONFIG = {
  UserConfig: {
    Namespaces: [
      {
        Name: 'sbemulatorns',
        Queues: QUEUES.map(({ queue }) => ({
          Name: queue,
          Properties: { DeadLetteringOnMessageExpiration: true, LockDuration: LOCK, MaxDeliveryCount: MAX_DELIVERIES },
        })),
      },
    ],
    Logging: { Type: 'Console' },
  },
};
