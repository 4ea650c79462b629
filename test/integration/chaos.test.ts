/** `npm start -- --chaos SEED`: the whole office on a broker in which things go wrong at random. */
import { type ProcessErrorArgs, ServiceBusClient, type ServiceBusReceivedMessage } from '@azure/service-bus';
import Long from 'long';
import { afterEach, expect, test } from 'vitest';
import { type PlanJson, until } from '../harness/office.ts';
import { type StartRun, startRun } from '../harness/startRun.ts';

const SEED = '20261130';
const QUEUE = 'billing.order-placed';
const SOURCE = 'sources/billing-order-placed';
const LETTERS = 24;
/** What a fault leaves locked is free only after a minute; the run does not wait for that. */
const ENOUGH = 12;
/** Nothing here takes as long, but every fault costs some client its timeout. */
const PATIENCE = 120_000;
/** Lost answers are given up sooner than in earnest. */
const SETTINGS = { DLO_SEND_TIMEOUT_SECONDS: '2', DLO_RETRY_SECONDS: '1', DLO_LEASE_SECONDS: '5' };

let run: StartRun | undefined;
let client: ServiceBusClient | undefined;
afterEach(async () => {
  await client?.close().catch(() => {}); // of a broker that may be gone
  run?.close();
});

test('under chaos letters are held, a run accounts for every letter that was planned, and nothing is lost', {
  timeout: 3 * PATIENCE,
}, async () => {
  run = startRun(['--chaos', SEED], SETTINGS);
  await run.line('Four calls to try');
  const out = run.out();
  expect(out).toContain(`under chaos, seed ${SEED}`);
  expect(out).not.toContain('1. Three orders');
  const call = callerOf(out);

  client = new ServiceBusClient(brokerOf(out), { retryOptions: { maxRetries: 0, timeoutInMs: 3_000 } });
  await sendAll(client);
  const stopConsuming = consume(client);
  await until(
    async () => {
      await call('POST', `${SOURCE}/collect`, 'read');
      const { json } = await call('GET', `${SOURCE}/letters?top=500`, 'read');
      const found = (json as { letters: unknown[] } | undefined)?.letters.length ?? 0;
      return found >= ENOUGH || undefined;
    },
    'letters to be held',
    PATIENCE,
  );
  await stopConsuming();

  const made = await insist(async () => {
    const answer = await call('POST', `${SOURCE}/plans`, 'replay', {});
    if (answer.status !== 201 && answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`);
    return answer.json as PlanJson;
  });
  const plan = (id: string) => call('GET', `plans/${id}`, 'read').then(({ json }) => json as PlanJson);
  const ready = await until(
    async () => {
      const now = await plan(made.id);
      return now.state === 'ready' ? now : undefined;
    },
    'the plan to be ready',
    PATIENCE,
  );
  expect(ready.counts.planned).toBeGreaterThanOrEqual(ENOUGH);

  await call('POST', `plans/${made.id}/run`, 'replay', { confirm: ready.counts.pending, ramp: false });
  const finished = await until(
    async () => {
      const now = await plan(made.id);
      // A target that cannot be reached pauses a run; that it goes on is for people to say.
      if (now.state === 'paused') await call('POST', `plans/${made.id}/resume`, 'replay', {});
      return now.state === 'finished' ? now : undefined;
    },
    'the run to finish',
    PATIENCE,
  );
  const { planned, pending, done, skipped, failed, left } = finished.counts;
  expect(pending).toBe(0);
  expect(done + skipped + failed + left).toBe(planned);
  expect(done).toBeGreaterThan(0);
  expect(await idsIn(client)).toEqual(new Set(Array.from({ length: LETTERS }, (_, i) => `m-${i}`)));

  run.signal('SIGTERM', 'first');
  expect(await run.ended).toBe(0);
  expect(Number(/something went wrong (\d+) times/.exec(run.out())?.[1])).toBeGreaterThan(0);
  expect(await run.leftBehind()).toEqual({ processes: false, files: [] });
});

test.each([
  ['--chaos'],
  ['--chaos', 'seven'],
  ['--chaos', '-1'],
  ['--chaos', '4294967296'],
  ['--chaos', '7', '--once'],
])('chaos that cannot be had is answered with the usage: %s %s %s', async (...args) => {
  run = startRun(args);
  expect(await run.ended).toBe(2);
  expect(run.errors()).toMatch(/^usage: npm start/m);
});

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: unknown;
}

/** Calls the office with the keys that it printed. */
function callerOf(out: string) {
  const url = /^the office is open: (\S+)/m.exec(out)?.[1];
  const keys = { read: /^ {2}read +(\S+)$/m.exec(out)?.[1], replay: /^ {2}replay +(\S+)$/m.exec(out)?.[1] };
  return async (method: string, path: string, key: keyof typeof keys, body?: unknown): Promise<Answer> => {
    const answer = await fetch(`${url}/${path}`, {
      method,
      headers: { 'x-functions-key': keys[key] ?? '', 'x-operator': 'test', 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, text, json: text === '' ? undefined : JSON.parse(text) };
  };
}

/** The connection string, printed one part a line. */
function brokerOf(out: string): string {
  const [lines = ''] = /^export ServiceBusConnection=(?:.*\\\n)+.*/m.exec(out) ?? [];
  return [...lines.matchAll(/'([^']+;)'/g)].map(([, part]) => part).join('');
}

/** Tries again until it succeeds. */
async function insist<Value>(attempt: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 10) throw error;
    }
  }
}

/** What is sent again after a lost answer is there twice: two letters with one id. */
async function sendAll(client: ServiceBusClient): Promise<void> {
  const sender = client.createSender(QUEUE);
  for (let i = 0; i < LETTERS; i++) {
    await insist(() => sender.sendMessages({ messageId: `m-${i}`, body: { order: i } }));
  }
}

/** Ids of all messages in the queue and its DLQ. The queue first: until the end somebody may dead-letter out of it. */
async function idsIn(client: ServiceBusClient): Promise<Set<unknown>> {
  const ids = new Set<unknown>();
  for (const options of [{}, { subQueueType: 'deadLetter' }] as const) {
    const messages = await insist(() =>
      client.createReceiver(QUEUE, options).peekMessages(250, { fromSequenceNumber: Long.ZERO }),
    );
    for (const { messageId } of messages) ids.add(messageId);
  }
  return ids;
}

/** Dead-letters whatever comes, until it is stopped. */
function consume(client: ServiceBusClient): () => Promise<void> {
  const receiver = client.createReceiver(QUEUE);
  const bury = (message: ServiceBusReceivedMessage) =>
    receiver.deadLetterMessage(message, {
      deadLetterReason: 'UnsupportedCurrency',
      deadLetterErrorDescription: 'no such currency',
    });
  const subscription = receiver.subscribe(
    // A failed settlement leaves the message locked for a minute: it is tried again as long as the lock may hold.
    { processMessage: (message) => insist(() => bury(message)), processError: async (_: ProcessErrorArgs) => {} },
    { autoCompleteMessages: false },
  );
  return () => subscription.close().catch(() => {}); // its connection may be gone
}
