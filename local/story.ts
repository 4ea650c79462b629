/**
 * The story that `npm start` plays: three orders die, two are sent back three times and fail again, one is left on purpose,
 * letters of three frameworks tell what killed them, and a letter past its retention is removed. Every step checks what it tells and throws `NotAsTold` where it is not so.
 */
import { ServiceBusClient } from '@azure/service-bus';
import type { LocalOffice } from './office.ts';
import { answers } from './story/answers.ts';
import { expectSame } from './story/check.ts';
import { Desk } from './story/desk.ts';
import { whatFrameworksWrite } from './story/frameworks.ts';
import { type Print, WIDTH, wrap } from './story/print.ts';
import { pastItsRetention } from './story/retention.ts';
import { held, type Scene, type Watched } from './story/scene.ts';
import { consume, peekDeadLetters, placeOrders, type Verdict } from './story/shop.ts';

const QUEUE = 'billing.order-placed';
const BILLING: Watched = { source: 'billing-order-placed', place: [QUEUE] };
const SOURCE = `/sources/${BILLING.source}`;
const UNSUPPORTED = 'UnsupportedCurrency';
/** How often one message may be sent back, by the catalog. */
const MAX_REPLAYS = 3;

/** Plays the story on an open office. Throws `NotAsTold`, or what kept a step from being taken. */
export async function tellStory(office: LocalOffice, print: Print): Promise<void> {
  const client = new ServiceBusClient(office.broker);
  let steps = 0;
  const scene: Scene = {
    client,
    desk: new Desk(office, print),
    step: (title) => print(`\n${++steps}. ${title}`),
    tell: (text) => {
      for (const line of wrap(text, WIDTH - 3)) print(`   ${line}`);
    },
  };
  try {
    await threeOrdersDie(scene);
    await theSummary(scene);
    const first = await thePlan(scene);
    await theRun(scene, first);
    await theIncompleteFix(scene, first);
    await theBrokersCount(scene, first);
    for (const time of [2, 3]) await onceMore(scene, time);
    await theFourthPlan(scene);
    await whatFrameworksWrite(scene);
    await pastItsRetention(scene);
  } finally {
    await client.close();
  }
}

/** What billing does: it refuses orders in a currency it does not know, and msg-2 crashes it before it can say anything. */
function billing(messageId: string): Verdict {
  if (messageId === 'msg-2') return { kind: 'abandon' };
  const description = 'Currency XXX is not supported by the payment provider';
  return { kind: 'dead-letter', reason: UNSUPPORTED, description };
}

async function threeOrdersDie(scene: Scene): Promise<void> {
  scene.step('Three orders reach billing, and it can settle none of them.');
  await placeOrders(scene.client, QUEUE, ['msg-1', 'msg-2', 'msg-3']);
  const seen = await consume(scene.client, BILLING.place, 5, billing);
  const verdicts = seen.map(({ messageId, verdict }) => `${messageId} ${verdict}`).sort();
  const abandoned = Array.from({ length: 3 }, () => 'msg-2 abandon');
  expectSame('what billing did', verdicts, ['msg-1 dead-letter', ...abandoned, 'msg-3 dead-letter']);
  scene.tell('msg-1 and msg-3: dead-lettered by billing. msg-2: crashes it, abandoned until the delivery limit.');
  scene.tell('The office records each letter and sets it aside in the dead-letter queue (DLQ). It stays there.');
  await allHeld(scene);
  const list = await scene.desk.show({ method: 'GET', path: `${SOURCE}/letters`, key: 'read' }, 200, answers.letters);
  const told = list.letters.map(({ messageId, reason, advice }) => `${messageId} ${reason} ${advice}`).sort();
  expectSame('letters, reasons, advice', told, [
    `msg-1 ${UNSUPPORTED} investigate`,
    'msg-2 MaxDeliveryCountExceeded fix-first',
    `msg-3 ${UNSUPPORTED} investigate`,
  ]);
}

/** The broker's counts are the same after every replay: it counts deliveries of one message, and a replay is a new one. */
function allHeld(scene: Scene): Promise<void> {
  return held(scene, BILLING, { 'msg-1': 0, 'msg-2': 3, 'msg-3': 0 });
}

async function theSummary(scene: Scene): Promise<void> {
  scene.step('What died, and why? Looking changes nothing.');
  const before = await peekDeadLetters(scene.client, BILLING.place);
  const path = '/summary?by=reason';
  const { counts } = await scene.desk.show({ method: 'GET', path, key: 'read' }, 200, answers.summary);
  expectSame('the summary', counts, [
    { key: UNSUPPORTED, count: 2 },
    { key: 'MaxDeliveryCountExceeded', count: 1 },
  ]);
  expectSame('letters in the DLQ', before.length, 3);
  expectSame('the DLQ after looking', await peekDeadLetters(scene.client, BILLING.place), before);
  scene.tell(`The DLQ, peeked before and after: ${before.length} messages, the same, in the same state.`);
}

/** Plans to send back what was dead-lettered for its currency. Returns the plan's id. */
async function thePlan(scene: Scene): Promise<string> {
  scene.step('The dry run: send back what billing refused. msg-2 would loop again, so it is not chosen.');
  const body = { selection: { reason: [UNSUPPORTED] } };
  const call = { method: 'POST', path: `${SOURCE}/plans`, key: 'replay', body } as const;
  const { id, ...plan } = await scene.desk.show(call, 201, answers.plan);
  const counts = { planned: 2, pending: 2, done: 0, skipped: 0 };
  expectSame('the plan', plan, { state: 'ready', target: QUEUE, counts, findings: [] });
  return id;
}

async function theRun(scene: Scene, id: string): Promise<void> {
  scene.step('The run: what was planned, once, after the number is repeated. Two letters need no ramp.');
  await run(scene, id);
}

async function run({ desk }: Scene, id: string): Promise<void> {
  // Two letters need no ramp, and the story no waiting.
  const body = { confirm: 2, ramp: false };
  const call = { method: 'POST', path: `/plans/${id}/run`, key: 'replay', body, wait: 30 } as const;
  const ran = await desk.show(call, 200, answers.run);
  const counts = { planned: 2, pending: 0, done: 2, skipped: 0, maybeDuplicate: 0 };
  expectSame('the run', ran, { state: 'finished', counts });
}

async function theIncompleteFix(scene: Scene, id: string): Promise<void> {
  scene.step('The fix was incomplete: billing rejects both again. Both are back, with the plan that sent them.');
  await rejectedAgain(scene, id, 1);
  const now = await scene.desk.show({ method: 'GET', path: `/plans/${id}`, key: 'read' }, 200, answers.planNow);
  expectSame('how many came back', now.returned, 2);
}

/** Lets billing fail on both again, and checks that they carry their count and the plan's id. */
async function rejectedAgain(scene: Scene, id: string, replayCount: number): Promise<void> {
  const seen = await consume(scene.client, BILLING.place, 2, billing);
  const deliveries = ['msg-1', 'msg-3'].map((messageId) => ({ messageId, verdict: 'dead-letter', replayCount }));
  expectSame('what billing got and did', seen, deliveries);
  await allHeld(scene);
  const path = `${SOURCE}/letters?reason=${UNSUPPORTED}`;
  const { letters } = await scene.desk.show({ method: 'GET', path, key: 'read' }, 200, answers.returned);
  expectSame('the letters that came back', letters, [
    { messageId: 'msg-1', replayCount, replayId: id },
    { messageId: 'msg-3', replayCount, replayId: id },
  ]);
}

async function theBrokersCount(scene: Scene, id: string): Promise<void> {
  scene.step("How often was msg-1 sent back? The broker's deliveryCount says 0, its x-replay-count says 1.");
  const { letters } = await scene.desk.look(`${SOURCE}/letters?messageId=msg-1`, answers.numbers);
  const path = `${SOURCE}/letters/${letters[0]?.sequenceNumber}`;
  const letter = await scene.desk.show({ method: 'GET', path, key: 'read' }, 200, answers.letter);
  expectSame("the broker's count", letter.deliveryCount, 0);
  expectSame('its own count and its plan', [letter.replay.count, letter.replay.planId], [1, id]);
  expectSame('its earlier death', letter.history, [
    { sequenceNumber: letter.replay.of, fate: { fate: 'replayed', planId: id } },
  ]);
}

async function onceMore(scene: Scene, time: number): Promise<void> {
  scene.step(`Replay ${time} of ${MAX_REPLAYS}: planned, run, and rejected again.`);
  const body = { selection: { reason: [UNSUPPORTED] } };
  const call = { method: 'POST', path: `${SOURCE}/plans`, key: 'replay', body } as const;
  const { id, counts } = await scene.desk.show(call, 201, answers.planInShort);
  expectSame('the plan', counts, { planned: 2, pending: 2, done: 0, skipped: 0 });
  await run(scene, id);
  await rejectedAgain(scene, id, time);
}

async function theFourthPlan(scene: Scene): Promise<void> {
  scene.step('The fourth plan: both are over the limit. Nothing is left to send, so nothing can be run.');
  const body = { selection: { reason: [UNSUPPORTED] } };
  const call = { method: 'POST', path: `${SOURCE}/plans`, key: 'replay', body } as const;
  const plan = await scene.desk.show(call, 201, answers.plan);
  expectSame('the counts of the fourth plan', plan.counts, { planned: 2, pending: 0, done: 0, skipped: 2 });
  expectSame('the findings of the fourth plan', plan.findings, [
    { code: 'over-limit', level: 'warn', letters: 2 },
    { code: 'nothing-to-send', level: 'block', letters: 0 },
  ]);
  const run = { method: 'POST', path: `/plans/${plan.id}/run`, key: 'replay', body: { confirm: 0 } } as const;
  const refused = await scene.desk.show(run, 409, answers.problem);
  expectSame('why it is refused', refused.code, 'DLO_PLAN_BLOCKED');
  await allHeld(scene);
  scene.tell('msg-1, msg-2 and msg-3 are all in the DLQ. Nothing was lost, and nothing loops.');
}
