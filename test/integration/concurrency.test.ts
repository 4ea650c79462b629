/** Several hands on one dead-letter queue: plans, the retention cleanup, people with other tools, and whole offices. */
import type { ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';

interface PlanLetter {
  sequenceNumber: string;
  fate: string;
  reason: string | null;
  maybeDuplicate: boolean;
}

/** Of these every letter is past its time a second after it was seen. */
const SHORT = { retainFor: 'PT1S' };
const SOURCES = [
  ...['both', 'hand', 'watched', 'collected', 'orphan', 'apart', 'slow', 'quick'].map((name) => ({ name })),
  ...['cleaned', 'cleaning', 'fought'].map((name) => ({ name, ...SHORT })),
].map((source) => ({ ...source, trigger: false }));

let office: TestOffice;
/** Another office with the same store. */
let second: TestOffice;
/** Another office with a store of its own. */
let stranger: TestOffice;
const faults: { remove(): void }[] = [];

beforeAll(async () => {
  const sources = SOURCES.map((source) => (source.name === 'watched' ? { ...source, mode: 'observe' } : source));
  office = await openTestOffice({ sources });
  const { broker, storage } = office;
  second = await openTestOffice({ sources, broker, storage, catalog: { office: 'second' } });
  stranger = await openTestOffice({ sources, broker, catalog: { office: 'stranger' } });
});
afterAll(async () => {
  await stranger?.close();
  await second?.close();
  await office?.close();
});
afterEach((context) => {
  for (const fault of faults.splice(0)) fault.remove();
  if (context.task.result?.state !== 'fail') return;
  for (const one of [office, second, stranger]) console.log(one.process.log().slice(-2000));
});

const dlq = (queue: string) => office.broker.messages(`${queue}/$DeadLetterQueue`);
const target = (queue: string) => office.broker.messages(queue);
const numbers = (letters: readonly { sequenceNumber: string }[]) => letters.map(({ sequenceNumber }) => sequenceNumber);

/** Holds every completion in the dead-letter queue of `queue` until it is removed. */
function holdCompletions(queue: string) {
  const entity = `${queue}/$DeadLetterQueue`;
  const held = office.broker.faults.add({ at: 'settle', entity, operation: 'complete', do: 'hold', times: 1000 });
  faults.push(held);
  return held;
}

async function fates({ id }: PlanJson, of = office): Promise<PlanLetter[]> {
  return (await of.get<{ letters: PlanLetter[] }>(`plans/${id}/letters?top=500`)).letters;
}

async function withFate(plan: PlanJson, fate: string, of = office): Promise<string[]> {
  return numbers((await fates(plan, of)).filter((letter) => letter.fate === fate));
}

const start = (plan: PlanJson, of = office) =>
  of.call('replay', 'POST', `plans/${plan.id}/run`, { confirm: plan.counts.pending, ramp: false });

async function byHand<Result>(queue: string, act: (receiver: ServiceBusReceiver) => Promise<Result>): Promise<Result> {
  const receiver = office.client.createReceiver(queue, {
    subQueueType: 'deadLetter',
    maxAutoLockRenewalDurationInMs: 0,
  });
  try {
    return await act(receiver);
  } finally {
    await receiver.close();
  }
}

/** The plan as it has ended, which the watchdog of that office helps on its way. */
async function ended(plan: PlanJson, of = office): Promise<PlanJson> {
  return until(async () => {
    await of.process.run('watch');
    const now = await of.getPlan(plan.id);
    return now.state === 'finished' ? now : undefined;
  }, `plan ${plan.id} to be finished`);
}

test('two plans over one source: one runs, the other is told who does, and no letter goes twice', async () => {
  const letters = numbers(await office.deadLetters(120, 'both'));
  const first = await office.plan({ selection: { sequenceNumber: letters.slice(0, 80) } }, 'both');
  const other = await office.plan({ selection: { sequenceNumber: letters.slice(40) } }, 'both');
  const held = holdCompletions('both');
  const answers = await Promise.all([start(first), start(other)]);
  const [winner, loser] = answers[0].status < 300 ? [first, other] : [other, first];
  const told = answers.find(({ status }) => status >= 300);
  expect(told).toMatchObject({ status: 409, json: { code: 'DLO_SOURCE_BUSY', holder: winner.id } });
  await until(() => held.hits > 0 || undefined, 'the first completion');
  expect(await start(loser)).toMatchObject({ status: 409, json: { code: 'DLO_SOURCE_BUSY', holder: winner.id } });
  held.remove();
  await ended(winner);
  expect((await start(loser)).status).toBeLessThan(300);
  await ended(loser);
  const done = [...(await withFate(winner, 'done')), ...(await withFate(loser, 'done'))];
  expect(done.toSorted()).toEqual(letters.toSorted());
  expect((await fates(loser)).filter(({ fate }) => fate === 'skipped').map(({ reason }) => reason)).toEqual(
    Array.from({ length: 40 }, () => 'gone'),
  );
  expect(target('both')).toHaveLength(120);
  expect(dlq('both')).toEqual([]);
});

test('runs over two sources go on side by side in one process: one that is stuck keeps no other from its end', async () => {
  // Of an office whose queue nobody else reads.
  await stranger.deadLetters(3, 'slow');
  await stranger.deadLetters(3, 'quick');
  const [slow, quick] = [await stranger.plan({}, 'slow'), await stranger.plan({}, 'quick')];
  const held = holdCompletions('slow');
  expect((await start(slow, stranger)).status).toBe(202);
  await until(() => held.hits > 0 || undefined, 'the first completion');
  expect((await start(quick, stranger)).status).toBe(202);
  expect((await stranger.finished(quick.id)).counts).toMatchObject({ done: 3 });
  expect(await stranger.getPlan(slow.id)).toMatchObject({ state: 'running', counts: { done: 0 } });
  held.remove();
  expect((await stranger.finished(slow.id)).counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
});

test('the cleanup waits for a run; what it removes while the run is paused is gone for the run', async () => {
  const letters = numbers(await office.deadLetters(120, 'cleaned'));
  const plan = await office.plan({}, 'cleaned');
  const held = holdCompletions('cleaned');
  await start(plan);
  await until(() => held.hits > 0 || undefined, 'the first completion');
  await untilDue('cleaned', 120);
  await office.process.run('expire');
  await expect.poll(() => office.process.log()).toContain(`the source is held by the run of plan ${plan.id}`);
  await office.post(`plans/${plan.id}/pause`);
  held.remove();
  const paused = await office.finished(plan.id, ['paused', 'finished']);
  expect(paused.state).toBe('paused');
  await until(async () => {
    await office.process.run('expire');
    return dlq('cleaned').length === 0 || undefined;
  }, 'the cleanup to remove the rest');
  await office.post(`plans/${plan.id}/resume`);
  const finished = await ended(plan);
  const done = await withFate(plan, 'done');
  expect(finished.counts).toMatchObject({ done: done.length, skipped: 120 - done.length, maybeDuplicate: 0 });
  expect(target('cleaned')).toHaveLength(done.length);
  for (const number of [letters[0] ?? '', letters.at(-1) ?? '']) {
    const fate = done.includes(number) ? 'replayed' : 'expired';
    expect(await office.letter(number, 'cleaned')).toMatchObject({ fate: { fate } });
  }
});

test('a run waits for the cleanup, and is told so', async () => {
  await office.deadLetters(2, 'cleaning');
  const plan = await office.plan({}, 'cleaning');
  const held = holdCompletions('cleaning');
  const cleaning = until(async () => {
    await office.process.run('expire');
    return held.hits > 0 || undefined;
  }, 'a cleanup that had something to remove');
  await until(() => held.hits > 0 || undefined, 'the removal');
  expect(await start(plan)).toMatchObject({ status: 409, json: { code: 'DLO_SOURCE_BUSY', holder: 'expire' } });
  held.remove();
  await cleaning;
  expect(dlq('cleaning')).toEqual([]);
  expect((await start(plan)).status).toBeLessThan(300);
  expect((await ended(plan)).counts).toMatchObject({ done: 0, skipped: 2 });
  expect(target('cleaning')).toEqual([]);
});

test('somebody completes letters by hand meanwhile: what is theirs is gone, what is ours is sent, nothing is both', async () => {
  const letters = numbers(await office.deadLetters(200, 'hand'));
  const plan = await office.plan({}, 'hand');
  await start(plan);
  const taken = await byHand('hand', async (receiver) => {
    const mine: string[] = [];
    // From the end, so that the run has not been there yet.
    for (const number of letters.toReversed().slice(0, 30)) {
      try {
        const [message] = await receiver.receiveDeferredMessages([Long.fromString(number)]);
        if (message === undefined) continue;
        await receiver.completeMessage(message);
        mine.push(number);
      } catch {
        // The office has it.
      }
    }
    return mine;
  });
  const finished = await ended(plan);
  expect(taken.length).toBeGreaterThan(0);
  expect((await withFate(plan, 'skipped')).toSorted()).toEqual(taken.toSorted());
  expect(finished.counts).toMatchObject({ planned: 200, done: 200 - taken.length, maybeDuplicate: 0 });
  expect(target('hand')).toHaveLength(200 - taken.length);
  expect(dlq('hand')).toEqual([]);
});

test('an observe source of which another tool takes letters meanwhile', async () => {
  await office.send(
    'watched',
    Array.from({ length: 60 }, (_, i) => ({ messageId: `w-${i}`, body: i })),
  );
  await office.deadLetterAll('watched');
  await office.collect('watched');
  const plan = await office.plan({}, 'watched');
  const taken = await byHand('watched', async (receiver) => {
    const mine: string[] = [];
    for (const message of await receiver.receiveMessages(7, { maxWaitTimeInMs: 5000 })) {
      mine.push(String(message.sequenceNumber));
      if (mine.length === 1) await start(plan);
      await receiver.completeMessage(message);
    }
    return mine;
  });
  const finished = await ended(plan);
  expect((await withFate(plan, 'skipped')).toSorted()).toEqual(taken.toSorted());
  expect(finished.counts).toMatchObject({ done: 60 - taken.length, maybeDuplicate: 0 });
  expect(target('watched')).toHaveLength(60 - taken.length);
});

/** Waits until the cleanup has at least `count` letters of the source to remove: before that it has nothing to say. */
async function untilDue(source: string, count: number): Promise<void> {
  const due = async () => (await office.get<{ count: number }>(`sources/${source}/expiry`)).count >= count || undefined;
  await until(due, `${count} letters of ${source} to be past their retention`);
}

test('two offices with one store collect one queue: each letter is recorded and held once', async () => {
  await office.send(
    'collected',
    Array.from({ length: 150 }, (_, i) => ({ messageId: `c-${i}`, body: i })),
  );
  await office.deadLetterAll('collected');
  const collected = await until(async () => {
    const passes = await Promise.all([office, second, office, second].map((one) => one.collect('collected')));
    const all = dlq('collected').every(({ state, locked }) => state === 'deferred' && !locked);
    return all ? passes : undefined;
  }, 'all letters to be held');
  expect(Math.max(...collected.map(({ open }) => open))).toBe(150);
  expect(numbers(await office.letters('collected'))).toEqual(numbers(await second.letters('collected')));
  expect(new Set(numbers(await office.letters('collected'))).size).toBe(150);
});

test('two offices with one store: one runs, the other’s runs and cleanup are told who has the source', async () => {
  await office.deadLetters(60, 'fought');
  const mine = await office.plan({}, 'fought');
  const theirs = await second.plan({}, 'fought');
  const held = holdCompletions('fought');
  await start(mine);
  await until(() => held.hits > 0 || undefined, 'the completion');
  expect(await start(theirs, second)).toMatchObject({
    status: 409,
    json: { code: 'DLO_SOURCE_BUSY', holder: mine.id },
  });
  await untilDue('fought', 60);
  await second.process.run('expire');
  // The log comes through a pipe, and so a little after the answer.
  const told = `the source is held by the run of plan ${mine.id}`;
  await until(() => second.process.log().includes(told) || undefined, 'the cleanup to say who has the source');
  held.remove();
  expect((await ended(mine)).counts).toMatchObject({ done: 60, maybeDuplicate: 0 });
  expect((await start(theirs, second)).status).toBeLessThan(300);
  expect((await ended(theirs, second)).counts).toMatchObject({ done: 0, skipped: 60 });
  expect(target('fought')).toHaveLength(60);
});

test('of two offices with one store, one goes on with the run of the other that died', async () => {
  await office.deadLetters(150, 'orphan');
  const plan = await office.plan({}, 'orphan');
  const held = holdCompletions('orphan');
  // In the call itself, so that it is this process that runs it.
  const running = office.post(`plans/${plan.id}/run`, { confirm: 150, ramp: false }, 'replay', { prefer: 'wait=60' });
  const cut = running.then(
    () => 'answered',
    () => 'cut off',
  );
  await until(() => held.hits > 0 || undefined, 'the first completion');
  await office.kill();
  expect(await cut).toBe('cut off');
  office.broker.clock.advance(61_000); // first: without its locks nothing of what it asked for is done
  held.remove();
  expect(dlq('orphan')).toHaveLength(150);
  const finished = await ended(plan, second);
  await office.restart();
  expect(finished.counts).toMatchObject({ planned: 150, done: 150 });
  // At full speed the next chunk may have been on its way while the first was completed.
  expect(finished.counts.maybeDuplicate).toBeLessThanOrEqual(97);
  expect(target('orphan').length).toBeLessThanOrEqual(150 + finished.counts.maybeDuplicate);
  expect(dlq('orphan')).toEqual([]);
});

test('two offices with two stores on one queue: each letter goes once, and who comes too late says gone', async () => {
  const letters = numbers(await office.deadLetters(150, 'apart'));
  // They are held: the other office finds them by looking.
  await stranger.process.run('reconcile');
  expect(numbers(await stranger.letters('apart'))).toEqual(letters);
  const [mine, theirs] = [await office.plan({}, 'apart'), await stranger.plan({}, 'apart')];
  const answers = await Promise.all([start(mine), start(theirs, stranger)]);
  expect(answers.map(({ status }) => status < 300)).toEqual([true, true]);
  const [one, other] = await Promise.all([ended(mine), ended(theirs, stranger)]);
  const done = [...(await withFate(mine, 'done')), ...(await withFate(theirs, 'done', stranger))];
  expect(done.toSorted()).toEqual(letters.toSorted());
  expect(one.counts).toMatchObject({ planned: 150, skipped: 150 - one.counts.done, maybeDuplicate: 0 });
  expect(other.counts).toMatchObject({ planned: 150, skipped: 150 - other.counts.done, maybeDuplicate: 0 });
  expect(target('apart')).toHaveLength(150);
  expect(dlq('apart')).toEqual([]);
});
