/** The company at work, with the official client: it places orders, consumes them, and calls a payment API that can be down. */
import { randomUUID } from 'node:crypto';
import type { ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver } from '@azure/service-bus';
import { z } from 'zod';
import { givenUp, type Thrown } from './deaths.ts';
import { BROKEN, CHECKOUT, QUEUES, type Watched } from './queues.ts';

/** What every message asks for. */
const chargeSchema = z.object({ orderId: z.string(), amount: z.number() });

/** The company, consuming. */
export interface Company {
  /** Whether the payment API answers. */
  setPayments(up: boolean): void;
  /** Sends what is waiting, to every queue. */
  placeOrders(): Promise<void>;
  /** How often each message id has been charged, over all queues. */
  charges(): ReadonlyMap<string, number>;
  /** How many deliveries were given up so far. */
  deaths(): number;
  close(): Promise<void>;
}

/** Starts a consumer on every queue. The payment API is down. */
export function openCompany(client: ServiceBusClient, log: (line: string) => void): Company {
  const charged = new Map<string, number>();
  let isUp = false;
  let deaths = 0;

  const charge = (message: ServiceBusReceivedMessage): Thrown | undefined => {
    const parsed = chargeSchema.safeParse(message.body);
    if (!parsed.success) return unreadable();
    if (!isUp) return timedOut();
    const id = String(message.messageId);
    charged.set(id, (charged.get(id) ?? 0) + 1);
    return undefined;
  };

  const consume = ({ queue, framework, messageType }: Watched): ServiceBusReceiver => {
    const receiver = client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
    receiver.subscribe(
      {
        processMessage: async (message) => {
          const thrown = charge(message);
          if (thrown === undefined) return receiver.completeMessage(message);
          deaths++;
          const settlement = givenUp(framework, queue, messageType, thrown, Date.now());
          // The client's type wants a reason, and MassTransit gives none.
          await receiver.deadLetterMessage(message, settlement as Required<typeof settlement>);
        },
        processError: async ({ error }) => log(`consumer of ${queue}: ${error.message}`),
      },
      { autoCompleteMessages: false },
    );
    return receiver;
  };

  const receivers = QUEUES.map(consume);
  return {
    setPayments(up) {
      isUp = up;
    },
    placeOrders: () => placeOrders(client),
    charges: () => charged,
    deaths: () => deaths,
    close: async () => {
      await Promise.all(receivers.map((receiver) => receiver.close()));
    },
  };
}

async function placeOrders(client: ServiceBusClient): Promise<void> {
  for (const watched of QUEUES) {
    const sender = client.createSender(watched.queue);
    const broken = watched === CHECKOUT ? BROKEN : 0;
    const messages = Array.from({ length: watched.messages + broken }, (_, i) => ({
      messageId: `${watched.team}-${i + 1}`,
      contentType: 'application/json',
      subject: watched.messageType,
      body: { orderId: randomUUID(), amount: i < watched.messages ? 10 + i : '12,50' },
    }));
    try {
      await sender.sendMessages(messages);
    } finally {
      await sender.close();
    }
  }
}

/** What the HTTP client throws while the payment API does not answer. The request id is another each time. */
function timedOut(): Thrown {
  return {
    type: 'System.TimeoutException',
    message: `POST https://payments.contoso.example/v1/charges timed out after 30000 ms (request ${randomUUID()})`,
    stack: [
      '   at Contoso.Payments.PaymentsClient.ChargeAsync(Charge charge) in /src/Payments/PaymentsClient.cs:line 88',
      '   at Contoso.Payments.CardPayments.TakeAsync(String orderId) in /src/Payments/CardPayments.cs:line 41',
    ].join('\n'),
  };
}

/** What the serializer throws on an amount that is a text with a comma. */
function unreadable(): Thrown {
  return {
    type: 'System.Text.Json.JsonException',
    message:
      'The JSON value could not be converted to System.Decimal. Path: $.amount | LineNumber: 0 | BytePositionInLine: 64.',
    stack: [
      '   at System.Text.Json.ThrowHelper.ReThrowWithPath(ReadStack& state, JsonReaderException ex)',
      '   at Contoso.Checkout.OrderPlacedReader.Read(BinaryData body) in /src/Checkout/OrderPlacedReader.cs:line 17',
    ].join('\n'),
  };
}
