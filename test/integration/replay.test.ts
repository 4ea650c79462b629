import Long from 'long';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LetterJson, openTestOffice, PLAIN, type PlanJson, type TestOffice, until } from '../harness/office.ts';

interface PlanLetters {
  letters: { sequenceNumber: string; fate: string; reason: string | null; maybeDuplicate: boolean }[];
}

/** Every test has a source and a queue of its own. */
const NAMES = Array.from({ length: 30 }, (_, i) => `q${i}`);
let office: TestOffice;
let queue: string;
let used = 0;

beforeAll(async () => {
  office = await openTestOffice({
    sources: [
      ...NAMES.map((name) => ({ name })),
      { name: 'dedup', entity: { ...PLAIN, duplicateDetection: 'PT10M' } },
      { name: 'observed', mode: 'observe' },
      { name: 'unstated', entity: {} },
      { name: 'fanout', topic: 'events', subscription: 'billing' },
      { name: 'direct', topic: 'events', subscription: 'shipping', replay: { replayQueue: 'shipping-replay' } },
      { name: 'missing', topic: 'events', subscription: 'mail', replay: { replayQueue: 'nowhere' } },
    ],
    queues: { 'shipping-replay': {} },
    topics: { events: { billing: {}, shipping: {}, mail: {} } },
  });
});
afterAll(() => office?.close());
beforeEach(() => {
  queue = NAMES[used++] as string;
});
afterEach((context) => {
  for (const fault of faults.splice(0)) fault.remove();
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

const faults: { remove(): void }[] = [];
function fault(rule: Parameters<typeof office.broker.faults.add>[0]) {
  const handle = office.broker.faults.add(rule);
  faults.push(handle);
  return handle;
}

const dlq = () => office.broker.messages(`${queue}/$DeadLetterQueue`);
const target = () => office.broker.messages(queue);
const fates = async (plan: PlanJson) => (await office.get<PlanLetters>(`plans/${plan.id}/letters?top=500`)).letters;

/** Starts a plan without waiting for its end. */
const start = (plan: PlanJson) =>
  office.post<PlanJson>(`plans/${plan.id}/run`, { confirm: plan.counts.pending, ramp: false });

function expectSum({ counts }: PlanJson): void {
  const { planned, done, skipped, failed, left, pending } = counts;
  expect(done + skipped + failed + left + pending).toBe(planned);
}

test('300 letters go back in the order they came, in several chunks, each once', async () => {
  await office.deadLetters(300, queue);
  const finished = await office.run(await office.plan({}, queue));
  expect(finished).toMatchObject({ state: 'finished', counts: { planned: 300, done: 300, maybeDuplicate: 0 } });
  expect(dlq()).toEqual([]);
  const receiver = office.client.createReceiver(queue, { receiveMode: 'receiveAndDelete' });
  const ids: unknown[] = [];
  while (ids.length < 300) ids.push(...(await receiver.receiveMessages(300 - ids.length)).map((m) => m.messageId));
  await receiver.close();
  expect(ids).toEqual(Array.from({ length: 300 }, (_, i) => `m-${i}`));
});

test('a message that the broker refuses stays in the DLQ, and its neighbours go', async () => {
  const letters = await office.deadLetters(4, queue);
  const condition = 'amqp:link:message-size-exceeded';
  // The batch of four, then the half and the single that hold the first letter.
  const refusal = fault({ at: 'send', entity: queue, do: 'refuse', times: 3, condition, description: 'too big' });
  const finished = await office.run(await office.plan({}, queue));
  expect(refusal.hits).toBe(3);
  expect(finished.counts).toMatchObject({ planned: 4, done: 3, failed: 1, maybeDuplicate: 0 });
  expectSum(finished);
  const [bad] = (await fates(finished)).filter(({ fate }) => fate === 'failed');
  expect(bad).toMatchObject({ sequenceNumber: letters[0]?.sequenceNumber, maybeDuplicate: false });
  expect(bad?.reason).toContain('message-size-exceeded');
  expect(dlq()).toMatchObject([{ state: 'deferred', locked: false }]);
  expect(target()).toHaveLength(3);
  expect((await office.letter(letters[0]?.sequenceNumber ?? '', queue)).fate).toBeNull();
});

test('a target that refuses everything pauses the run, nothing is journaled as sent, and it can be resumed', async () => {
  await office.deadLetters(3, queue);
  const condition = 'com.microsoft:entity-disabled';
  const refusal = fault({ at: 'send', entity: queue, do: 'refuse', times: 100, condition, description: 'disabled' });
  const plan = await office.plan({}, queue);
  await start(plan);
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.stateReason).toContain('disabled');
  expect(paused.counts).toMatchObject({ pending: 3, done: 0, maybeDuplicate: 0 });
  expect((await fates(plan)).map(({ fate }) => fate)).toEqual(['pending', 'pending', 'pending']);
  expect(dlq().map(({ state, locked }) => ({ state, locked }))).toEqual(
    Array.from({ length: 3 }, () => ({ state: 'deferred', locked: false })),
  );
  expect(target()).toEqual([]);
  refusal.remove();
  await office.post(`plans/${plan.id}/resume`);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
  expect(target()).toHaveLength(3);
});

test.each([
  ['the answer is lost', { do: 'lose-answer' }],
  ['the connection drops after it was stored', { do: 'drop-connection', when: 'after' }],
  ['the connection drops before it was stored', { do: 'drop-connection', when: 'before' }],
] as const)(
  'an accepted send of which %s is sent again and its letters are marked',
  async (_title, rule) => {
    await office.deadLetters(3, queue);
    const lost = fault({ at: 'send', entity: queue, ...rule });
    const plan = await office.plan({}, queue);
    await start(plan);
    await until(() => lost.hits === 1 || undefined, 'the fault to strike');
    const finished = await office.finished(plan.id);
    expect(finished.counts).toMatchObject({ planned: 3, done: 3, maybeDuplicate: 3 });
    expect((await fates(plan)).every(({ maybeDuplicate }) => maybeDuplicate)).toBe(true);
    expect(target().length).toBe(rule.do === 'drop-connection' && rule.when === 'before' ? 3 : 6);
    expect(dlq()).toEqual([]);
  },
  40_000,
);

test('a broker that never answers is sent to three times, then the run pauses; each resume is one send more', async () => {
  await office.deadLetters(2, queue);
  const lost = fault({ at: 'send', entity: queue, do: 'lose-answer', times: 100 });
  const plan = await office.plan({}, queue);
  await start(plan);
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.stateReason).toContain('2 letters were sent 3 times');
  expect(paused.counts).toMatchObject({ done: 0, pending: 2 });
  expect(lost.hits).toBe(3);
  expect(target()).toHaveLength(6);
  await office.post(`plans/${plan.id}/resume`);
  await until(
    async () => (await office.getPlan(plan.id)).stateReason?.includes('sent 4 times') || undefined,
    'the next',
  );
  expect(target()).toHaveLength(8);
  lost.remove();
  await office.finished(plan.id, ['paused']);
  await office.post(`plans/${plan.id}/resume`);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 2, maybeDuplicate: 2 });
  expect(target()).toHaveLength(10);
  expect(dlq()).toEqual([]);
}, 40_000);

test('a lost answer to the completion sends nothing twice', async () => {
  await office.deadLetters(3, queue);
  const entity = `${queue}/$DeadLetterQueue`;
  const lost = fault({ at: 'settle', entity, operation: 'complete', do: 'drop-connection', when: 'after' });
  const finished = await office.run(await office.plan({}, queue));
  expect(lost.hits).toBe(1);
  expect(finished.counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
  expect(target()).toHaveLength(3);
  expect(dlq()).toEqual([]);
});

test('a completion that fails leaves the chunk sent; it is completed later and not sent again', async () => {
  await office.deadLetters(2, queue);
  const entity = `${queue}/$DeadLetterQueue`;
  const condition = 'com.microsoft:message-lock-lost';
  fault({ at: 'settle', entity, operation: 'complete', do: 'refuse', times: 3, condition });
  const plan = await office.plan({}, queue);
  await start(plan);
  await until(() => target().length === 2 || undefined, 'the send');
  office.broker.clock.advance(61_000);
  const finished = await office.finished(plan.id);
  expect(finished.counts).toMatchObject({ done: 2, maybeDuplicate: 0 });
  expect(target()).toHaveLength(2);
  expect(dlq()).toEqual([]);
});

test('a letter that somebody else has locked is waited for, the others go first', async () => {
  const letters = await office.deadLetters(3, queue);
  const other = office.client.createReceiver(queue, { subQueueType: 'deadLetter' });
  const held = dlq()[0]?.sequenceNumber;
  await other.receiveDeferredMessages([Long.fromString(String(held))]);
  const plan = await office.plan({}, queue);
  await start(plan);
  const waiting = await until(async () => {
    const now = await office.getPlan(plan.id);
    return now.counts.done === 2 ? now : undefined;
  }, 'the two free letters to be done');
  expect(waiting).toMatchObject({ state: 'running', counts: { done: 2, pending: 1 } });
  expect(target()).toHaveLength(2);
  office.broker.clock.advance(61_000);
  const finished = await office.finished(plan.id);
  expect(finished.counts).toMatchObject({ planned: 3, done: 3, maybeDuplicate: 0 });
  expect(target()).toHaveLength(letters.length);
  await other.close();
});

test('a letter that somebody else completed is skipped as gone', async () => {
  const letters = await office.deadLetters(3, queue);
  const plan = await office.plan({}, queue);
  const other = office.client.createReceiver(queue, { subQueueType: 'deadLetter' });
  for (const message of await other.receiveDeferredMessages([Long.fromString(letters[1]?.sequenceNumber ?? '')])) {
    await other.completeMessage(message);
  }
  await other.close();
  const finished = await office.run(plan);
  expect(finished.counts).toMatchObject({ planned: 3, done: 2, skipped: 1 });
  expect((await fates(plan)).find(({ fate }) => fate === 'skipped')).toMatchObject({
    sequenceNumber: letters[1]?.sequenceNumber,
    reason: 'gone',
    maybeDuplicate: false,
  });
  // Its record says so at once, and does not wait for the next reconcile.
  const record = await office.letter(letters[1]?.sequenceNumber ?? '', queue);
  expect(record.fate).toMatchObject({ fate: 'gone', planId: null });
});

test('a number that now belongs to another message is not sent', async () => {
  await office.deadLetters(2, queue);
  const plan = await office.plan({}, queue);
  office.broker.recreate(queue);
  await office.send(queue, { messageId: 'other-0', body: 'not the same' }, { messageId: 'other-1', body: 'neither' });
  await office.deadLetterAll(queue);
  await until(() => dlq().every(({ state }) => state === 'deferred') || undefined, 'the new letters to be held');
  expect(dlq().map(({ sequenceNumber }) => String(sequenceNumber))).toEqual(['1', '2']);
  const finished = await office.run(plan);
  expect(finished.counts).toMatchObject({ planned: 2, done: 0, skipped: 2 });
  expect((await fates(plan)).map(({ reason }) => reason)).toEqual(['not-same-message', 'not-same-message']);
  expect(target()).toEqual([]);
  expect(dlq()).toMatchObject([{ locked: false }, { locked: false }]);
});

test('a run pauses between chunks, holds nothing meanwhile, and goes on where it was', async () => {
  await office.deadLetters(250, queue);
  const entity = `${queue}/$DeadLetterQueue`;
  const held = fault({ at: 'settle', entity, operation: 'complete', do: 'hold' });
  const plan = await office.plan({}, queue);
  await start(plan);
  await until(() => held.hits === 1 || undefined, 'the first chunk to be completed');
  const asked = await office.call('replay', 'POST', `plans/${plan.id}/pause`);
  expect(asked).toMatchObject({ status: 202, json: { requested: 'pause' } });
  held.remove();
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.counts.done).toBeGreaterThan(0);
  expect(paused.counts.done).toBeLessThan(250);
  expectSum(paused);
  expect(target()).toHaveLength(paused.counts.done);
  expect(dlq().filter(({ locked }) => locked)).toEqual([]);
  // Paused, it does not keep the source from others.
  expect((await office.get<{ heldBy: string | null }>(`sources/${queue}`)).heldBy).toBeNull();
  const again = await office.call('replay', 'POST', `plans/${plan.id}/pause`);
  expect(again).toMatchObject({ status: 200, json: { state: 'paused' } });
  await office.post(`plans/${plan.id}/resume`);
  const finished = await office.finished(plan.id);
  expect(finished.counts).toMatchObject({ planned: 250, done: 250, maybeDuplicate: 0 });
  expect(target()).toHaveLength(250);
});

test('a cancelled run leaves the rest where it is, and every letter has a fate', async () => {
  await office.deadLetters(250, queue);
  const entity = `${queue}/$DeadLetterQueue`;
  const held = fault({ at: 'settle', entity, operation: 'complete', do: 'hold' });
  const plan = await office.plan({}, queue);
  await start(plan);
  await until(() => held.hits === 1 || undefined, 'the first chunk to be completed');
  await office.post(`plans/${plan.id}/cancel`);
  held.remove();
  const cancelled = await office.finished(plan.id, ['cancelled']);
  expectSum(cancelled);
  expect(cancelled.counts).toMatchObject({ pending: 0, maybeDuplicate: 0 });
  expect(cancelled.counts.left).toBe(dlq().length);
  expect(cancelled.counts.done).toBe(target().length);
  expect(cancelled.counts.left).toBeGreaterThan(0);
  expect((await fates(cancelled)).filter(({ fate }) => fate === 'left')).toHaveLength(cancelled.counts.left);
  expect(dlq().filter(({ locked, state }) => locked || state !== 'deferred')).toEqual([]);
  const resumed = await office.call('replay', 'POST', `plans/${plan.id}/resume`);
  expect(resumed).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_STATE' } });
});

test('one run a source: the second caller is told who has it, and a plan runs once', async () => {
  await office.deadLetters(2, queue);
  const entity = `${queue}/$DeadLetterQueue`;
  const held = fault({ at: 'settle', entity, operation: 'complete', do: 'hold' });
  const [first, second] = [await office.plan({}, queue), await office.plan({}, queue)];
  await start(first);
  await until(() => held.hits === 1 || undefined, 'the chunk to be completed');
  const refused = await office.call('replay', 'POST', `plans/${second.id}/run`, { confirm: 2 });
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_SOURCE_BUSY', holder: first.id } });
  held.remove();
  await office.finished(first.id);
  const again = await office.call('replay', 'POST', `plans/${first.id}/run`, { confirm: 2 });
  expect(again).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_STATE', state: 'finished' } });
  // What the second plan was made for has left meanwhile.
  expect((await office.run(second)).counts).toMatchObject({ done: 0, skipped: 2 });
  expect(target()).toHaveLength(2);
});

test('two calls to run one plan at once start it once', async () => {
  await office.deadLetters(5, queue);
  const plan = await office.plan({}, queue);
  const path = `plans/${plan.id}/run`;
  const answers = await Promise.all(
    [1, 2, 3].map(() => office.call('replay', 'POST', path, { confirm: 5, ramp: false })),
  );
  expect(answers.filter(({ status }) => status < 300)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(2);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 5, maybeDuplicate: 0 });
  expect(target()).toHaveLength(5);
});

test('stop pauses every run', async () => {
  await office.deadLetters(2, queue);
  const entity = `${queue}/$DeadLetterQueue`;
  const held = fault({ at: 'settle', entity, operation: 'complete', do: 'hold' });
  const plan = await office.plan({}, queue);
  await start(plan);
  await until(() => held.hits === 1 || undefined, 'the chunk to be completed');
  const { plans } = await office.post<{ plans: PlanJson[] }>('stop');
  expect(plans.map(({ id }) => id)).toEqual([plan.id]);
  held.remove();
  // What was sent is completed before the pause takes effect.
  const paused = await office.finished(plan.id, ['paused', 'finished']);
  expect(paused.counts).toMatchObject({ done: 2, pending: 0 });
  expect(target()).toHaveLength(2);
});

test('cancelled while an answer is missing, the letters stay marked, and the next plan over them says so', async () => {
  await office.deadLetters(2, queue);
  const lost = fault({ at: 'send', entity: queue, do: 'lose-answer', times: 100 });
  const plan = await office.plan({}, queue);
  await start(plan);
  await until(() => lost.hits > 0 || undefined, 'the send');
  await office.post(`plans/${plan.id}/cancel`);
  const cancelled = await office.finished(plan.id, ['cancelled']);
  expect(cancelled.counts).toMatchObject({ planned: 2, left: 2, done: 0, maybeDuplicate: 2 });
  expect((await fates(plan)).map(({ fate, maybeDuplicate }) => [fate, maybeDuplicate])).toEqual([
    ['left', true],
    ['left', true],
  ]);
  lost.remove();
  const copies = target().length;
  office.broker.clock.advance(61_000);
  const next = await office.plan({}, queue);
  expect(next.findings.map(({ code, level, letters }) => [code, level, letters])).toEqual([['maybe-sent', 'warn', 2]]);
  const finished = await office.run(next);
  expect(finished.counts).toMatchObject({ done: 2, maybeDuplicate: 2 });
  expect(target()).toHaveLength(copies + 2);
});

test('cancelled after an unknown outcome and a refusal, the letters stay marked', async () => {
  await office.deadLetters(3, queue);
  const lost = fault({ at: 'send', entity: queue, do: 'lose-answer' });
  fault({ at: 'send', entity: queue, do: 'refuse', condition: 'com.microsoft:entity-disabled' });
  const plan = await office.plan({}, queue);
  await start(plan);
  await office.finished(plan.id, ['paused']);
  expect(lost.hits).toBe(1);
  expect(target()).toHaveLength(3);
  const cancelled = await office.post<PlanJson>(`plans/${plan.id}/cancel`);
  expect(cancelled.counts).toMatchObject({ planned: 3, left: 3, done: 0, maybeDuplicate: 3 });
  expect((await fates(plan)).map(({ fate, maybeDuplicate }) => [fate, maybeDuplicate])).toEqual(
    Array.from({ length: 3 }, () => ['left', true]),
  );
  const next = await office.plan({}, queue);
  expect(next.findings.map(({ code, letters }) => [code, letters])).toEqual([['maybe-sent', 3]]);
  // A plan that ends before it sent anything leaves the mark to the one that did.
  expect((await office.post<PlanJson>(`plans/${next.id}/cancel`)).counts).toMatchObject({ left: 3, maybeDuplicate: 3 });
  expect((await office.plan({}, queue)).findings.map(({ code, letters }) => [code, letters])).toEqual([
    ['maybe-sent', 3],
  ]);
});

test('a discard plan removes its letters for good, and only with its own right', async () => {
  const letters = await office.deadLetters(3, queue);
  const numbers = letters.slice(0, 2).map(({ sequenceNumber }) => sequenceNumber);
  const plan = await office.plan({ action: 'discard', selection: { sequenceNumber: numbers } }, queue);
  expect(plan).toMatchObject({ target: null, counts: { pending: 2 } });
  const asReplay = await office.call('replay', 'POST', `plans/${plan.id}/run`, { confirm: 2 });
  expect(asReplay).toMatchObject({ status: 409, json: { code: 'DLO_WRONG_ACTION' } });
  const withoutRight = await office.call('replay', 'POST', `plans/${plan.id}/discard`, { confirm: 2 });
  expect(withoutRight.status).toBe(401);
  await office.post(`plans/${plan.id}/discard`, { confirm: 2 }, 'discard', { prefer: 'wait=20' });
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 2 });
  expect(dlq()).toHaveLength(1);
  expect(target()).toEqual([]);
  expect((await office.letter(numbers[0] ?? '', queue)).fate).toMatchObject({ fate: 'discarded', planId: plan.id });
});

test('every operation and chunk is audited before and after', async () => {
  await office.deadLetters(2, queue);
  const plan = await office.run(await office.plan({}, queue));
  const { entries } = await office.get<{ entries: { operation: string; operator: string; outcome: string }[] }>(
    `audit?plan=${plan.id}`,
  );
  expect(entries.map(({ operation }) => operation).sort()).toEqual([
    'chunk.replay',
    'plan.create',
    'plan.finish',
    'plan.run',
  ]);
  expect(entries.every(({ operator, outcome }) => operator === 'test' && outcome !== 'open')).toBe(true);
});

test('a letter that grows beyond the limit by its replay is skipped, not tried', async () => {
  // Nothing on it can be dropped to make room: it is at the limit as it is.
  await office.send(queue, { messageId: 'big', body: Buffer.alloc(261_900, 1) }, { messageId: 'small', body: 'x' });
  const receiver = office.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
  for (let i = 0; i < 2; i++) {
    for (const message of await receiver.receiveMessages(1)) await receiver.deadLetterMessage(message);
  }
  await receiver.close();
  await office.held(2, queue);
  const plan = await office.plan({}, queue);
  const finished = await office.run(plan);
  expect(finished.counts).toMatchObject({ planned: 2, done: 1, skipped: 1 });
  expect((await fates(plan)).find(({ fate }) => fate === 'skipped')).toMatchObject({ reason: 'too-large' });
  expect(dlq()).toMatchObject([{ state: 'deferred', locked: false }]);
});

const FAILED = { at: 'send', do: 'refuse', condition: 'amqp:internal-error' } as const;

test('a letter whose property is too long for Service Bus is found before it is sent, and keeps no other back', async () => {
  await office.send(queue, ...['m-0', 'm-1', 'm-2'].map((messageId) => ({ messageId, body: 'x' })));
  const receiver = office.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
  for (const message of await receiver.receiveMessages(3)) {
    await receiver.deadLetterMessage(message, {
      deadLetterReason: 'TooMuch',
      deadLetterErrorDescription: 'a trace',
      ...(message.messageId === 'm-1' && { trace: 'x'.repeat(32_768) }),
    });
  }
  await receiver.close();
  await office.held(3, queue);
  const plan = await office.plan({}, queue);
  expect(plan.findings.map(({ code, letters }) => [code, letters])).toEqual([['properties-too-large', 1]]);
  expect((await office.run(plan)).counts).toMatchObject({ planned: 3, done: 2, skipped: 1, maybeDuplicate: 0 });
  expect([target().length, dlq().length]).toEqual([2, 1]);
});

test('of a batch that the broker fails on each time the one letter to blame is found alone, and the others go once', async () => {
  await office.deadLetters(4, queue);
  // All four, two of them, the first alone; and that one again, when the others have gone.
  const together = fault({ ...FAILED, entity: queue, times: 3 });
  const again = fault({ ...FAILED, entity: queue, skip: 2 });
  const plan = await office.plan({}, queue);
  expect((await office.run(plan)).counts).toMatchObject({ planned: 4, done: 3, failed: 1, maybeDuplicate: 0 });
  expect([together.hits, again.hits]).toEqual([3, 1]);
  expect((await fates(plan)).find(({ fate }) => fate === 'failed')).toMatchObject({
    sequenceNumber: '1',
    reason: expect.stringContaining('internal-error'),
    maybeDuplicate: false,
  });
  expect([target().length, dlq().length]).toEqual([3, 1]);
});

test('a fault of the broker that passes costs nothing, and a target that takes no letter pauses the run', async () => {
  await office.deadLetters(6, queue);
  const lasting = fault({ ...FAILED, entity: queue, times: 100 });
  const plan = await office.plan({}, queue);
  await start(plan);
  const paused = await office.finished(plan.id, ['paused']);
  expect(paused.counts).toMatchObject({ done: 0, failed: 0, pending: 6, maybeDuplicate: 0 });
  expect(paused.stateReason).toContain('3 letters in a row');
  lasting.remove();
  fault({ ...FAILED, entity: queue });
  await office.post(`plans/${plan.id}/resume`);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 6, failed: 0, maybeDuplicate: 0 });
  expect([target().length, dlq().length]).toEqual([6, 0]);
});

test('where the target detects duplicates, letters inside its window are left or get a new id', async () => {
  await office.deadLetters(2, 'dedup');
  const skipping = await office.plan({}, 'dedup');
  expect(skipping.counts).toMatchObject({ planned: 2, skipped: 2, pending: 0 });
  expect(skipping.findings.map(({ code, letters }) => [code, letters])).toContainEqual(['duplicate-window', 2]);
  const renaming = await office.plan({ choices: { onDuplicate: 'new-id' } }, 'dedup');
  const finished = await office.run(renaming);
  expect(finished.counts).toMatchObject({ done: 2 });
  const receiver = office.client.createReceiver('dedup', { receiveMode: 'receiveAndDelete' });
  const messages = await receiver.receiveMessages(2);
  await receiver.close();
  expect(messages.map((message) => message.applicationProperties?.['x-original-message-id'])).toEqual(['m-0', 'm-1']);
  expect(messages.map((message) => message.messageId)).toEqual([`${plan0(finished)}:1`, `${plan0(finished)}:2`]);
});
const plan0 = ({ id }: PlanJson) => id;

test.each(['', 'never', 'PT0.5S', 'P50D', 60, null])('a time to live of %j is refused', async (timeToLive) => {
  const answer = await office.call('replay', 'POST', `sources/${NAMES[0]}/plans`, { choices: { timeToLive } });
  expect(answer).toMatchObject({ status: 400, json: { code: 'DLO_BAD_REQUEST' } });
});

test.each([
  ['fanout', ['no-direct-target']],
  ['unstated', ['duplicate-detection-unknown', 'sessions-unknown', 'expiry-unknown']],
  ['missing', ['target-unreachable']],
])('a plan over %s is blocked and says what to do', async (source, codes) => {
  const plan = await office.plan({}, source);
  const blocks = plan.findings.filter(({ level, code }) => level === 'block' && code !== 'nothing-to-send');
  expect(blocks.map(({ code }) => code)).toEqual(codes);
  const refused = await office.call('replay', 'POST', `plans/${plan.id}/run`, { confirm: plan.counts.pending });
  expect(refused).toMatchObject({ status: 409, json: { code: 'DLO_PLAN_BLOCKED' } });
});

test('a letter of a subscription goes to its replay queue and to no other subscription', async () => {
  await office.send('events', { messageId: 'e-1', body: 'event' });
  const receiver = office.client.createReceiver('events', 'shipping', { maxAutoLockRenewalDurationInMs: 0 });
  for (const message of await receiver.receiveMessages(1)) {
    await receiver.deadLetterMessage(message, { deadLetterReason: 'NoStock', deadLetterErrorDescription: 'sold out' });
  }
  await receiver.close();
  const letters = await until(async (): Promise<LetterJson[] | undefined> => {
    await office.collect('direct');
    const found = await office.letters('direct');
    return found.length === 1 ? found : undefined;
  }, 'the letter');
  const count = () => office.broker.messages('events/Subscriptions/billing').length;
  const before = count();
  const finished = await office.run(await office.plan({}, 'direct'));
  expect(finished).toMatchObject({ target: 'shipping-replay', counts: { done: letters.length } });
  expect(office.broker.messages('shipping-replay')).toHaveLength(1);
  expect(office.broker.messages('events/Subscriptions/shipping')).toEqual([]);
  expect(count()).toBe(before);
});
