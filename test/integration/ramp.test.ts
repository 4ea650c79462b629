import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';

const NAMES = Array.from({ length: 9 }, (_, i) => `r${i}`);
let office: TestOffice;
let queue: string;
let used = 0;
beforeAll(async () => {
  office = await openTestOffice({ sources: [...NAMES, 'elsewhere'].map((name) => ({ name })) });
});
afterAll(() => office?.close());
beforeEach(() => {
  queue = NAMES[used++] as string;
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

const dlq = () => office.broker.messages(`${queue}/$DeadLetterQueue`);
const target = () => office.broker.messages(queue);

async function startRamp(count: number, ramp: object = {}): Promise<PlanJson> {
  await office.deadLetters(count, queue);
  const plan = await office.plan({}, queue);
  const body = { confirm: count, ramp: { steps: [1, 3], observe: 'PT0.5S', ...ramp } };
  await office.post(`plans/${plan.id}/run`, body);
  return plan;
}

/** A consumer of the queue for as long as `during` runs. */
async function consuming<Result>(
  accepts: (id: unknown) => boolean,
  during: () => Promise<Result>,
  why = { deadLetterReason: 'StillBroken', deadLetterErrorDescription: 'again' },
): Promise<Result> {
  const receiver = office.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
  let over = false;
  const loop = (async () => {
    while (!over) {
      for (const message of await receiver.receiveMessages(1, { maxWaitTimeInMs: 100 })) {
        if (accepts(message.messageId)) await receiver.completeMessage(message);
        else await receiver.deadLetterMessage(message, why);
      }
    }
  })();
  try {
    return await during();
  } finally {
    over = true;
    await loop;
    await receiver.close();
  }
}

test('a run whose letters are consumed goes step by step to its end', async () => {
  const plan = await startRamp(10);
  const steps = new Set<string>();
  const finished = await consuming(
    () => true,
    () =>
      until(async () => {
        const now = await office.getPlan(plan.id);
        steps.add(`${now.state}:${now.counts.done}`);
        return now.state === 'finished' ? now : undefined;
      }, 'the run to finish'),
  );
  expect([...steps]).toEqual(expect.arrayContaining(['observing:1', 'observing:4', 'finished:10']));
  expect(finished.counts).toMatchObject({ planned: 10, done: 10, maybeDuplicate: 0 });
  expect(finished.returned).toBe(0);
  expect(dlq()).toEqual([]);
});

test('one letter of the first step back halts the run; the rest stays; it goes on only when somebody says so', async () => {
  const plan = await startRamp(10);
  const halted = await consuming(
    () => false,
    () => office.finished(plan.id, ['halted']),
  );
  expect(halted.counts).toMatchObject({ planned: 10, done: 1, pending: 9 });
  expect(halted).toMatchObject({ returned: 1, stateReason: '1 of the 1 letters of step 1 came back' });
  // Nine that were never sent, and the one that came back.
  expect(dlq()).toHaveLength(10);
  const { entries } = await office.get<{ entries: { operation: string }[] }>(`audit?plan=${plan.id}`);
  expect(entries.map(({ operation }) => operation)).toContain('plan.halt');
  expect((await office.get<{ heldBy: unknown }>(`sources/${queue}`)).heldBy).toBeNull();

  await office.post(`plans/${plan.id}/resume`);
  const finished = await consuming(
    () => true,
    () => office.finished(plan.id),
  );
  expect(finished.counts).toMatchObject({ planned: 10, done: 10 });
  expect(dlq()).toHaveLength(1);
});

test('a consumer that remembers ids lets no letter through under its own; the run says what that may mean, and new ids help', async () => {
  const handled = new Set(['m-0', 'm-1', 'm-2']);
  const inbox = (during: () => Promise<PlanJson>) =>
    consuming((id) => !handled.has(String(id)), during, {
      deadLetterReason: 'UnsupportedCurrency',
      deadLetterErrorDescription: 'no such currency',
    });
  const plan = await startRamp(3);
  const halted = await inbox(() => office.finished(plan.id, ['halted']));
  expect(halted.stateReason).toMatch(
    /^1 of the 1 letters of step 1 came back, for the same reason .*messageId "new"\)$/,
  );
  await office.post(`plans/${plan.id}/cancel`);
  const renaming = await office.plan({ choices: { messageId: 'new' } }, queue);
  const finished = await inbox(() => office.run(renaming));
  expect(finished.counts).toMatchObject({ planned: 3, done: 3 });
  await until(() => target().length === 0 || undefined, 'all to be consumed');
  expect(dlq()).toEqual([]);
});

test('a few that come back in a later step do not halt it, more do', async () => {
  const plan = await startRamp(30, { steps: [1, 20], haltAbove: 0.1 });
  // Two of the twenty are at the limit; the third, of the last step, is not.
  const bad = new Set(['m-3', 'm-7', 'm-25', 'm-26', 'm-27']);
  const ended = await consuming(
    (id) => !bad.has(String(id)),
    () => office.finished(plan.id, ['halted', 'finished']),
  );
  expect(ended.counts.done).toBeGreaterThanOrEqual(21);
  expect(ended.returned).toBeGreaterThanOrEqual(2);
});

test('where nobody consumes, the run does not go on', async () => {
  const plan = await startRamp(5);
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.stateReason).toContain('no-evidence');
  expect(paused.counts).toMatchObject({ done: 1, pending: 4 });
  expect(target()).toHaveLength(1);
});

test('a run that watches can be paused, resumed and cancelled', async () => {
  const plan = await startRamp(5, { observe: 'PT1H' });
  await office.finished(plan.id, ['observing']);
  await office.post(`plans/${plan.id}/pause`);
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.counts).toMatchObject({ done: 1, pending: 4 });
  await office.post(`plans/${plan.id}/resume`);
  await office.finished(plan.id, ['observing']);
  await office.post(`plans/${plan.id}/cancel`);
  const cancelled = await office.finished(plan.id, ['cancelled']);
  expect(cancelled.counts).toMatchObject({ planned: 5, done: 2, left: 3, pending: 0 });
  expect(dlq()).toHaveLength(3);
});

test('strangers that carry the name of a running plan do not halt it, wherever they die', async () => {
  const letters = await office.deadLetters(5, queue);
  const plan = await office.plan({}, queue);
  await office.post(`plans/${plan.id}/run`, { confirm: 5, ramp: { steps: [1, 3], observe: 'PT1S' } });
  await office.finished(plan.id, ['observing']);
  const [first, , , , last] = letters;
  const says = (of = '') => ({ 'x-replay-id': plan.id, 'x-replay-of': of, 'x-replay-count': 1 });
  const elsewhere = 'elsewhere';
  // Made of a letter that was sent; that very letter's twin in another queue; and one that was not sent yet.
  await office.send(elsewhere, {
    messageId: 'm-0',
    body: { order: 0 },
    applicationProperties: says(first?.sequenceNumber),
  });
  await office.send(
    queue,
    { messageId: 'made-of-it', body: 'other', applicationProperties: says(first?.sequenceNumber) },
    { messageId: 'm-4', body: { order: 4 }, applicationProperties: says(last?.sequenceNumber) },
    { messageId: 'of-nothing', body: 'x', applicationProperties: says() },
  );
  const strangers = ['made-of-it', 'm-4', 'of-nothing'];
  await office.deadLetterAll(elsewhere);
  await office.collect(elsewhere);
  const isStranger = new Set(strangers);
  const finished = await consuming(
    (id) => !isStranger.delete(String(id)),
    () => office.finished(plan.id, ['finished', 'halted', 'paused']),
  );
  expect(finished).toMatchObject({ state: 'finished', returned: 0, counts: { done: 5 } });
  await office.held(3, queue);
  expect((await office.letters(queue)).map(({ messageId }) => messageId).toSorted()).toEqual(strangers.toSorted());
  expect((await office.getPlan(plan.id)).returned).toBe(0);
});

test('a crash while a run watches loses neither the step nor a letter', async () => {
  const plan = await startRamp(5, { observe: 'PT1S' });
  await office.finished(plan.id, ['observing']);
  await office.kill();
  await office.restart();
  const finished = await consuming(
    () => true,
    () =>
      until(async () => {
        await office.process.run('watch');
        const now = await office.getPlan(plan.id);
        return now.state === 'finished' ? now : undefined;
      }, 'the run to finish'),
  );
  expect(finished.counts).toMatchObject({ planned: 5, done: 5, maybeDuplicate: 0 });
});

test('a rate is kept without losing or doubling anything', async () => {
  await office.deadLetters(25, queue);
  const plan = await office.plan({}, queue);
  const view = await office.post<{ pace: unknown }>(`plans/${plan.id}/run`, { confirm: 25, ramp: false, rate: 5 });
  expect(view.pace).toMatchObject({ rate: 5, ramp: false });
  const finished = await office.finished(plan.id);
  expect(finished.counts).toMatchObject({ done: 25, maybeDuplicate: 0 });
  expect(target()).toHaveLength(25);
});

test.each([{ rate: 0 }, { rate: '5' }, { ramp: true }, { ramp: { steps: [] } }, { ramp: { observe: '5s' } }])(
  'a pace of %j is refused',
  async (pace) => {
    const answer = await office.call('replay', 'POST', 'plans/20261130t104512-k3f5q2xa/run', { confirm: 1, ...pace });
    expect(answer).toMatchObject({ status: 400, json: { code: 'DLO_BAD_REQUEST' } });
  },
);
