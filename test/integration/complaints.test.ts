/** Complaints about other tools that no other test holds against this one. `docs/promises.md` has them all. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type RunningBroker, startBroker } from '../../local/broker/index.ts';
import { brokerConfig, type LetterJson, openTestOffice, PLAIN, type TestOffice, until } from '../harness/office.ts';

const HOUR = 3_600_000;
/** A single message may be that large, as on Premium; a batch may not. */
const LARGEST = 4 * 1024 * 1024;
const LARGEST_BATCH = 1024 * 1024;

let broker: RunningBroker;
let office: TestOffice;
beforeAll(async () => {
  const queues = Object.fromEntries(['lived', 'busy', 'parking', 'heavy'].map((name) => [name, {}]));
  broker = await startBroker({
    config: brokerConfig({
      ...queues,
      lived: { DeadLetteringOnMessageExpiration: true },
      sessions: { RequiresSession: true },
      forwarded: { ForwardDeadLetteredMessagesTo: 'parking' },
    }),
    maxMessageBytes: LARGEST,
  });
  office = await openTestOffice({
    broker,
    sources: [
      ...['lived', 'busy', 'forwarded'].map((name) => ({ name, trigger: false })),
      { name: 'heavy', trigger: false, entity: { ...PLAIN, maxMessageBytes: LARGEST } },
      { name: 'sessions', mode: 'observe', entity: { ...PLAIN, requiresSession: true } },
    ],
  });
});
afterAll(async () => {
  await office?.close();
  await broker?.close();
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office.process.log().slice(-3000));
});

const dlq = (queue: string) => broker.messages(`${queue}/$DeadLetterQueue`);

/** Letters in two sessions, recorded. */
async function deadSessions(count: number): Promise<LetterJson[]> {
  const before = dlq('sessions').length;
  for (let i = 0; i < count; i++) {
    await office.send('sessions', { messageId: `s-${before + i}`, sessionId: `chat-${i % 2}`, body: i });
  }
  for (const session of ['chat-0', 'chat-1']) {
    const receiver = await office.client.acceptSession('sessions', session, { maxAutoLockRenewalDurationInMs: 0 });
    for (let left = count / 2; left > 0; ) {
      for (const message of await receiver.receiveMessages(left, { maxWaitTimeInMs: 5000 })) {
        await receiver.deadLetterMessage(message, { deadLetterReason: 'Unreadable', deadLetterErrorDescription: '?' });
        left--;
      }
    }
    await receiver.close();
  }
  await office.collect('sessions');
  return office.letters('sessions');
}

test('what died of its age has its whole time to live again', async () => {
  await office.send('lived', { messageId: 'old', body: 'x', timeToLive: HOUR });
  broker.clock.advance(HOUR + 1000);
  await until(() => dlq('lived').length === 1 || undefined, 'the message to expire');
  const [letter] = await office.held(1, 'lived');
  expect(letter).toMatchObject({ reason: 'TTLExpiredException', category: 'expired' });
  const plan = await office.plan({ choices: { includeFixFirst: true } }, 'lived');
  expect((await office.run(plan)).counts).toMatchObject({ done: 1 });
  const [message] = broker.messages('lived');
  expect((message?.expiresAt ?? 0) - broker.clock.now()).toBeGreaterThan(HOUR - 60_000);
});

test('a discard removes letters and nothing of the queue itself, whatever the numbers', async () => {
  await office.deadLetters(2, 'busy');
  await office.send('busy', ...Array.from({ length: 3 }, (_, i) => ({ messageId: `alive-${i}`, body: i })));
  const alive = broker.messages('busy');
  const plan = await office.plan({ action: 'discard' }, 'busy');
  const wrong = await office.call('discard', 'POST', `plans/${plan.id}/discard`, { confirm: 5 });
  expect(wrong).toMatchObject({ status: 409, json: { code: 'DLO_CONFIRM_MISMATCH' } });
  await office.post(`plans/${plan.id}/discard`, { confirm: 2 }, 'discard', { prefer: 'wait=20' });
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 2 });
  expect(dlq('busy')).toEqual([]);
  expect(broker.messages('busy')).toEqual(alive);
});

test('of many sessions the letters of one go back alone, chosen by their numbers', async () => {
  const letters = await deadSessions(6);
  const sessionOf = async ({ sequenceNumber }: LetterJson) =>
    (await office.letter(sequenceNumber, 'sessions')).sessionId;
  const chosen: string[] = [];
  for (const letter of letters) if ((await sessionOf(letter)) === 'chat-1') chosen.push(letter.sequenceNumber);
  expect(chosen).toHaveLength(3);
  const plan = await office.plan({ selection: { sequenceNumber: chosen } }, 'sessions');
  expect((await office.run(plan)).counts).toMatchObject({ planned: 3, done: 3 });
  const left = await Promise.all((await office.letters('sessions')).map(sessionOf));
  expect(left).toEqual(['chat-0', 'chat-0', 'chat-0']);
});

test('letters of sessions are discarded together: no session of a dead-letter queue has to be opened', async () => {
  const letters = await deadSessions(8);
  const plan = await office.plan({ action: 'discard' }, 'sessions');
  // While a session is somebody else's.
  const other = await office.client.acceptSession('sessions', 'chat-1', { maxAutoLockRenewalDurationInMs: 0 });
  const confirm = letters.length;
  await office.post(`plans/${plan.id}/discard`, { confirm }, 'discard', { prefer: 'wait=20' });
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: confirm });
  await other.close();
  expect(dlq('sessions')).toEqual([]);
});

test('a dead-letter queue that is forwarded cannot be read, and the office says so', async () => {
  const answer = await office.call('read', 'POST', 'sources/forwarded/collect', {});
  expect(answer).toMatchObject({ status: 503, json: { code: 'DLO_BROKER_UNAVAILABLE' } });
  expect((answer.json as { detail: string }).detail).toContain('forwards its messages');
  const { health, problems } = await office.get<{ health: string; problems: string[] }>('sources/forwarded');
  expect(health).toBe('Degraded');
  expect(problems.join()).toContain('forwards its messages');
});

test('no batch is larger than one megabyte, also where a single message may be', async () => {
  for (let i = 0; i < 7; i++) await office.send('heavy', { messageId: `h-${i}`, body: Buffer.alloc(300_000, i) });
  await office.send('heavy', { messageId: 'h-7', body: Buffer.alloc(2_000_000, 7) });
  await office.deadLetterAll('heavy');
  const letters = await office.held(8, 'heavy');
  const bytes = new Map(letters.map(({ sequenceNumber, bytes }) => [sequenceNumber, Number(bytes)]));
  const plan = await office.plan({}, 'heavy');
  expect((await office.run(plan)).counts).toMatchObject({ done: 8, maybeDuplicate: 0 });
  const { entries } = await office.get<{ entries: { operation: string; letters: string[] }[] }>(
    `audit?plan=${plan.id}`,
  );
  const batches = entries.filter(({ operation }) => operation === 'chunk.replay').map(({ letters }) => letters);
  expect(batches.flat()).toHaveLength(8);
  for (const batch of batches.filter(({ length }) => length > 1)) {
    expect(batch.reduce((sum, number) => sum + (bytes.get(number) ?? 0), 0)).toBeLessThanOrEqual(LARGEST_BATCH);
  }
  expect(batches.some(({ length }) => length === 3)).toBe(true);
});
