import type { ServiceBusClient } from '@azure/service-bus';
import { becomes, type Desk } from './desk.ts';
import { type Place, peekDeadLetters } from './shop.ts';

/** What every step of the story has at hand. */
export interface Scene {
  readonly desk: Desk;
  readonly client: ServiceBusClient;
  /** Begins a step. */
  readonly step: (title: string) => void;
  /** Tells something beside the calls. */
  readonly tell: (text: string) => void;
}

/** Where a source's messages come from. */
export interface Watched {
  /** Its name in the catalog. */
  readonly source: string;
  readonly place: Place;
}

/**
 * Waits until the DLQ holds exactly these letters, all set aside by the office. `deliveryCounts` by message id: what the
 * broker says of them. Setting aside is the trigger's work; collecting too makes the story independent of who is first.
 */
export async function held(
  { desk, client }: Scene,
  { source, place }: Watched,
  deliveryCounts: Readonly<Record<string, number>>,
): Promise<void> {
  const expected = Object.entries(deliveryCounts)
    .map(([messageId, deliveryCount]) => ({ messageId, state: 'deferred', deliveryCount }))
    .sort((a, b) => a.messageId.localeCompare(b.messageId));
  const look = async () => {
    await desk.collect(source);
    return peekDeadLetters(client, place);
  };
  await becomes(`the letters of ${source} in the DLQ are set aside`, look, expected);
}
