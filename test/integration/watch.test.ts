import { TableClient } from '@azure/data-tables';
import type { ServiceBusReceiver } from '@azure/service-bus';
import { QueueServiceClient } from '@azure/storage-queue';
import Long from 'long';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../functions/register.ts';
import { sourceKey } from '../../shared/catalog.ts';
import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { problemSchema } from '../../shared/http/problem.ts';
import type { Answer } from '../harness/host.ts';
import { type LetterJson, openTestOffice, PLAIN, type PlanJson, type TestOffice, until } from '../harness/office.ts';
import { layWire, type Wire } from '../harness/proxy.ts';
import { takeStorage } from '../harness/storage.ts';

type Json = Record<string, unknown>;

/** By hand: nothing touches the letters of these but what a test asks for. */
const BY_HAND = [
  'still',
  'collected',
  'vanishing',
  'foreign',
  'reborn',
  'fresh',
  'grown',
  'counted',
  'rows-a',
  'rows-b',
  'rows-c',
  'rows-d',
  'runs',
  'sent',
  'hidden',
];
let office: TestOffice;
let wire: Wire;
let storage: string;

beforeAll(async () => {
  storage = await takeStorage();
  wire = await layWire(storage);
  office = await openTestOffice({
    entry: 'test/integration/fixtures/office.ts',
    storage: wire.connectionString,
    administration: true,
    sources: [
      ...BY_HAND.map((name) => ({ name, trigger: false })),
      ...['triggered', 'down', 'odd', 'bodies'].map((name) => ({ name })),
      { name: 'observed', mode: 'observe', entity: PLAIN, retainFor: 'P14D' },
      { name: 'hidden-observed', mode: 'observe', entity: PLAIN },
    ],
  });
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-4000));
});
afterAll(async () => {
  await office?.close();
  await wire?.close();
});

const dlq = (queue: string) => office.broker.messages(`${queue}/$DeadLetterQueue`);
const states = (queue: string) => dlq(queue).map(({ state, locked }) => (locked ? `${state}, locked` : state));
const numbers = (letters: readonly { sequenceNumber: string }[]) => letters.map(({ sequenceNumber }) => sequenceNumber);
const count = (text: string) => office.process.log().split(text).length - 1;

/** Sends messages and has a consumer dead-letter them. Nobody is told. */
async function die(
  queue: string,
  howMany: number,
  message: (i: number) => Json = (i) => ({ body: { order: i } }),
): Promise<void> {
  const messages = Array.from({ length: howMany }, (_, i) => ({
    messageId: `${queue}-${i}`,
    body: undefined,
    ...message(i),
  }));
  await office.send(queue, messages);
  await office.deadLetterAll(queue);
}

/** What another program does with the dead-letter queue. */
async function byHand(queue: string, act: (receiver: ServiceBusReceiver) => Promise<void>): Promise<void> {
  const options = { subQueueType: 'deadLetter', maxAutoLockRenewalDurationInMs: 0 } as const;
  const receiver = office.client.createReceiver(queue, options);
  try {
    await act(receiver);
  } finally {
    await receiver.close();
  }
}

function expectProblem(answer: Answer, code: ErrorCode): void {
  const told = problemSchema.parse(answer.json);
  expect([answer.status, told.code], answer.text).toEqual([ERRORS[code].status, code]);
}

describe('looking changes nothing', () => {
  test('neither every GET route nor a plan moves, locks or counts a letter, held or active', async () => {
    await die('still', 3);
    await office.held(3, 'still');
    await die('still', 2, (i) => ({ messageId: `late-${i}`, body: { late: i } }));
    await office.process.run('reconcile');
    const before = { dead: dlq('still'), alive: office.broker.messages('still') };
    expect(states('still')).toEqual(['deferred', 'deferred', 'deferred', 'active', 'active']);

    const letters = await office.letters('still');
    expect(letters).toHaveLength(5);
    const plans = [
      await office.plan({}, 'still'),
      await office.plan({ action: 'discard' }, 'still'),
      await office.plan({ selection: { sequenceNumber: numbers(letters).slice(3) } }, 'still'),
    ];
    for (const route of ROUTES.filter(({ method }) => method === 'GET')) {
      for (const sequenceNumber of numbers(letters)) {
        for (const { id } of plans) {
          const path = route.path
            .replace('{source}', 'still')
            .replace('{sequenceNumber}', sequenceNumber)
            .replace('{id}', id)
            .replace('{fingerprint}', String(letters[0]?.fingerprint));
          const query = route.name === 'summary' ? '?by=reason' : '';
          const answer = await office.call(route.right, 'GET', path + query);
          expect(answer.status, path).toBe(200);
          if (!route.path.includes('{id}')) break;
        }
        if (!route.path.includes('{sequenceNumber}')) break;
      }
    }
    expect({ dead: dlq('still'), alive: office.broker.messages('still') }).toEqual(before);
    expect(await office.letters('still')).toEqual(letters);
    for (const plan of plans)
      expect(await office.getPlan(plan.id)).toMatchObject({ state: 'ready', counts: plan.counts });
  });
});

describe('either of trigger and timer is enough', () => {
  test('the trigger alone sets letters aside and records them', async () => {
    await die('triggered', 20);
    const letters = await until(async () => {
      const found = await office.letters('triggered');
      return found.length === 20 && states('triggered').every((state) => state === 'deferred') ? found : undefined;
    }, '20 letters to be held by the trigger');
    expect(letters.map(({ messageId }) => messageId)).toEqual(Array.from({ length: 20 }, (_, i) => `triggered-${i}`));
    expect(await office.get('sources/triggered')).toMatchObject({ asOf: null });
    expect(dlq('triggered').map(({ deliveryCount }) => deliveryCount)).toEqual(Array.from({ length: 20 }, () => 0));
  });

  test('the timer alone does too', async () => {
    await die('collected', 20);
    expect(await office.letters('collected')).toEqual([]);
    await office.process.run('collect');
    expect(states('collected')).toEqual(Array.from({ length: 20 }, () => 'deferred'));
    expect(await office.letters('collected')).toHaveLength(20);
    expect(await office.get('sources/collected')).toMatchObject({ open: 20, health: 'Healthy' });
  });

  test('bodies that the host cannot hand over are held by the timer', async () => {
    await office.send('bodies', { body: 42, bodyType: 'value', messageId: 'value' } as never);
    await office.send('bodies', { body: [[1, 'a']], bodyType: 'sequence', messageId: 'sequence' } as never);
    await office.deadLetterAll('bodies');
    const letters = await office.held(2, 'bodies');
    const kinds = await Promise.all(
      numbers(letters).map(async (number) => (await office.letter(number, 'bodies')).body as Json),
    );
    expect(kinds.map(({ kind }) => kind)).toEqual(['value', 'sequence']);
  });
});

test('an observe source is only looked at', async () => {
  await die('observed', 4);
  const before = dlq('observed');
  await office.process.run('collect');
  expect(await office.letters('observed')).toHaveLength(4);
  await office.process.run('reconcile');
  await office.process.run('expire');
  expect(dlq('observed')).toEqual(before);
  expect(states('observed')).toEqual(['active', 'active', 'active', 'active']);
  expect(await office.get('sources/observed')).toMatchObject({ mode: 'observe', open: 4 });
});

describe('records and queue are brought in line', () => {
  test('a letter that somebody took is gone, and no other', async () => {
    await die('vanishing', 3);
    const [first, second, third] = numbers(await office.held(3, 'vanishing')) as [string, string, string];
    await byHand('vanishing', async (receiver) => {
      const [message] = await receiver.receiveDeferredMessages(Long.fromString(second));
      if (message) await receiver.completeMessage(message);
      const [locked] = await receiver.receiveDeferredMessages(Long.fromString(third));
      expect(locked).toBeDefined(); // held by somebody else: still there
    });
    await office.process.run('reconcile');
    expect(numbers(await office.letters('vanishing'))).toEqual([first, third]);
    expect(await office.letter(second, 'vanishing')).toMatchObject({ fate: { fate: 'gone', planId: null } });
    expect(await office.letter(first, 'vanishing')).toMatchObject({ fate: null });
  });

  test('a letter that somebody else has set aside is found', async () => {
    await die('foreign', 2);
    await byHand('foreign', async (receiver) => {
      const messages = await receiver.receiveMessages(2, { maxWaitTimeInMs: 5000 });
      for (const message of messages) await receiver.deferMessage(message);
    });
    await office.collect('foreign');
    expect(await office.letters('foreign')).toEqual([]);
    await office.process.run('reconcile');
    expect(await office.letters('foreign')).toHaveLength(2);
    expect((await office.run(await office.plan({}, 'foreign'))).counts).toMatchObject({ planned: 2, done: 2 });
  });

  test.each(['collect', 'reconcile'])(
    'an entity that was made anew: the new message with an old number is a new letter (%s)',
    async (pass) => {
      await die('reborn', 2, (i) => ({ messageId: `old-${pass}-${i}`, body: 'old' }));
      const old = await office.held(2, 'reborn');
      const [sent] = old;
      if (pass === 'collect') {
        const plan = await office.plan({ selection: { sequenceNumber: [sent?.sequenceNumber] } }, 'reborn');
        expect((await office.run(plan)).counts.done).toBe(1);
      }
      office.broker.recreate('reborn');
      const again = Date.now();
      await die('reborn', 2, (i) => ({ messageId: `new-${pass}-${i}`, body: 'new' }));
      await office.process.run(pass);
      const letters = await office.letters('reborn');
      expect(numbers(letters)).toEqual(numbers(old));
      for (const { sequenceNumber } of letters) {
        const letter = await office.letter(sequenceNumber, 'reborn');
        expect(letter).toMatchObject({ fate: null });
        expect(letter.messageId).toMatch(`new-${pass}-`);
        expect(Date.parse(String(letter.firstSeen))).toBeGreaterThanOrEqual(again);
      }
      office.broker.recreate('reborn');
      await office.process.run('reconcile');
      expect(await office.letters('reborn')).toEqual([]);
    },
  );
});

test('an entity that was made anew while a run had sent its letters: the new ones are listed, whatever the run then ends', async () => {
  await die('sent', 3);
  await office.held(3, 'sent');
  const entity = 'sent/$DeadLetterQueue';
  const held = office.broker.faults.add({ at: 'settle', entity, operation: 'complete', do: 'hold', times: 50 });
  const plan = await office.plan({}, 'sent');
  await office.post(`plans/${plan.id}/run`, { confirm: 3, ramp: false });
  await until(() => held.hits > 0 || undefined, 'the completion to be asked for');
  await office.kill();
  office.broker.recreate('sent');
  held.remove();
  await office.restart();
  await die('sent', 3, (i) => ({ messageId: `anew-${i}`, body: 'anew' }));
  await office.process.run('collect');
  expect((await office.letters('sent')).map(({ messageId }) => messageId)).toEqual(['anew-0', 'anew-1', 'anew-2']);
  await until(async () => {
    await office.process.run('watch');
    return (await office.getPlan(plan.id)).state === 'finished' || undefined;
  }, 'the run to be ended by the next process');
  expect((await office.getPlan(plan.id)).counts).toMatchObject({ done: 3, maybeDuplicate: 0 });
  expect((await office.letters('sent')).map(({ messageId }) => messageId)).toEqual(['anew-0', 'anew-1', 'anew-2']);
  expect(states('sent')).toEqual(['deferred', 'deferred', 'deferred']);
});

test.each([
  ['hidden', 'reconcile'],
  ['hidden-observed', 'collect'],
])(
  'a letter of %s that is recorded as sent back, and is there, is listed again by %s, and said to be',
  async (source, pass) => {
    await die(source, 3);
    if (source === 'hidden') await office.held(3, source);
    else await office.collect(source);
    const [first, , third] = numbers(await office.letters(source)) as [string, string, string];
    const letters = TableClient.fromConnectionString(storage, 'letters', { allowInsecureConnection: true });
    const plan = await office.plan({ selection: { sequenceNumber: [third] } }, source);
    for (const number of [first, third]) {
      const key = { partitionKey: sourceKey('127.0.0.1', source), rowKey: number.padStart(20, '0') };
      await letters.updateEntity({ ...key, fate: 'replayed', closedAt: new Date(), closedBy: plan.id }, 'Merge');
    }
    expect(await office.letters(source)).toHaveLength(1);
    await office.process.run(pass);
    expect(numbers(await office.letters(source))).toHaveLength(3);
    expect(await office.letter(first, source)).toMatchObject({ fate: null });
    const audit = await office.get<{ entries: { operation: string; letters: string[] }[] }>(`audit?source=${source}`);
    expect(audit.entries.find(({ operation }) => operation === 'letters.reopen')?.letters).toEqual([first, third]);
    expect(count(`reopen ${source}: 2 letters`)).toBe(1);
    // It may be in the target, as its record said so.
    expect((await office.plan({}, source)).findings).toMatchObject([{ code: 'maybe-sent', letters: 2 }]);
  },
);

test('a dialect that throws makes a letter unknown, visibly, and stops no other', async () => {
  await die('odd', 3, (i) => ({ subject: i === 1 ? 'Unreadable' : 'OrderPlaced', body: { i } }));
  const letters = await office.held(3, 'odd');
  const found = await Promise.all(numbers(letters).map((number) => office.letter(number, 'odd')));
  expect(found[1]).toMatchObject({
    category: 'unknown',
    advice: 'investigate',
    rule: 'dialect-failed',
    reason: 'UnsupportedCurrency',
    classifyError: 'fragile: this header makes no sense',
  });
  for (const other of [found[0], found[2]]) {
    expect(other).not.toHaveProperty('classifyError');
    expect(other).toMatchObject({ messageType: 'OrderPlaced' });
  }
});

test('while the store is down letters stay, nothing spins, and afterwards they are recorded and held', async () => {
  const failures = () => count('classify down: left unsettled');
  wire.cut();
  try {
    await die('down', 5);
    await until(() => failures() >= 5 || undefined, 'the trigger to fail five times');
    // Each of these waits for the store in vain, which is time enough for anything that spins.
    expectProblem(await office.call('read', 'GET', 'sources/down/letters'), 'DLO_STORE_UNAVAILABLE');
    expectProblem(await office.call('read', 'POST', 'sources/down/collect', {}), 'DLO_STORE_UNAVAILABLE');
    expectProblem(await office.call('replay', 'POST', 'sources/down/plans', {}), 'DLO_STORE_UNAVAILABLE');
    const health = await office.call('probe', 'GET', 'health');
    expect([health.status, (health.json as Json).status]).toEqual([503, 'Unhealthy']);
    for (const timer of ['collect', 'expire', 'watch']) await office.process.run(timer);
    expect(failures()).toBe(5);
    expect(states('down')).toEqual(Array.from({ length: 5 }, () => 'active, locked'));

    office.broker.clock.advance(61_000);
    await until(() => failures() >= 10 || undefined, 'each letter to be tried once more');
    await office.call('probe', 'GET', 'health');
    expect(failures()).toBe(10);
    expect(dlq('down')).toHaveLength(5);
  } finally {
    wire.mend();
  }
  expect(await office.letters('down')).toEqual([]);
  office.broker.clock.advance(61_000);
  const letters = await until(async () => {
    const found = await office.letters('down');
    return found.length === 5 && states('down').every((state) => state === 'deferred') ? found : undefined;
  }, 'five letters to be recorded and held');
  expect(letters.map(({ messageId }) => messageId)).toEqual(Array.from({ length: 5 }, (_, i) => `down-${i}`));
  expect(dlq('down').map(({ deliveryCount }) => deliveryCount)).toEqual([0, 0, 0, 0, 0]);
  await office.collect('down');
  expect(await office.get('sources/down')).toMatchObject({ open: 5, health: 'Healthy' });
});

describe('rows that other hands wrote', () => {
  const keyOf = (source: string) => sourceKey('127.0.0.1', source);
  const table = (name: string) => TableClient.fromConnectionString(storage, name, { allowInsecureConnection: true });
  const rowKey = (number: string) => number.padStart(20, '0');
  const spoil = (name: string, partitionKey: string, rowKey: string, cells: Json, how: 'Merge' | 'Replace' = 'Merge') =>
    table(name).upsertEntity({ partitionKey, rowKey, ...cells }, how);
  const planIds = async (query: string) => {
    const { plans, unreadable } = await office.get<{ plans: PlanJson[]; unreadable: string[] }>(`plans?${query}`);
    return { readable: plans.map(({ id }) => id), unreadable };
  };

  test('in `letters` hide no other letter, are told one by one, and are made good by reconcile', async () => {
    await die('rows-a', 4);
    const [first, second, third, fourth] = numbers(await office.held(4, 'rows-a')) as [string, string, string, string];
    await spoil('letters', keyOf('rows-a'), rowKey(first), { firstSeen: 'yesterday', properties: '{"half":' });
    await spoil('letters', keyOf('rows-a'), rowKey(second), { fate: 'open' }, 'Replace');
    await spoil('letters', keyOf('rows-a'), rowKey(third), {
      sequenceNumber: '-1',
      category: 'hunter2',
      bodyBytes: 'many',
    });
    expect(numbers(await office.letters('rows-a'))).toEqual([fourth]);
    for (const number of [first, second, third]) {
      const answer = await office.call('read', 'GET', `sources/rows-a/letters/${number}`);
      expectProblem(answer, 'DLO_RECORD_UNREADABLE');
      expect(answer.text).toContain(rowKey(number));
      expect(answer.text).not.toMatch(/hunter2|yesterday/);
    }
    expect(await office.letter(fourth, 'rows-a')).toMatchObject({ fate: null });
    expect((await office.call('read', 'GET', 'summary?by=category&source=rows-a')).status).toBe(200);
    expect((await office.call('read', 'GET', 'sources/rows-a/expiry')).status).toBe(200);
    const plan = await office.plan({}, 'rows-a');
    expect(plan).toMatchObject({ counts: { planned: 1, pending: 1 }, findings: [{ code: 'unreadable', letters: 3 }] });
    expect(await office.collect('rows-a')).toMatchObject({ open: 4 });

    await office.process.run('reconcile');
    expect(numbers(await office.letters('rows-a'))).toEqual([first, second, third, fourth]);
    expect(states('rows-a')).toEqual(['deferred', 'deferred', 'deferred', 'deferred']);
  });

  test('in `plans` make one plan unreadable, not the list', async () => {
    const [bad, half, good] = [
      await office.plan({}, 'rows-a'),
      await office.plan({}, 'rows-a'),
      await office.plan({}, 'rows-a'),
    ];
    await spoil('plans', bad.id, 'head', { choices: '{', pending: 'three' });
    await spoil('plans', half.id, 'head', { selection: 'everything' });
    const { readable, unreadable } = await planIds('source=rows-a');
    expect(readable).toContain(good.id);
    expect(unreadable.sort()).toEqual([bad.id, half.id].sort());
    expect((await planIds('state=ready')).readable).toContain(good.id);
    for (const { id } of [bad, half]) {
      expectProblem(await office.call('read', 'GET', `plans/${id}`), 'DLO_RECORD_UNREADABLE');
      expectProblem(await office.call('read', 'GET', `plans/${id}/letters`), 'DLO_RECORD_UNREADABLE');
      expectProblem(await office.call('replay', 'POST', `plans/${id}/run`, { confirm: 4 }), 'DLO_RECORD_UNREADABLE');
      for (const act of ['pause', 'resume']) {
        expectProblem(await office.call('replay', 'POST', `plans/${id}/${act}`, {}), 'DLO_RECORD_UNREADABLE');
      }
      const cancelled = await office.post<PlanJson>(`plans/${id}/cancel`);
      expect(cancelled).toMatchObject({ id, state: 'cancelled' });
      expect(cancelled.stateReason).toContain(id === bad.id ? 'choices, pending' : 'selection');
      expect(await office.getPlan(id)).toMatchObject(cancelled);
    }
    expect((await planIds('source=rows-a')).unreadable).toEqual([]);
    await spoil('plans', good.id, 'chunk:000001', { letters: '[["1"]]' });
    const page = { letters: [], continuation: null, unreadable: ['chunk:000001'] };
    expect(await office.get(`plans/${good.id}/letters`)).toMatchObject(page);
    expect((await office.call('read', 'GET', `plans/${good.id}/report`)).status).toBe(200);
    const cancelled = await office.post<PlanJson>(`plans/${good.id}/cancel`);
    expect(cancelled).toMatchObject({ state: 'cancelled', counts: { planned: 4, left: 4 } });
    expect(cancelled.stateReason).toContain('1 of its chunks cannot be read');
  });

  test('in `sources` are one source’s problem: all others are listed, collected, cleaned and watched', async () => {
    await office.process.run('collect');
    await spoil('sources', keyOf('rows-b'), 'source', { leaseUntil: 'for ever', occupiedSince: true });
    expectProblem(await office.call('read', 'GET', 'sources/rows-b'), 'DLO_RECORD_UNREADABLE');
    const { sources } = await office.get<{ sources: { name: string; health: string; problems: string[] }[] }>(
      'sources',
    );
    const sick = sources.filter(({ health }) => health !== 'Healthy');
    expect(sick.map(({ name }) => name)).toEqual(['rows-b']);
    expect(sick[0]?.problems[0]).toContain('leaseUntil');
    const health = await office.call('probe', 'GET', 'health');
    expect([health.status, (health.json as Json).status]).toEqual([200, 'Degraded']);

    const before = count('tried again next time: ');
    await die('rows-b', 1);
    await die('rows-c', 1);
    for (const timer of ['collect', 'reconcile', 'expire', 'watch']) await office.process.run(timer);
    expect(await office.letters('rows-b')).toHaveLength(1);
    expect(await office.letters('rows-c')).toHaveLength(1);
    expect((await office.call('replay', 'POST', 'stop', {})).status).toBe(200);
    expect(count('tried again next time: ')).toBe(before);
    // The watchdog has made it good.
    expect(await office.get('sources/rows-b')).toMatchObject({ health: 'Healthy', heldBy: null });
    expect((await office.run(await office.plan({}, 'rows-b'))).counts).toMatchObject({ done: 1 });
  });

  test('in `snapshots` are one source’s problem, until it is collected again', async () => {
    await office.collect('rows-c');
    const [newest] = await rowsOf('snapshots', keyOf('rows-c'));
    await spoil('snapshots', keyOf('rows-c'), newest ?? '', { byCategory: '[', open: 'many' });
    expectProblem(await office.call('read', 'GET', 'sources/rows-c'), 'DLO_RECORD_UNREADABLE');
    const { sources } = await office.get<{ sources: { name: string; open: number | null }[] }>('sources');
    expect(sources.find(({ name }) => name === 'rows-c')?.open).toBeNull();
    expect(sources.find(({ name }) => name === 'rows-a')?.open).toBe(4);
    await office.collect('rows-c');
    expect(await office.get('sources/rows-c')).toMatchObject({ open: 1 });
  });

  test('in `audit` hide no other entry, and are counted', async () => {
    const plan = await office.plan({}, 'rows-c');
    const before = await office.get<{ entries: unknown[]; unreadable: number }>('audit?top=500&source=rows-c');
    expect(before.unreadable).toBe(0);
    const month = new Date().toISOString().slice(0, 7);
    const [newest] = await rowsOf('audit', month);
    await spoil('audit', month, newest ?? '', { operation: 'delete.everything', at: 'now' });
    await spoil('audit', month, `${newest}x`, { nothing: true }, 'Replace');
    const after = await office.get<{ entries: unknown[]; unreadable: number }>('audit?top=500&source=rows-c');
    expect(after).toEqual({ entries: before.entries.slice(1), unreadable: 1 });
    expect(await office.get(`audit?plan=${plan.id}`)).toEqual({ entries: [], unreadable: 1 });
    expect(await office.get('audit?top=500')).toMatchObject({ unreadable: 2 });
  });

  /** A run that nobody works on: its process died, its queue message is lost. */
  async function orphanRun(source: string): Promise<PlanJson> {
    const plan = await office.plan({}, source);
    await QueueServiceClient.fromConnectionString(storage).getQueueClient('runs').clearMessages();
    await spoil('plans', plan.id, 'head', { state: 'running' });
    await spoil('sources', keyOf(source), 'source', { occupant: plan.id, leaseUntil: new Date(0) });
    return plan;
  }

  test('do not keep the watchdog from other runs', async () => {
    await die('rows-d', 1);
    await office.held(1, 'rows-d');
    const bad = await orphanRun('rows-a');
    await spoil('plans', bad.id, 'head', { choices: '{' });
    const orphan = await orphanRun('rows-d');
    await office.process.run('watch');
    const finished = async () => ((await office.getPlan(orphan.id)).state === 'finished' ? true : undefined);
    await until(finished, 'the watchdog to go on with the other run', 5000);
    expect((await office.getPlan(orphan.id)).counts).toMatchObject({ done: 1 });
    expect(await office.get('sources/rows-a')).toMatchObject({ heldBy: null });
  });

  test('do not keep `stop` from other runs', async () => {
    await die('rows-d', 1);
    await office.held(1, 'rows-d');
    const orphan = await orphanRun('rows-d');
    await spoil('sources', keyOf('rows-d'), 'source', { passedAt: 'now', retired: 'no' });
    const answer = await office.call('replay', 'POST', 'stop', {});
    expect(answer.status, answer.text).toBe(200);
    expect(await office.getPlan(orphan.id)).toMatchObject({ state: 'paused' });
  });

  test('in a journal pause the run, say which row it is, and leave the source to others', async () => {
    await die('rows-b', 2);
    await office.held(2, 'rows-b');
    const plan = await office.plan({}, 'rows-b');
    await spoil('plans', plan.id, 'chunk:000001', { letters: '[["1"]]' });
    const { pending } = plan.counts;
    await office.post(`plans/${plan.id}/run`, { confirm: pending, ramp: false });
    const paused = async () => ((await office.getPlan(plan.id)).state === 'paused' ? true : undefined);
    await until(paused, 'the run to be paused', 5000);
    expect((await office.getPlan(plan.id)).stateReason).toContain('chunk:000001');
    expect((await office.run(await office.plan({}, 'rows-b'))).counts).toMatchObject({ done: pending });
  });

  async function rowsOf(name: string, partition: string): Promise<string[]> {
    const keys: string[] = [];
    const queryOptions = { filter: `PartitionKey eq '${partition}'`, select: ['RowKey'] };
    for await (const { rowKey } of table(name).listEntities({ queryOptions })) keys.push(rowKey ?? '');
    return keys;
  }
});

test('messages in the queue `runs` that are none are dropped, and the next one is taken', async () => {
  await die('runs', 1);
  await office.held(1, 'runs');
  const plan = await office.plan({}, 'runs');
  const service = QueueServiceClient.fromConnectionString(storage);
  const queue = service.getQueueClient('runs');
  const encode = (text: string) => Buffer.from(text).toString('base64');
  await queue.sendMessage('§ not base64 §'.replaceAll('§', '%'));
  const garbage = [
    '',
    'no json',
    '{"plan',
    'null',
    '[]',
    '7',
    '{}',
    '{"planId":7}',
    '{"planId":"x"}',
    `{"planId":"${plan.id}","run":true}`,
  ];
  for (const text of garbage) await queue.sendMessage(encode(text));
  await queue.sendMessage(encode('{"planId":"20200101t000000-aaaaaaaa"}'));
  await until(
    () => count('is not a continuation and was dropped') >= garbage.length || undefined,
    'the garbage to be dropped',
  );
  const poison = service.getQueueClient('runs-poison');
  const taken = await until(async () => {
    const { peekedMessageItems } = await poison.peekMessages({ numberOfMessages: 32 });
    return peekedMessageItems.length > 0 ? peekedMessageItems : undefined;
  }, 'the host to put aside what is not base64');
  expect(taken.map(({ messageText }) => messageText)).toEqual(['% not base64 %']);
  expect(await office.getPlan(plan.id)).toMatchObject({ state: 'ready' });
  const run: PlanJson = await office.run(plan, 0);
  expect(run).toMatchObject({ state: 'finished', counts: { done: 1 } });
  const letters: LetterJson[] = await office.letters('runs');
  expect(letters).toEqual([]);
});

// Last: what is recorded ahead of time is the newest for everybody after it.
describe('how fresh an answer is', () => {
  const setClock = (ahead: number) => office.call('probe', 'POST', `test/clock?ahead=${ahead}`);
  const MINUTE = 60_000;
  afterAll(() => setClock(0));

  test('is the time of the last pass that completed, in every answer, and not when it was asked', async () => {
    await die('fresh', 2);
    await office.process.run('collect');
    const passed = (await office.get<{ asOf: string }>('sources/fresh')).asOf;
    expect(passed).toEqual(expect.any(String));
    const [letter] = await office.letters('fresh');
    await setClock(MINUTE);
    await office.collect('still'); // of several sources the oldest pass counts
    await setClock(16 * MINUTE);
    const group = `groups/${String(letter?.fingerprint)}`;
    for (const path of [
      'sources/fresh',
      'sources/fresh/letters',
      'sources/fresh/letters?category=poison',
      'summary?by=reason&source=fresh',
      'summary?by=cause&source=fresh',
      'groups?source=fresh',
    ]) {
      expect((await office.get<Json>(path)).asOf, path).toBe(passed);
    }
    const times = (await office.get<{ sources: { asOf: string }[] }>('sources')).sources.map(({ asOf }) => asOf);
    const oldest = times.toSorted()[0];
    for (const path of ['summary?by=reason', 'summary?by=cause', 'groups', group]) {
      expect((await office.get<Json>(path)).asOf, path).toBe(oldest);
    }
    const plan = await office.plan({}, 'fresh');
    expect(await office.get(`plans/${plan.id}`)).toMatchObject({ asOf: passed });
    for (const path of ['summary?by=reason&source=fresh&format=text', 'summary?by=cause&source=fresh&format=text']) {
      const { text } = await office.call('read', 'GET', path);
      expect(text).toContain('The last pass over fresh completed 16 minutes ago.');
    }
  });

  test('makes the office degraded when passes stop, and it says for how long; what is counted again is no pass', async () => {
    await setClock(0);
    await office.process.run('collect');
    const health = async () => (await office.call('probe', 'GET', 'health')).json as Json;
    expect(await health()).toMatchObject({ status: 'Healthy', problems: [] });
    await setClock(2 * MINUTE);
    expect(await health()).toMatchObject({ status: 'Healthy' });
    await setClock(10 * MINUTE);
    await office.process.run('reconcile');
    const all = (await office.get<{ sources: Json[] }>('sources')).sources;
    expect(await health()).toMatchObject({
      status: 'Degraded',
      problems: [`the last pass over ${all.length} of ${all.length} sources completed 10 minutes ago`],
    });
    expect(await office.get('sources/fresh')).toMatchObject({
      health: 'Degraded',
      problems: ['the last pass over fresh completed 10 minutes ago'],
    });
    await office.process.run('collect');
    expect(await health()).toMatchObject({ status: 'Healthy' });
  });

  test('no growth is told that is of another time', async () => {
    const growth = async () => (await office.get<Json>('sources/grown')).growth15m;
    await setClock(0);
    await die('grown', 2);
    await office.collect('grown');
    await setClock(16 * MINUTE);
    // The newest counts are themselves older than a quarter of an hour: they say nothing of the last one.
    expect(await growth()).toBeNull();
    await die('grown', 3);
    await office.collect('grown');
    expect(await growth()).toBe(3);
    await setClock(3 * 60 * MINUTE);
    await die('grown', 1);
    await office.collect('grown');
    expect(await growth()).toBeNull();
  });

  test('has Service Bus’s own count beside it; where they differ for longer than two passes, the office is degraded', async () => {
    const source = () =>
      office.get<{ counter: Json; open: number; health: string; problems: string[] }>('sources/counted');
    const health = async () => (await office.call('probe', 'GET', 'health')).json as Json;
    const pass = async (minute: number) => {
      await setClock((200 + minute) * MINUTE);
      await office.process.run('collect');
    };
    await pass(0);
    await die('counted', 3);
    await pass(1);
    expect(await source()).toMatchObject({ open: 3, counter: { count: 3, open: 3, unread: null, differsSince: null } });

    // Three more die, and somebody else keeps them locked: the office cannot have seen them.
    await die('counted', 3, (i) => ({ messageId: `hidden-${i}`, body: { i } }));
    await byHand('counted', async (receiver) => {
      const locked = await receiver.receiveMessages(3, { maxWaitTimeInMs: 5000 });
      expect(locked).toHaveLength(3);
      for (const minute of [2, 3]) await pass(minute);
      expect(await source()).toMatchObject({ open: 3, counter: { count: 6 }, health: 'Healthy' });
      await pass(5);
      expect(await source()).toMatchObject({
        health: 'Degraded',
        problems: ['Service Bus counts 6 dead letters, 3 are on record; they have differed for 3 minutes'],
      });
      expect(await health()).toMatchObject({
        status: 'Degraded',
        problems: [expect.stringMatching(/^Service Bus counts other letters in 1 of \d+ sources than are on record$/)],
      });
      for (const message of locked) await receiver.abandonMessage(message);
    });
    await pass(6);
    expect(await source()).toMatchObject({ open: 6, counter: { count: 6, differsSince: null }, health: 'Healthy' });
  });
});
