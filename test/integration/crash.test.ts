/** SIGKILL of the app at the points that matter. Broker and storage live on; locks are not given back. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { REACH } from '../../shared/plan/preflight.ts';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';

const NAMES = Array.from({ length: 6 }, (_, i) => `c${i}`);
let office: TestOffice;
let queue: string;
let used = 0;
const faults: { remove(): void }[] = [];

beforeAll(async () => {
  office = await openTestOffice({ sources: [...NAMES.map((name) => ({ name })), { name: 'deep', mode: 'observe' }] });
});
afterAll(() => office?.close());
beforeEach(() => {
  queue = NAMES[used++] as string;
});
afterEach((context) => {
  for (const fault of faults.splice(0)) fault.remove();
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

const dlq = () => office.broker.messages(`${queue}/$DeadLetterQueue`);
const target = () => office.broker.messages(queue);

/** Strikes at a settlement in the DLQ: the app's act is done or not, but it never hears of it. */
function stop(operation: 'complete' | 'defer', how: 'hold' | 'lose-answer') {
  const entity = `${queue}/$DeadLetterQueue`;
  const fault = office.broker.faults.add({ at: 'settle', entity, operation, via: 'management', do: how, times: 50 });
  faults.push(fault);
  return fault;
}

async function startRun(count: number, sendFault?: { skip: number }): Promise<PlanJson> {
  await office.deadLetters(count, queue);
  if (sendFault) faults.push(office.broker.faults.add({ at: 'send', entity: queue, do: 'lose-answer', ...sendFault }));
  const plan = await office.plan({}, queue);
  await office.post(`plans/${plan.id}/run`, { confirm: count, ramp: false });
  return plan;
}

/** Kills the app. What it asked for and the broker holds back is never done: its locks end before it is let go. */
async function kill(): Promise<void> {
  await office.kill();
  office.broker.clock.advance(61_000);
  for (const fault of faults.splice(0)) fault.remove();
}

/** Kills the app, starts it again, and lets the watchdog take up its run. */
async function crashAndFinish(plan: PlanJson): Promise<PlanJson> {
  await kill();
  await office.restart();
  return finish(plan);
}

async function finish(plan: PlanJson): Promise<PlanJson> {
  return until(async () => {
    await office.process.run('watch');
    const now = await office.getPlan(plan.id);
    return now.state === 'finished' ? now : undefined;
  }, 'the run to be finished after the crash');
}

function expectSum({ counts }: PlanJson): void {
  expect(counts.done + counts.skipped + counts.failed + counts.left).toBe(counts.planned);
  expect(counts.pending).toBe(0);
}

test('between record and defer: the letter is held after the restart, recorded once', async () => {
  const held = stop('defer', 'hold');
  await office.send(queue, { messageId: 'one', body: 'x' });
  await office.deadLetterAll(queue);
  await until(async () => (held.hits > 0 && (await office.letters(queue)).length === 1) || undefined, 'the record');
  const [before] = await office.letters(queue);
  await kill();
  expect(dlq()).toMatchObject([{ state: 'active', locked: false }]);
  await office.restart();
  const [after] = await office.held(1, queue);
  expect(after?.firstSeen).toBe(before?.firstSeen);
  expect(dlq()).toMatchObject([{ state: 'deferred', locked: false }]);
});

test('between send and journal: the letters are sent again and marked, and no more than that', async () => {
  const plan = await startRun(5, { skip: 0 });
  await until(() => target().length === 5 || undefined, 'the send');
  const finished = await crashAndFinish(plan);
  expectSum(finished);
  expect(finished.counts).toMatchObject({ planned: 5, done: 5, maybeDuplicate: 5 });
  expect(target()).toHaveLength(finished.counts.done + finished.counts.maybeDuplicate);
  expect(dlq()).toEqual([]);
});

test('between journal and complete: nothing is sent twice and nothing is marked', async () => {
  const held = stop('complete', 'hold');
  const plan = await startRun(5);
  await until(() => held.hits > 0 || undefined, 'the completion to be asked for');
  expect(target()).toHaveLength(5);
  await kill();
  // All there, and nobody's: what follows is the restarted office's work.
  expect(dlq().map(({ locked }) => locked)).toEqual([false, false, false, false, false]);
  await office.restart();
  const finished = await finish(plan);
  expectSum(finished);
  expect(finished.counts).toMatchObject({ planned: 5, done: 5, maybeDuplicate: 0 });
  expect(target()).toHaveLength(5);
  expect(dlq()).toEqual([]);
});

test('between complete and the mark: what is gone from the DLQ counts as done, and is not sent twice', async () => {
  const lost = stop('complete', 'lose-answer');
  const plan = await startRun(5);
  await until(() => lost.hits > 0 || undefined, 'the completion');
  const finished = await crashAndFinish(plan);
  expectSum(finished);
  expect(finished.counts).toMatchObject({ planned: 5, done: 5, maybeDuplicate: 0 });
  expect(target()).toHaveLength(5);
  expect(dlq()).toEqual([]);
  const [first] = (await office.get<{ letters: { sequenceNumber: string }[] }>(`plans/${plan.id}/letters`)).letters;
  expect((await office.letter(first?.sequenceNumber ?? '', queue)).fate).toMatchObject({ fate: 'replayed' });
});

test('in the middle of many chunks: at most one chunk is marked, every letter goes, none is lost', async () => {
  // The second chunk's answer never comes.
  const plan = await startRun(250, { skip: 1 });
  await until(() => target().length > 100 || undefined, 'the second chunk');
  const finished = await crashAndFinish(plan);
  expectSum(finished);
  expect(finished.counts.done).toBe(250);
  expect(finished.counts.maybeDuplicate).toBeGreaterThan(0);
  expect(finished.counts.maybeDuplicate).toBeLessThanOrEqual(100);
  expect(target().length).toBeLessThanOrEqual(250 + finished.counts.maybeDuplicate);
  expect(target().length).toBeGreaterThanOrEqual(250);
  expect(dlq()).toEqual([]);
});

test('a plan outlives the process that made it', async () => {
  await office.deadLetters(3, queue);
  const plan = await office.plan({}, queue);
  await office.kill();
  await office.restart();
  expect(await office.getPlan(plan.id)).toMatchObject({ state: 'ready', counts: { pending: 3 } });
  expect((await office.run(plan)).counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
});

test('letters that are not held, in a queue deeper than a run reaches: what the dead process still has is waited for', async () => {
  queue = 'deep';
  const all = Array.from({ length: REACH + 5 }, (_, i) => ({ messageId: `d-${i}`, body: i }));
  for (let i = 0; i < all.length; i += 500) await office.send(queue, all.slice(i, i + 500));
  await office.deadLetterAll(queue);
  await office.collect(queue);
  const held = stop('complete', 'hold');
  const plan = await office.plan({ selection: { messageId: ['d-0', 'd-1', 'd-2', 'd-3', 'd-4'] } }, queue);
  await office.post(`plans/${plan.id}/run`, { confirm: 5, ramp: false });
  await until(() => held.hits > 0 || undefined, 'the completion to be asked for');
  await office.kill();
  await office.restart();
  // Its locks have not ended: the letters are neither to be had nor gone.
  const waiting = await until(async () => {
    await office.process.run('watch');
    const now = await office.getPlan(plan.id);
    return now.stateReason ?? (now.state === 'running' ? undefined : now.state);
  }, 'the run to say what it waits for');
  expect(waiting).toContain('5 letters are still there');
  expect((await office.getPlan(plan.id)).counts).toMatchObject({ done: 0, pending: 5 });
  office.broker.clock.advance(61_000);
  for (const fault of faults.splice(0)) fault.remove();
  const finished = await finish(plan);
  expect(finished.counts).toMatchObject({ planned: 5, done: 5, maybeDuplicate: 0 });
  expect(dlq()).toHaveLength(REACH);
  expect(target()).toHaveLength(5);
}, 60_000);
