/** The story of three orders, told to a whole office: what it takes for a replay to be safe, and what it must not believe. */
import { expect } from 'vitest';
import type { TestOffice } from './office.ts';

/** A consumer that knows no currency XXX and cannot get through msg-2 at all. */
async function consume(office: TestOffice): Promise<void> {
  const receiver = office.client.createReceiver('orders', { maxAutoLockRenewalDurationInMs: 0 });
  for (;;) {
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 300 });
    if (message === undefined) break;
    if (message.messageId === 'msg-2') await receiver.abandonMessage(message);
    else {
      const deadLetterReason = 'UnsupportedCurrency';
      await receiver.deadLetterMessage(message, { deadLetterReason, deadLetterErrorDescription: 'Currency XXX' });
    }
  }
  await receiver.close();
}

/**
 * Two of three letters come back three times with their own count, the third is left, the fourth plan finds both over the
 * limit. Needs a source and queue `orders` with nothing in them.
 */
export async function expectStory(office: TestOffice): Promise<void> {
  await office.send(
    'orders',
    ...['msg-1', 'msg-2', 'msg-3'].map((messageId) => ({ messageId, body: { currency: 'XXX' } })),
  );
  await consume(office);
  await office.held(3);
  const { counts } = await office.get<{ counts: { key: string; count: number }[] }>('summary?by=reason');
  expect(counts.map(({ key, count }) => [key, count])).toEqual([
    ['UnsupportedCurrency', 2],
    ['MaxDeliveryCountExceeded', 1],
  ]);

  for (const round of [1, 2, 3]) {
    const plan = await office.plan({ selection: { reason: ['UnsupportedCurrency'] } });
    expect(plan).toMatchObject({ state: 'ready', target: 'orders', counts: { planned: 2, pending: 2 } });
    // The office has seen it fail, and says so.
    expect(plan.findings.map(({ code, letters }) => [code, letters])).toEqual(round === 1 ? [] : [['came-back', 2]]);
    const finished = await office.run(plan);
    expect(finished).toMatchObject({ state: 'finished', counts: { planned: 2, done: 2, maybeDuplicate: 0 } });
    await consume(office);
    const letters = await office.held(3);
    const returned = letters.filter(({ reason }) => reason === 'UnsupportedCurrency');
    expect(returned.map(({ messageId, replayCount, replayId }) => ({ messageId, replayCount, replayId }))).toEqual([
      { messageId: 'msg-1', replayCount: round, replayId: plan.id },
      { messageId: 'msg-3', replayCount: round, replayId: plan.id },
    ]);
    expect((await office.getPlan(plan.id)).returned).toBe(2);
    const details = await office.letter(returned[0]?.sequenceNumber ?? '');
    // What the broker counts starts anew with every send: it cannot tell that this is a replay.
    expect(details.deliveryCount).toBe(0);
    expect(details.history).toHaveLength(round);
    expect(details.history[0]?.fate?.planId).toBe(plan.id);
  }

  const fourth = await office.plan({ selection: { reason: ['UnsupportedCurrency'] } });
  expect(fourth.counts).toMatchObject({ planned: 2, pending: 0, skipped: 2 });
  expect(fourth.findings.map(({ code, level, letters }) => [code, level, letters])).toEqual([
    ['over-limit', 'warn', 2],
    ['nothing-to-send', 'block', 0],
  ]);
  const refused = await office.call('replay', 'POST', `plans/${fourth.id}/run`, { confirm: 0 });
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_BLOCKED' } });
  expect((await office.letters()).map(({ messageId }) => messageId).sort()).toEqual(['msg-1', 'msg-2', 'msg-3']);
}
