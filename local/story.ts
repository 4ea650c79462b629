/**
 * The story that `npm start` plays: three orders die, two are sent back three times and fail again, one is left on purpose,
 * and a letter past its retention is removed. Every step checks what it tells and throws `NotAsTold` where it is not so.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceBusClient } from '@azure/service-bus';
import type { LocalOffice } from './office.ts';
import * as answers from './story/answers.ts';
import { expectSame } from './story/check.ts';
import { becomes, Desk } from './story/desk.ts';
import { type Print, WIDTH, wrap } from './story/print.ts';
import { consume, type Delivery, type Place, peekDeadLetters, placeOrders, type Verdict } from './story/shop.ts';

/** The source whose letters may stay for {@link SHORT_RETENTION} only, so that the story can show one removed. */
export const SHORT_LIVED = 'notification-order-placed';
export const SHORT_RETENTION = 'PT2S';

const SOURCE = 'billing-order-placed';
const BILLING: Place = ['billing.order-placed'];
const NOTIFICATION: Place = ['order-placed', 'notification'];
const UNSUPPORTED = 'UnsupportedCurrency';
const BODY = { selection: { reason: [UNSUPPORTED] } };
const POLL = `/sources/${SOURCE}/letters`;

interface Scene {
  readonly desk: Desk;
  readonly client: ServiceBusClient;
  /** Begins a step of the story. */
  readonly step: (title: string) => void;
  /** Tells something beside the calls. */
  readonly tell: (text: string) => void;
}

/** Plays the story on an open office. Throws `NotAsTold`, or what kept a step from being taken. */
export async function tellStory(office: LocalOffice, print: Print): Promise<void> {
  const client = new ServiceBusClient(office.broker);
  let steps = 0;
  const scene: Scene = {
    client,
    desk: new Desk(office, print),
    step: (title) => print(`\n${String(++steps).padStart(2)} ${title}`),
    tell: (text) => {
      for (const line of wrap(text, WIDTH - 3)) print(`   ${line}`);
    },
  };
  try {
    await threeOrdersDie(scene);
    await theSummary(scene);
    const first = await replay(scene, 1);
    await bothAreBack(scene, first);
    await twiceMore(scene);
    await theFourthPlan(scene);
    await aLetterPastItsRetention(scene);
  } finally {
    await client.close();
  }
}

/** What billing does with an order in a currency it does not know; msg-2 crashes it before it can say so. */
function billing(messageId: string): Verdict {
  if (messageId === 'msg-2') return { kind: 'abandon' };
  const description = 'Currency XXX is not supported by the payment provider';
  return { kind: 'dead-letter', reason: UNSUPPORTED, description };
}

async function threeOrdersDie({ desk, client, step, tell }: Scene): Promise<void> {
  step('Three orders reach billing, and billing can settle none of them');
  await placeOrders(client, BILLING[0], ['msg-1', 'msg-2', 'msg-3']);
  const seen = await consume(client, BILLING, 5, billing);
  const verdictsOn = (id: string) => seen.filter(({ messageId }) => messageId === id).map(({ verdict }) => verdict);
  expectSame('what billing did with msg-1', verdictsOn('msg-1'), ['dead-letter']);
  expectSame('what billing did with msg-2', verdictsOn('msg-2'), ['abandon', 'abandon', 'abandon']);
  expectSame('what billing did with msg-3', verdictsOn('msg-3'), ['dead-letter']);
  tell(`billing dead-letters msg-1 and msg-3 (${UNSUPPORTED}) and crashes on msg-2 until the broker gives up.`);
  tell('The office records each letter and sets it aside in the dead-letter queue (DLQ), where it stays.');
  await held(scene_(desk, client), { 'msg-1': 0, 'msg-2': 3, 'msg-3': 0 });
  const { letters } = await desk.show({ method: 'GET', path: POLL, key: 'read' }, 200, answers.lettersAnswer);
  expectSame(
    'the letters, their reasons and what to do',
    letters.map(({ messageId, reason, advice }) => `${messageId} ${reason} ${advice}`).sort(),
    [
      `msg-1 ${UNSUPPORTED} investigate`,
      'msg-2 MaxDeliveryCountExceeded fix-first',
      `msg-3 ${UNSUPPORTED} investigate`,
    ],
  );
}
