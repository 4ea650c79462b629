/** Copies of removed letters, through the whole office; judged by the official blob client and by rhea. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServiceBusReceivedMessage } from '@azure/service-bus';
import { ContainerClient } from '@azure/storage-blob';
import Long from 'long';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { main } from '../../cli/archive.ts';
import { readLetter } from '../../shared/brokers/serviceBus/readLetter.ts';
import { sourceKey } from '../../shared/catalog.ts';
import { sequenceNumber as number } from '../../shared/letter.ts';
import { ARCHIVE_CONTAINER, archiveFolder, archiveName } from '../../shared/store/archive.ts';
import { sendRaw } from '../harness/exact.ts';
import { openTestOffice, type PlanJson, type TestOffice, until } from '../harness/office.ts';
import { takeStorage } from '../harness/storage.ts';
import { openStoreProxy, type StoreProxy } from '../harness/storeProxy.ts';
import { BODIES, CODE, data, fullMessage, messageOf, sectionsByRhea, types } from '../harness/typedMessage.ts';

const DAY = 86_400_000;
const KEPT = { retainFor: 'P14D', trigger: false, archive: true };

let office: TestOffice;
let store: StoreProxy;
let container: ContainerClient;
/** How far the clock of the office is ahead, days. It only goes forward. */
let today = 0;

beforeAll(async () => {
  const storage = await takeStorage();
  store = await openStoreProxy(storage, 1);
  container = new ContainerClient(storage, ARCHIVE_CONTAINER);
  office = await openTestOffice({
    entry: 'test/integration/fixtures/office.ts',
    storage: store.connectionString,
    sources: [
      ...[
        'exact',
        'large',
        'lucky',
        'out',
        'partly',
        'crashed',
        'locked',
        'thrown',
        'stuck',
        'torn',
        'late',
        'back',
      ].map((name) => ({ name, ...KEPT })),
      { name: 'seen', ...KEPT, mode: 'observe' },
      { name: 'plain', ...KEPT, archive: false },
    ],
    queues: { remembering: { RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 'PT10M' } },
  });
});
afterEach((context) => {
  store?.blobsOut(false);
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-3000));
});
afterAll(async () => {
  await office?.close();
  await store?.close();
});

const dlq = (queue: string) => office.broker.messages(`${queue}/$DeadLetterQueue`);
const clean = () => office.process.run('expire');
const logged = (text: string) => office.process.log().includes(text);

async function pass(days: number): Promise<void> {
  today += days;
  await setClock();
}

async function setClock(): Promise<void> {
  await office.call('probe', 'POST', `test/clock?ahead=${today * DAY}`);
}

interface Copy {
  readonly name: string;
  readonly metadata: Record<string, string>;
  readonly bytes: Buffer;
}

/** What is in the archive of a queue, by name. */
async function copies(queue: string): Promise<Copy[]> {
  const found: Copy[] = [];
  if (!(await container.exists())) return found;
  const prefix = `${archiveFolder(sourceKey('127.0.0.1', queue))}/`;
  for await (const { name, metadata = {} } of container.listBlobsFlat({ prefix, includeMetadata: true })) {
    found.push({ name, metadata, bytes: await container.getBlobClient(name).downloadToBuffer() });
  }
  return found;
}

/** The broker's bytes of what it has, and of what was archived, section by section: a lock adds one annotation, and nothing else. */
function sectionsOf(message: Buffer) {
  return sectionsByRhea(message).map(({ code, bytes, entries }) =>
    code === CODE.messageAnnotations ? [...entries].filter(([name]) => name !== 'x-opt-locked-until') : bytes,
  );
}

function expectSame(archived: readonly Copy[], had: readonly { raw: Buffer }[]): void {
  expect(archived.map(({ bytes }) => sectionsOf(bytes))).toEqual(had.map(({ raw }) => sectionsOf(raw)));
}

async function discard(queue: string, count: number, seconds = 20): Promise<PlanJson> {
  const plan = await office.plan({ action: 'discard' }, queue);
  await office.post(
    `plans/${plan.id}/discard`,
    { confirm: count },
    'discard',
    seconds > 0 ? { prefer: `wait=${seconds}` } : {},
  );
  return plan;
}

/** What cleanups of a queue said they had done, newest first. */
async function outcomes(queue: string): Promise<string[]> {
  const { entries } = await office.get<{ entries: { operation: string; outcome: string }[] }>(`audit?source=${queue}`);
  return entries.filter(({ operation }) => operation === 'expire').map(({ outcome }) => outcome);
}

test('a replay archives nothing: the message is not removed, it goes back', async () => {
  await office.deadLetters(1, 'back');
  expect((await office.run(await office.plan({}, 'back'))).counts).toMatchObject({ done: 1 });
  expect(await copies('back')).toEqual([]);
});

describe('the cleanup', () => {
  test('archives every kind of message exactly as the broker had it, before it removes it', async () => {
    const messages = Object.entries(BODIES).map(([name, body]) => fullMessage(name, body));
    const bare = messageOf({ properties: [types.Str8('bare')], body: [data('')] });
    await sendRaw(office, 'exact', [...messages, bare]);
    await office.deadLetterAll('exact', 'Unprocessable', 'no customer jane@example.org');
    await office.held(messages.length + 1, 'exact');
    await pass(15);
    const had = dlq('exact');
    expect(had).toHaveLength(messages.length + 1);
    await clean();
    expect(dlq('exact')).toEqual([]);
    expectSame(await copies('exact'), had);
    expect(await outcomes('exact')).toEqual([`${had.length} removed`]);
  });

  test('tells in names and metadata where a letter was and when, and nothing that a sender wrote', async () => {
    const archived = await copies('exact');
    const day = new Date().toISOString().slice(0, 10);
    const name = /^127\.0\.0\.1~exact\/(\d{4}-\d\d-\d\d)\/\d{20}-\d{9}\.amqp$/;
    for (const copy of archived) {
      expect(copy.name).toMatch(name);
      expect(copy.metadata).toEqual({ office: 'test', source: 'exact', fate: 'expired' });
    }
    expect(archived.some((copy) => name.exec(copy.name)?.[1] === day)).toBe(true);
  });

  test('archives a letter as large as the entity takes', async () => {
    const message = messageOf({ properties: [types.Str8('large')], body: [data(Buffer.alloc(261_500, 'x'))] });
    await sendRaw(office, 'large', [message]);
    await office.deadLetterAll('large');
    await office.held(1, 'large');
    await pass(15);
    const had = dlq('large');
    await clean();
    expect(dlq('large')).toEqual([]);
    expectSame(await copies('large'), had);
  });

  test('of an observe source archives what it removes, and nothing of what it gives back', async () => {
    await office.send('seen', { messageId: 'old', body: 'old' });
    await office.deadLetterAll('seen');
    await office.process.run('collect');
    await pass(15);
    await office.send('seen', { messageId: 'young', body: 'young' });
    await office.deadLetterAll('seen');
    await office.process.run('collect');
    const [old, young] = dlq('seen');
    await clean();
    expect(dlq('seen')).toEqual([young]);
    expectSame(await copies('seen'), old === undefined ? [] : [old]);
  });

  test('tries again when the archive is busy for a moment', async () => {
    await office.deadLetters(1, 'lucky');
    await pass(15);
    const [had] = dlq('lucky');
    const busy = store.strike('busy-once', 'write', '~lucky/', 'blob');
    await clean();
    expect(busy.isHit).toBe(true);
    expect(dlq('lucky')).toEqual([]);
    expectSame(await copies('lucky'), had === undefined ? [] : [had]);
  });

  test('removes nothing while the archive is out, tells it, and removes it the next time', async () => {
    await office.deadLetters(3, 'out');
    await pass(15);
    const had = dlq('out');
    store.blobsOut(true);
    await clean();
    expect(dlq('out')).toEqual(had);
    expect(await office.letters('out')).toHaveLength(3);
    expect(await outcomes('out')).toEqual([]);
    expect(
      logged('expire out: 3 letters could not be archived and stay: the container "dead-letter-archive" failed'),
    ).toBe(true);
    expect(logged('expire out: 0 removed, 3 left for the next time')).toBe(true);
    store.blobsOut(false);
    await clean();
    expect(dlq('out')).toEqual([]);
    expectSame(await copies('out'), had);
  });

  test('keeps the one letter that could not be archived, and removes the others', async () => {
    await office.deadLetters(3, 'partly');
    await pass(15);
    const had = dlq('partly');
    const { sequenceNumber, enqueuedAt } = had[1] as (typeof had)[number];
    const letter = { sequenceNumber: number(sequenceNumber), enqueuedAt };
    const refused = store.strike('busy', 'write', archiveName(sourceKey('127.0.0.1', 'partly'), letter), 'blob');
    await clean();
    expect(refused.isHit).toBe(true);
    expect(dlq('partly')).toEqual([had[1]]);
    expect(await outcomes('partly')).toEqual(['2 removed']);
    expect(logged('expire partly: 2 removed, 1 left for the next time')).toBe(true);
    await clean();
    expect(dlq('partly')).toEqual([]);
    expectSame(await copies('partly'), had);
  });

  test('killed between archive and removal it writes the same blobs once more', async () => {
    await office.deadLetters(3, 'crashed');
    await pass(15);
    const had = dlq('crashed');
    const entity = 'crashed/$DeadLetterQueue';
    const fault = office.broker.faults.add({ at: 'settle', entity, operation: 'complete', do: 'hold', times: 50 });
    clean().catch(() => {}); // it will not come to an end
    await until(() => fault.hits > 0 || undefined, 'the completion to be asked for');
    const before = await copies('crashed');
    expectSame(before, had);
    expect(dlq('crashed').map(({ locked }) => locked)).toEqual([true, true, true]);
    await office.kill();
    office.broker.clock.advance(61_000); // first: without its locks nothing of what it asked for is done
    fault.remove();
    expect(dlq('crashed').map(({ locked }) => locked)).toEqual([false, false, false]);
    await office.restart();
    await setClock();
    await until(async () => {
      await clean();
      return dlq('crashed').length === 0 || undefined;
    }, 'the letters to be removed after the crash');
    const after = await copies('crashed');
    expect(after.map(({ name }) => name)).toEqual(before.map(({ name }) => name));
    expectSame(after, had);
  });

  test('that removes in vain, for a lock that was lost, has archived and removes the next time', async () => {
    await office.deadLetters(2, 'locked');
    await pass(15);
    const had = dlq('locked');
    const entity = 'locked/$DeadLetterQueue';
    office.broker.faults.add({ at: 'settle', entity, operation: 'complete', do: 'lose-lock' });
    await clean();
    expect(dlq('locked')).toHaveLength(2);
    await clean();
    expect(dlq('locked')).toEqual([]);
    expectSame(await copies('locked'), had);
  });
});

describe('a discard', () => {
  test('archives before it removes', async () => {
    await office.deadLetters(5, 'thrown');
    const had = dlq('thrown');
    const plan = await discard('thrown', 5);
    expect((await office.finished(plan.id)).counts).toMatchObject({ done: 5 });
    expect(dlq('thrown')).toEqual([]);
    const archived = await copies('thrown');
    expectSame(archived, had);
    expect(new Set(archived.map(({ metadata }) => metadata.fate))).toEqual(new Set(['discarded']));
  });

  test('waits while the archive is out, says so, removes nothing, and goes on', async () => {
    await office.deadLetters(3, 'stuck');
    const had = dlq('stuck');
    store.blobsOut(true);
    const plan = await discard('stuck', 3, 0);
    const waiting = await until(async () => {
      const now = await office.getPlan(plan.id);
      return (now.stateReason ?? '').includes('archived') ? now : undefined;
    }, 'the run to say why it waits');
    expect(waiting.state).toBe('running');
    expect(waiting.stateReason).toMatch(/^3 letters could not be archived, and stay: /);
    expect(dlq('stuck').map(({ raw }) => raw)).toEqual(had.map(({ raw }) => raw));
    store.blobsOut(false);
    expect((await office.finished(plan.id)).counts).toMatchObject({ done: 3 });
    expect(dlq('stuck')).toEqual([]);
    expectSame(await copies('stuck'), had);
  });

  test('that waits for the archive can be cancelled, and everything stays', async () => {
    await office.deadLetters(2, 'late');
    const had = dlq('late');
    store.blobsOut(true);
    const plan = await discard('late', 2, 0);
    await office.post(`plans/${plan.id}/discard/cancel`, {}, 'discard');
    expect((await office.finished(plan.id, ['cancelled'])).counts).toMatchObject({ done: 0, left: 2 });
    await until(() => dlq('late').every(({ locked }) => !locked) || undefined, 'the locks to be given back');
    expect(dlq('late')).toEqual(had);
    expect(await copies('late')).toEqual([]);
  });

  test('killed between archive and removal it removes each letter once, and each is archived', async () => {
    await office.deadLetters(4, 'torn');
    const had = dlq('torn');
    const entity = 'torn/$DeadLetterQueue';
    const fault = office.broker.faults.add({ at: 'settle', entity, operation: 'complete', do: 'hold', times: 50 });
    const plan = await discard('torn', 4, 0);
    await until(() => fault.hits > 0 || undefined, 'the completion to be asked for');
    expectSame(await copies('torn'), had);
    await office.kill();
    office.broker.clock.advance(61_000); // first: without its locks nothing of what it asked for is done
    fault.remove();
    expect(dlq('torn').map(({ locked }) => locked)).toEqual([false, false, false, false]);
    await office.restart();
    await setClock();
    const finished = await until(async () => {
      await office.process.run('watch');
      const now = await office.getPlan(plan.id);
      return now.state === 'finished' ? now : undefined;
    }, 'the run to be finished after the crash');
    expect(finished.counts).toMatchObject({ planned: 4, done: 4, pending: 0 });
    expect(dlq('torn')).toEqual([]);
    expectSame(await copies('torn'), had);
  });
});

test('a source without the wish writes nothing, neither when letters expire nor when they are discarded', async () => {
  await office.deadLetters(2, 'plain');
  await pass(15);
  store.blobsOut(true); // which then is nobody's trouble
  await clean();
  expect(dlq('plain')).toEqual([]);
  await office.deadLetters(1, 'plain');
  const plan = await discard('plain', 1);
  expect((await office.finished(plan.id)).counts).toMatchObject({ done: 1 });
  expect(await copies('plain')).toEqual([]);
});

describe('the command', () => {
  const run = async (...args: string[]) => {
    const said: string[] = [];
    const administration = { DLO_ADMINISTRATION_URL: `http://127.0.0.1:${office.broker.adminPort}` };
    const env = { ...office.settings, ...administration, AzureWebJobsStorage: store.connectionString };
    const code = await main(args, env, (line) => said.push(line));
    return { code, said };
  };

  test('lists what a source has in the archive, and by any beginning of a name', async () => {
    const archived = await copies('thrown');
    const { code, said } = await run('list', 'thrown');
    expect(code).toBe(0);
    expect(said).toHaveLength(6);
    expect(said.at(-1)).toBe('5 letters');
    expect(said[0]).toMatch(/~thrown\/\S+\.amqp {2}\d+ bytes, discarded 20\d\d-/);
    expect((await run('list', archived[0]?.name ?? '')).said).toHaveLength(2);
    expect((await run('list', 'nowhere')).said).toEqual(['0 letters']);
    expect((await run('list')).said.length).toBeGreaterThan(15);
  });

  test('shows what a letter said, and its body', async () => {
    const [first] = await copies('thrown');
    const { code, said } = await run('show', first?.name ?? '');
    expect(code).toBe(0);
    expect(said.join('\n')).toContain('messageId       "m-0"');
    expect(said.join('\n')).toContain('reason          "UnsupportedCurrency"');
    expect(said.at(-1)).toBe('{"order":0}');
  });

  test('saves the encoded message and its body as files', async () => {
    const [first] = await copies('thrown');
    const folder = await mkdtemp(join(tmpdir(), 'archive-'));
    try {
      const { code } = await run('save', first?.name ?? '', folder);
      expect(code).toBe(0);
      const file = join(folder, (first?.name ?? '').split('/').at(-1) ?? '');
      expect(await readFile(file)).toEqual(first?.bytes);
      expect(await readFile(`${file}.body`, 'utf8')).toBe('{"order":0}');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('sends a letter once more as a replay would, and leaves its copy', async () => {
    const [first] = await copies('thrown');
    const call = ['send', first?.name ?? '', '--to', 'thrown'];
    expect((await run(...call)).said.at(-1)).toBe('Nothing was changed. With --yes the letter is sent.');
    const { code, said } = await run(...call, '--yes');
    expect(said.join('\n')).toContain('sent to "thrown"');
    expect(code).toBe(0);
    const receiver = office.client.createReceiver('thrown');
    const [back] = (await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 })) as [ServiceBusReceivedMessage];
    expect(back).toMatchObject({ messageId: 'm-0', body: { order: 0 }, deadLetterReason: undefined });
    const number = Long.fromString(/(\d{20})-/.exec(first?.name ?? '')?.[1] ?? '').toString();
    expect(back.applicationProperties).toMatchObject({ 'x-replay-count': 1, 'x-replay-of': number });
    await receiver.completeMessage(back);
    await receiver.close();
    expect(await copies('thrown')).toHaveLength(5);
  });

  test('sends no letter that the target would drop or refuse', async () => {
    const [first] = await copies('thrown');
    const call = ['send', first?.name ?? '', '--yes', '--to'];
    const nowhere = await run(...call, 'nowhere');
    expect(nowhere.said.join('\n')).toMatch(/^block target-unknown/m);
    expect(nowhere.code).toBe(2);
    const dropped = await run(...call, 'remembering');
    expect(dropped.said.at(-1)).toBe('The letter is not sent: duplicate-window.');
    expect(dropped.code).toBe(1);
    expect(office.broker.messages('remembering')).toEqual([]);
    expect((await run(...call, 'remembering', '--on-duplicate', 'new-id')).code).toBe(0);
    const [arrived] = office.broker.messages('remembering').map(({ raw }) => readLetter(raw));
    expect(arrived?.messageId).toMatch(/^\d{8}t\d{6}-\w{8}:\d+$/);
  });

  test.each([
    [['show', 'no-such-blob'], 1, 'there is no "no-such-blob" in the archive'],
    [['send', 'no-such-blob', '--to', 'thrown'], 1, 'there is no "no-such-blob" in the archive'],
    [[], 2, 'usage:'],
    [['show'], 2, 'usage:'],
    [['save', 'x'], 2, 'usage:'],
    [['send', 'x'], 2, 'usage:'],
    [['list', 'x', '--to', 'y'], 2, 'usage:'],
    [['burn'], 2, 'usage:'],
    [['list', '--yes'], 2, 'usage:'],
    [['list', '--nonsense'], 2, 'nonsense'],
  ])('says what is wrong with %j', async (args, expected, text) => {
    const { code, said } = await run(...args);
    expect(said.join('\n')).toContain(text);
    expect(code).toBe(expected);
  });
});
